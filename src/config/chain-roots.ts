// Gives every policy that follows another the schedule at which its chain begins: its slots are that one's. Pure; called by normalise.ts.
import type { After, Policy } from "./policy-set.ts";

/** A policy whose chain nobody has walked yet. */
export interface UnrootedPolicy extends Omit<Policy, "after"> {
  readonly after?: Omit<After, "root">;
}

/** The same policies, each `after` with its root. Call it only when every chain is known to begin with a schedule. */
export function withChainRoots(policies: readonly UnrootedPolicy[]): Policy[] {
  const byName = new Map(policies.map((policy) => [policy.name, policy]));
  return policies.map(({ after, ...policy }) =>
    after === undefined ? policy : { ...policy, after: { ...after, root: rootOf(after.policy, byName) } },
  );
}

function rootOf(predecessor: string, byName: ReadonlyMap<string, UnrootedPolicy>): After["root"] {
  let first = byName.get(predecessor);
  // A chain is shorter than the list of all policies, since circles have been refused.
  for (let step = 0; step < byName.size && first?.after !== undefined; step += 1)
    first = byName.get(first.after.policy);
  if (first?.schedule === undefined) throw new Error("a chain without a beginning passed the checks");
  return { name: first.name, schedule: first.schedule };
}
