// What went wrong with policies and is not well again, the same on every replica. One sorted set:
// `KIND/POLICY/TARGET` → when it last happened.
import { type Policy, targetsOf } from "../config/policy-set.ts";
import { type Outcome, weightOf } from "../model/outcome.ts";
import type { Store } from "./redis.ts";

/**
 * The last task failed; a run left conflicts; a start may have happened; a slot or task was late.
 */
const notedTroubles = ["failing", "conflicts", "unknown", "missed"] as const;

/** One of the four kinds. */
export type NotedTrouble = (typeof notedTroubles)[number];

/** Key of the troubles. */
export function troublesKey({ key }: Pick<Store, "key">): string {
  return key("troubles");
}

/** The changes of an outcome; a failed run by hand is not noted, since the operator sees it. */
export function troubleChanges(outcome: Outcome): string {
  const { policy, target, kind, status, reason, origin, newConflicts, stillConflicts } = outcome;
  const weight = weightOf(outcome);
  const changes: string[] = [];
  const change = (sign: "+" | "-", trouble: NotedTrouble) => changes.push(`${sign}${trouble}/${policy}/${target}`);
  if (weight === "bad" && origin === "schedule") change("+", "failing");
  if (weight === "success") change("-", "failing");
  if (status === "conflicts") change("+", "conflicts");
  // Not counted: the third slot ends it (metric-gauges.ts), or a run by hand: a person looks.
  const isLookedAt = stillConflicts === undefined && origin === "manual" && (newConflicts ?? 0) === 0;
  if (status === "succeeded" && (stillConflicts === 0 || isLookedAt)) change("-", "conflicts");
  // Without evidence of its end a run has started all the same.
  const mayHaveStarted = status === "unknown" && reason !== "no-evidence" && kind !== "poll";
  if (mayHaveStarted && weight === "bad") change("+", "unknown");
  if (status === "missed") change("+", "missed");
  return changes.join("\n");
}

/** A note: the last trouble of a kind and target of a policy. */
export interface TroubleNote {
  readonly trouble: NotedTrouble;
  readonly policy: string;
  readonly atMs: number;
}

/**
 * Reads all notes, oldest first; one for each target of a policy. Of these policies without what
 * they do not name any more; a missed slot has no target.
 */
export async function readTroubles(store: Store, policies: readonly Policy[] = []): Promise<TroubleNote[]> {
  const found = await store.redis.zrange(troublesKey(store), "0", "-1", "WITHSCORES");
  const noted = new Set(found.map((member) => member.split("/")[1]));
  const named = new Map(
    policies.flatMap(({ name, action }) => {
      const targets = noted.has(name) ? targetsOf(action) : undefined;
      return targets === undefined ? [] : [[name, new Set(targets).add("")]];
    }),
  );
  const notes: TroubleNote[] = [];
  for (let index = 0; index + 1 < found.length; index += 2) {
    const [kind, policy = "", ...target] = (found[index] ?? "").split("/");
    const trouble = notedTroubles.find((one) => one === kind);
    const isGone = named.get(policy)?.has(target.join("/")) === false;
    if (trouble !== undefined && !isGone) notes.push({ trouble, policy, atMs: Number(found[index + 1]) });
  }
  return notes;
}
