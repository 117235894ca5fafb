// Which policies follow which, over a whole list of policies. Pure; built once per list, asked for
// each slot.
import type { Policy } from "../config/policy-set.ts";
import type { Follower } from "../model/slot-step.ts";

/** The chains of a list of policies. */
export interface FollowerMap {
  /** The names of the policies that follow one directly. */
  direct(name: string): readonly string[];
  /** All that follow one, directly or through others, each after its predecessor. */
  all(name: string): readonly Follower[];
}

/** Builds the map. */
export function createFollowerMap(policies: readonly Policy[]): FollowerMap {
  const direct = new Map<string, string[]>();
  for (const { name, after } of policies) {
    if (after === undefined) continue;
    const known = direct.get(after.policy);
    if (known === undefined) direct.set(after.policy, [name]);
    else known.push(name);
  }
  const of = (name: string): readonly string[] => direct.get(name) ?? [];
  const all = (name: string): Follower[] =>
    of(name).flatMap((policy) => [{ policy, after: name, followers: of(policy).length }, ...all(policy)]);
  return { direct: of, all };
}
