// What went wrong with policies and is not well again, so that every replica reports the same, also
// a new one. Noted in the steps that write an outcome (history.ts) and a slot (ledger-scripts.ts);
// read by app/metric-gauges.ts. One sorted set: `KIND/POLICY/TARGET` → when it last happened,
// milliseconds UTC.
import type { Outcome } from "../model/outcome.ts";
import { weightOf } from "../model/outcome-weight.ts";
import type { Store } from "./redis.ts";

/**
 * The kinds of trouble: the last task failed; a run left conflicts; a start may have happened; a
 * slot or task was too late.
 */
const notedTroubles = ["failing", "conflicts", "unknown", "missed"] as const;

/** One of the four kinds. */
export type NotedTrouble = (typeof notedTroubles)[number];

/** The most notes, about 60 bytes each; with more, the oldest go. */
const notesMax = 20_000;
/** A note older than the longest interval between two slots says nothing any more. */
const notesKeptMs = 31 * 86_400_000;

/** Lua: adds (`+MEMBER`) and removes (`-MEMBER`) notes, one a line. */
export const noteTroublesLua = `
local function noteTroubles(troubles, at, changes)
  for sign, member in string.gmatch(changes, '([+-])([^\\n]+)') do
    if sign == '-' then
      redis.call('ZREM', troubles, member)
    else
      redis.call('ZADD', troubles, at, member)
      redis.call('ZREMRANGEBYSCORE', troubles, '-inf', string.format('%.0f', at - ${notesKeptMs}))
      redis.call('ZREMRANGEBYRANK', troubles, 0, -${notesMax + 1})
    end
  end
end`;

/** Lua: notes a missed slot. Needs `noteTroublesLua`. */
export const noteMissedLua = `
local function noteMissed(troubles, at, policy, record)
  if not string.find(record, '"state":"missed"', 1, true) then return end
  noteTroubles(troubles, tonumber(at), '+missed/' .. policy .. '/')
end`;

/** Key of the troubles. */
export function troublesKey({ key }: Pick<Store, "key">): string {
  return key("troubles");
}

/**
 * The changes of an outcome, for `noteTroubles` in Lua. A failed run by hand is not noted: the
 * operator sees it.
 */
export function troubleChanges(outcome: Outcome): string {
  const { policy, target, kind, status, origin } = outcome;
  const weight = weightOf(outcome);
  const changes: string[] = [];
  const change = (sign: "+" | "-", trouble: NotedTrouble) => changes.push(`${sign}${trouble}/${policy}/${target}`);
  if (weight === "bad" && origin === "schedule") change("+", "failing");
  if (weight === "good") change("-", "failing");
  if (status === "conflicts") change("+", "conflicts");
  if (status === "succeeded" && (outcome.stillConflicts ?? 0) === 0) change("-", "conflicts");
  if (status === "unknown" && kind !== "poll") change("+", "unknown");
  if (status === "missed") change("+", "missed");
  return changes.join("\n");
}

/** A note: the last trouble of a kind and target of a policy. */
export interface TroubleNote {
  readonly trouble: NotedTrouble;
  readonly policy: string;
  readonly atMs: number;
}

/** Reads all notes, oldest first; one for each target of a policy. */
export async function readTroubles(store: Store): Promise<TroubleNote[]> {
  const found = await store.redis.zrange(troublesKey(store), "0", "-1", "WITHSCORES");
  const notes: TroubleNote[] = [];
  for (let index = 0; index + 1 < found.length; index += 2) {
    const [kind, policy = ""] = (found[index] ?? "").split("/");
    const trouble = notedTroubles.find((one) => one === kind);
    if (trouble !== undefined) notes.push({ trouble, policy, atMs: Number(found[index + 1]) });
  }
  return notes;
}
