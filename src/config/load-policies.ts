// Loads the policies of a file or a folder: read, parse, check, normalise. It reports all problems
// at once, in the order of the files; deadlines only once there are no others. Never throws for the
// content of a file. Called by commands, watch-policies.ts and web/.
import { nextTurn } from "../core/clock.ts";
import { readCalendars } from "./calendars.ts";
import { checkSamples } from "./mapping-samples.ts";
import { normalisePolicies } from "./normalise.ts";
import type { PolicySet } from "./policy-set.ts";
import { type Problem, problemOfFile, sortProblems } from "./problem.ts";
import { type FileTexts, hashOfTexts, readPolicyFiles } from "./read-policy-files.ts";
import { checkCrossRules } from "./rules/cross-rules.ts";
import { policyLimits } from "./rules/policy-limits.ts";
import { checkDefaults, checkPolicy, type PolicyChecks, type RuleContext } from "./rules/policy-rules.ts";
import { checkNotifications, checkService, checkSink } from "./rules/service-rules.ts";
import type { DefaultsInput, PolicyFileDraft } from "./schema/policy-file.ts";
import { type CheckedFile, checkFile } from "./schema-problems.ts";
import type { Variables } from "./settings.ts";
import { readYamlFile, type UsedVariables } from "./yaml/yaml-file.ts";

/** What loading needs beside the path. */
export interface LoadOptions {
  /** For `${NAME}` and `token: { env: NAME }`. */
  readonly variables: Variables;
  readonly checks: PolicyChecks;
  /** False: files that the policies name are not read, for policies that come from elsewhere. */
  readonly readsFiles?: boolean;
}

/** All policies, or what is wrong: at most 1,000 problems and one line about the rest. */
export type LoadedPolicies =
  | { readonly ok: true; readonly set: PolicySet }
  | { readonly ok: false; readonly problems: readonly Problem[]; readonly files: readonly string[] };

/**
 * Loads a policy file, or every *.yaml and *.yml of a folder as one set. A folder or file that
 * cannot be read is a problem with line 0.
 */
export async function loadPolicies(path: string, options: LoadOptions): Promise<LoadedPolicies> {
  return checkPolicyFiles(path, await readPolicyFiles(path), options);
}

/** The same for files that are read already. `path`: where they came from. */
export async function checkPolicyFiles(path: string, read: FileTexts, options: LoadOptions): Promise<LoadedPolicies> {
  const problems: Problem[] = [...read.problems];
  const checked: CheckedFile[] = [];
  const used: UsedVariables = new Map();
  for (const { file, text } of read.texts) {
    // Thousands of policies take a second or more: let a running process do other work in between.
    await nextTurn();
    const yaml = readYamlFile(file, text, options.variables, used);
    problems.push(...yaml.problems);
    if (yaml.value !== undefined) checked.push(checkFile(yaml, problems));
  }
  const files = [...read.files];
  const defaults: DefaultsInput = Object.assign({}, ...checked.map(({ draft }) => draft.defaults ?? {}));
  for (const file of checked) {
    await nextTurn();
    checkRules(file.draft, { defaults, checks: options.checks, report: file.report });
    if (options.readsFiles !== false) await checkSamples(file, options.checks, files);
  }
  const isWhole = read.problems.length === 0 && checked.length === read.texts.length;
  problems.push(...checkCrossRules(checked, isWhole));
  const named = options.readsFiles === false ? [] : checked;
  const calendars = await readCalendars(named, options.checks, { problems, files });
  if (problems.length > 0) return { ok: false, problems: capped(sortProblems(problems), path), files };
  const set = { ...normalisePolicies(checked, defaults, calendars), files, textsHash: hashOfTexts(read) };
  // Reports add to `problems` (checkFile).
  await checkDeadlines(checked, set, options.checks);
  if (problems.length > 0) return { ok: false, problems: capped(sortProblems(problems), path), files };
  return { ok: true, set };
}

/** Deadlines depend on the slots, and so on whole policies and the start of their chain. */
async function checkDeadlines(checked: readonly CheckedFile[], set: PolicySet, checks: PolicyChecks): Promise<void> {
  const policies = new Map(set.policies.map((policy) => [policy.name, policy]));
  for (const { draft, report } of checked) {
    await nextTurn();
    for (const [index, { name = "" }] of (draft.policies ?? []).entries()) {
      const policy = policies.get(name);
      const problem = policy?.expect === undefined ? undefined : checks.deadline(policy);
      if (problem === undefined) continue;
      report(["policies", index, "expect", problem.key], `expect.${problem.key}: ${problem.message}`, problem);
    }
  }
}

/** Applies the rules of one file. */
function checkRules(draft: PolicyFileDraft, context: RuleContext): void {
  const { services = {}, sinks = {}, defaults = {}, notifications = {}, policies = [] } = draft;
  for (const [name, service] of Object.entries(services)) checkService(service, ["services", name], context);
  for (const [name, sink] of Object.entries(sinks)) checkSink(sink, ["sinks", name], context.report);
  checkDefaults(defaults, context);
  checkNotifications(notifications, context);
  for (const [index, policy] of policies.entries()) checkPolicy(policy, ["policies", index], context);
}

function capped(problems: readonly Problem[], path: string): readonly Problem[] {
  const most = policyLimits.problemsMax;
  if (problems.length <= most) return problems;
  const rest = problemOfFile(path, `and ${problems.length - most} more problems that are not listed`);
  return [...problems.slice(0, most), rest];
}
