// Loads the policies of a file or a folder: read, parse, check, normalise. Called by the commands; the hot reload
// (watch-policies.ts) reads by itself and checks here.
// Reports every problem at once, in the order of the files. Never throws for what stands in a file.
import { nextTurn } from "../core/clock.ts";
import { checkCrossRules } from "./cross-rules.ts";
import { checkLoad, servicesOf } from "./load-product.ts";
import { checkSamples } from "./mapping-samples.ts";
import { mergeDefaults } from "./merge-defaults.ts";
import type { Path } from "./node-places.ts";
import { type CheckedFile, normalisePolicies } from "./normalise.ts";
import type { PolicyChecks } from "./policy-checks.ts";
import { policyLimits } from "./policy-limits.ts";
import type { PolicySet } from "./policy-set.ts";
import { type Problem, problemOfFile, sortProblems } from "./problem.ts";
import { type FileTexts, readPolicyFiles } from "./read-policy-files.ts";
import { checkRules, type Report } from "./rules.ts";
import { checkSchema, type SchemaResult } from "./schema-problems.ts";
import type { Variables } from "./substitute.ts";
import { type View, viewOf } from "./view.ts";
import { readYamlFile, type YamlFile } from "./yaml-file.ts";

/** What loading needs beside the path. */
export interface LoadOptions {
  /** For `${NAME}` and `token: { env: NAME }`. */
  readonly variables: Variables;
  readonly checks: PolicyChecks;
}

/** All policies, or everything that is wrong with them (at most 1,000 problems and one line about the rest). */
export type LoadedPolicies =
  | { readonly ok: true; readonly set: PolicySet }
  | { readonly ok: false; readonly problems: readonly Problem[]; readonly files: readonly string[] };

/**
 * Loads a policy file, or every *.yaml and *.yml of a folder as one set.
 * A folder or file that cannot be read is a problem with line 0.
 */
export async function loadPolicies(path: string, options: LoadOptions): Promise<LoadedPolicies> {
  return checkPolicyFiles(path, await readPolicyFiles(path), options);
}

/** As loadPolicies, for files that are read already. `path` is where they came from, for problems of all of them. */
export async function checkPolicyFiles(path: string, read: FileTexts, options: LoadOptions): Promise<LoadedPolicies> {
  const { texts, files, problems } = read;
  const yamlFiles: YamlFile[] = [];
  for (const { file, text } of texts) {
    // Thousands of policies take a second or more: a running Syncline goes on with its work in between.
    await nextTurn();
    yamlFiles.push(readYamlFile(file, text, options.variables));
  }
  const defaults = mergeDefaults(yamlFiles.map((file) => viewOf(file.value)));
  const all: Problem[] = [...problems];
  const checked: CheckedFile[] = [];
  for (const file of yamlFiles) {
    await nextTurn();
    const result = checkFile(file, defaults, options);
    all.push(...result.problems, ...(await checkSamples(file, options.checks)));
    if (result.checked !== undefined) checked.push(result.checked);
  }
  all.push(...checkCrossRules(yamlFiles, problems.length === 0));
  const services = servicesOf(yamlFiles);
  for (const file of yamlFiles) {
    await nextTurn();
    all.push(...checkLoad(file, services));
  }
  if (all.length > 0) return { ok: false, problems: capped(sortProblems(all), path), files };
  return { ok: true, set: normalisePolicies(checked) };
}

/** Everything about one file that needs no other file (but their merged defaults). */
function checkFile(
  file: YamlFile,
  defaults: View,
  options: LoadOptions,
): { problems: readonly Problem[]; checked: CheckedFile | undefined } {
  if (file.value === undefined) return { problems: file.problems, checked: undefined };
  const problems: Problem[] = [];
  // Of what could not be filled in, nothing else is said: the second complaint would only confuse.
  const quiet = new Set(file.unresolved.map((path) => JSON.stringify(path)));
  const report: Report = (path, message, placing) => {
    if (!isWithinAny(path, quiet)) problems.push(file.problemAt(path, message, placing));
  };
  const schema = checkSchema(file.value);
  reportComplaints(schema, report);
  checkRules({ ...options, file: viewOf(file.value), defaults, report });
  const checked = schema.ok
    ? { file: file.file, input: schema.input, lineOfPolicy: (index: number) => file.lineOf(["policies", index]) }
    : undefined;
  return { problems: [...file.problems, ...problems], checked };
}

function reportComplaints(schema: SchemaResult, report: Report): void {
  if (schema.ok) return;
  for (const { path, message, hint, place } of schema.complaints) report(path, message, { hint, place });
}

/** Whether a path, or a path above it, is in the set. Asks for each level, so that thousands of paths cost nothing. */
function isWithinAny(path: Path, written: ReadonlySet<string>): boolean {
  if (written.size === 0) return false;
  for (let length = 0; length <= path.length; length += 1) {
    if (written.has(JSON.stringify(path.slice(0, length)))) return true;
  }
  return false;
}

function capped(problems: readonly Problem[], path: string): readonly Problem[] {
  const most = policyLimits.problemsMax;
  if (problems.length <= most) return problems;
  return [
    ...problems.slice(0, most),
    problemOfFile(path, `and ${problems.length - most} more problems that are not listed`),
  ];
}
