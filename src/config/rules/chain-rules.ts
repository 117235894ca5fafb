// The rules for chains of policies: a missing predecessor or a circle shows only in the whole.
import { didYouMean } from "../../core/nearest-word.ts";
import { policyDefaults } from "../defaults.ts";
import type { Path } from "../problem.ts";
import type { PolicyDraft } from "../schema/policy-file.ts";
import type { CheckedFile } from "../schema-problems.ts";
import { policyLimits } from "./policy-limits.ts";

interface NamedPolicy {
  readonly policy: PolicyDraft;
  readonly index: number;
}

interface ChainFile {
  readonly file: CheckedFile;
  /** By name; of two with one name, the last. */
  readonly policies: ReadonlyMap<string, NamedPolicy>;
}

/** What is wrong with a follower; `at`: where in it, default `after.policy`. */
interface Finding {
  readonly at?: Path;
  readonly message: string;
  readonly hint?: string | undefined;
}

/**
 * Applies the rules for chains. `isWhole` is false when a file could not be read: it may hold what
 * is missing.
 */
export function checkChains(files: readonly CheckedFile[], isWhole: boolean): void {
  const all = files.map((file) => ({ file, policies: policiesOf(file) }));
  for (const one of all) {
    for (const [name, { policy, index }] of one.policies) {
      const wanted = policy.after?.policy;
      if (wanted === undefined) continue;
      const found = findMissing(wanted, one, all, isWhole) ?? findInChain(name, one) ?? findUnmet(policy, one, all);
      const { at = ["after", "policy"], message, hint } = found ?? {};
      if (message !== undefined) one.file.report(["policies", index, ...at], message, { hint });
    }
  }
}

function policiesOf({ draft }: CheckedFile): ChainFile["policies"] {
  const entries = (draft.policies ?? []).map((policy, index) => [policy.name ?? "", { policy, index }] as const);
  return new Map(entries.filter(([name]) => name !== ""));
}

function findMissing(wanted: string, one: ChainFile, all: readonly ChainFile[], isWhole: boolean): Finding | undefined {
  if (one.policies.has(wanted)) return undefined;
  const elsewhere = all.find(({ policies }) => policies.has(wanted));
  const place = elsewhere?.policies.get(wanted);
  if (elsewhere !== undefined && place !== undefined) {
    const { yaml } = elsewhere.file;
    const where = `${yaml.file}:${yaml.lineOf(["policies", place.index])}`;
    const message = `"${wanted}" stands in another file, ${where}: a chain stands in one file`;
    return { message, hint: "move the policies of a chain into one file" };
  }
  if (!isWhole) return undefined;
  return { message: `there is no policy "${wanted}"`, hint: didYouMean(wanted, [...one.policies.keys()]) };
}

function findInChain(name: string, { file, policies }: ChainFile): Finding | undefined {
  const chain = chainOf(name, policies);
  const [, wanted = "", ...rest] = chain;
  if (wanted === name)
    return { message: "a policy cannot follow itself", hint: "name the policy that must have ended before" };
  const last = chain.at(-1) ?? "";
  if (chain.indexOf(last) < chain.length - 1) {
    // Reported once, at the member that comes first.
    const first = [...policies.keys()].find((one) => chain.includes(one));
    if (first !== name || last !== name) return undefined;
    const message = `${chain.join(" follows ")}: a circle never starts`;
    return { message, hint: "give one of them a schedule instead of after" };
  }
  const most = policyLimits.chainPoliciesMax;
  if (chain.length > most)
    return { message: `it is the end of a chain that is too long: ${most} policies are the most` };
  // In a file with other problems the schedule may be what was left out.
  if (rest.length > 0 || policies.get(wanted)?.policy.schedule !== undefined || file.input === undefined)
    return undefined;
  return { message: `${wanted} has no schedule, so nothing ever starts this chain`, hint: `give ${wanted} a schedule` };
}

/**
 * The names from a policy to the start of its chain, at most one more than a chain may have. In a
 * circle the last name is a repeated one.
 */
function chainOf(name: string, policies: ChainFile["policies"]): readonly string[] {
  const names = [name];
  let next = policies.get(name)?.policy.after?.policy;
  while (next !== undefined && names.length <= policyLimits.chainPoliciesMax) {
    names.push(next);
    if (names.indexOf(next) < names.length - 1) break;
    next = policies.get(next)?.policy.after?.policy;
  }
  return names;
}

/** A run that is not followed ends as `accepted`, never as `succeeded`. */
function findUnmet({ after }: PolicyDraft, { policies }: ChainFile, all: readonly ChainFile[]): Finding | undefined {
  const { policy: wanted = "", on = ["succeeded"] } = after ?? {};
  const predecessor = policies.get(wanted)?.policy;
  const byDefault = all.find(({ file }) => file.draft.defaults?.follow?.until !== undefined)?.file.draft.defaults
    ?.follow;
  const until = predecessor?.follow?.until ?? byDefault?.until ?? policyDefaults.followUntil;
  if (predecessor?.run === undefined || until !== "accepted") return undefined;
  if (on.includes("accepted") || !on.includes("succeeded")) return undefined;
  return {
    at: after?.on === undefined ? ["after", "policy"] : ["after", "on"],
    message: `${wanted} is not followed, so it ends as accepted and never as succeeded`,
    hint: `add accepted to on, or let ${wanted} follow its runs to their end`,
  };
}
