// The newest slots of policies, each with what became of it: for strips and lists. Of a slot with
// several tasks the worst ending counts. Also what a policy did day by day, in its own zone. Called
// by the pages and the API.

import type { Policy } from "../config/policy-set.ts";
import { dayMs } from "../core/duration.ts";
import { dayAfter, type Interval, localDate } from "../core/instant.ts";
import type { OutcomeStatus } from "../model/outcome.ts";
import { type SlotRecord, tasksOfSlot } from "../model/slot-record.ts";
import { parseWallTime } from "../schedule/zone.ts";
import { type DaySums, readSpans, toSums } from "../store/day-summaries.ts";
import { droppedToMs, History } from "../store/history.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import { withFanOuts } from "../store/start-entry.ts";
import { type QueryContext, seenRecord, withoutUnseen } from "./query-context.ts";

/** What became of a slot. `started`: at least one of its tasks has no outcome, or none any more. */
export type SlotEnding = OutcomeStatus | "coalesced" | "started";

/** One slot. `durationMs`: of its longest task. `note`: why it was skipped or missed. */
export interface EndedSlot {
  readonly slotMs: number;
  readonly ending: SlotEnding;
  readonly durationMs: number | undefined;
  readonly note: string;
}

/** The worst first: the ending of a slot is the first of these among its tasks. */
const worstFirst: readonly SlotEnding[] = [
  "failed",
  "unknown",
  "timed-out",
  "not-started",
  "blocked",
  "conflicts",
  "missed",
  "started",
  "coalesced",
  "skipped",
  "accepted",
  "succeeded",
];

/** Outcomes read of one policy, and of each of several: slots beyond are left out. */
const [outcomesMax, stripOutcomesMax] = [2_000, 400];

/** Says of a started slot that its outcomes may have been dropped. */
const droppedNote = "no outcome yet, or no longer kept";

/** Reads the newest `count` slots of each policy, oldest first. */
export async function readSlotStrips(
  context: QueryContext,
  policies: readonly string[],
  count: number,
): Promise<ReadonlyMap<string, readonly EndedSlot[]>> {
  const strips = policies.map(async (policy): Promise<[string, readonly EndedSlot[]]> => {
    const { slots } = await readSlots(context, policy, { count }, stripOutcomesMax);
    return [policy, slots.toReversed()];
  });
  return new Map(await Promise.all(strips));
}

/** Which slots: the newest `count` from and up to an instant. */
interface SlotSpan extends Partial<Interval> {
  readonly count: number;
}

/** Reads slots of a policy, newest first. `isAll`: there are no older ones in the span. */
export async function readSlots(
  { store, view }: QueryContext,
  policy: string,
  { count, ...span }: SlotSpan,
  tasksMax = outcomesMax,
): Promise<{ readonly slots: readonly EndedSlot[]; readonly isAll: boolean }> {
  const records = await new SlotLedger(store).slots(policy, count + 1, span);
  const read: ReadSlot[] = [];
  let total = 0;
  for (const slot of await withTasks(store, policy, records.slice(0, count))) {
    total += slot.tasks.length;
    if (total > tasksMax && read.length > 0) break;
    read.push(slot);
  }
  const ids = read.flatMap(({ tasks }) => tasks.map(({ id }) => id));
  const history = new History(store);
  const outcomes = await history.outcomes(policy, ids);
  const slots = read.map((slot) => toSlot(slot, outcomes, view));
  const isAll = read.length === records.length;
  if (!slots.some(({ ending }) => ending === "started")) return { slots, isAll };
  // Asked after the outcomes: some may be dropped in between.
  const [keptSinceMs, nowMs] = await Promise.all([history.keptSinceMs(policy), redisTimeMs(store)]);
  const isDropped = ({ slotMs, ending }: EndedSlot, index: number) =>
    ending === "started" && read[index]?.tasks.some((task) => slotMs <= droppedToMs(task, nowMs, keptSinceMs)) === true;
  return { slots: slots.map((slot, at) => (isDropped(slot, at) ? { ...slot, note: droppedNote } : slot)), isAll };
}

interface ReadSlot {
  readonly record: SlotRecord;
  readonly tasks: readonly ReturnType<typeof tasksOfSlot>[number][];
}

/** Adds the tasks of started slots; in place of one over masks, those that it fanned out into. */
async function withTasks(store: Store, policy: string, records: readonly SlotRecord[]): Promise<readonly ReadSlot[]> {
  const started = records.filter(({ state }) => state === "started");
  const tasks = await withFanOuts(
    store,
    started.flatMap((record) => tasksOfSlot(policy, record)),
  );
  const bySlot = Map.groupBy(tasks, ({ slotMs }) => slotMs);
  return records.map((record) => ({ record, tasks: bySlot.get(record.slotMs) ?? [] }));
}

function toSlot(
  { record, tasks }: ReadSlot,
  outcomes: Awaited<ReturnType<History["outcomes"]>>,
  view: QueryContext["view"],
): EndedSlot {
  const { slotMs, state, detail, note } = seenRecord(record, view);
  if (state !== "started") return { slotMs, ending: state, durationMs: undefined, note: note ?? detail };
  const ended = tasks.flatMap(({ id }) => outcomes.get(id) ?? []);
  const endings = new Set<SlotEnding>(ended.map(({ status }) => status));
  if (ended.length < tasks.length || tasks.length === 0) endings.add("started");
  const ending = worstFirst.find((one) => endings.has(one)) ?? "started";
  const durations = ended.flatMap(({ durationMs }) => durationMs ?? []);
  // What another service said before the policy moved is not for all.
  const { detail: said = "" } = ended.filter(view.sees).find(({ status }) => status === ending) ?? {};
  return {
    slotMs,
    ending,
    durationMs: durations.length === 0 ? undefined : Math.max(...durations),
    note: withoutUnseen(said, view),
  };
}

/** One day. */
export interface PolicyDay extends DaySums {
  readonly date: string;
}

/**
 * Reads the newest slots of one day of a policy's zone, newest first, and how many `more` it has;
 * undefined: no such day.
 */
export async function readDaySlots(context: QueryContext, { name, timezone }: Policy, date: string, count: number) {
  const midnight = (ofMs: number) =>
    parseWallTime(`${new Date(ofMs).toISOString().slice(0, 10)}T00:00`, timezone)?.nearMs;
  const dateMs = /^\d{4}-\d\d-\d\d$/.test(date) ? Date.parse(date) : Number.NaN;
  // Date.parse takes 30 February for a day in March.
  if (Number.isNaN(dateMs) || !new Date(dateMs).toISOString().startsWith(date)) return undefined;
  const [fromMs, toMs] = [midnight(dateMs), midnight(dateMs + dayMs)];
  if (fromMs === undefined || toMs === undefined) return undefined;
  const span = { fromMs, toMs: toMs - 1 };
  const { slots, isAll } = await readSlots(context, name, { count, ...span });
  const more = isAll ? 0 : (await new SlotLedger(context.store).countSlots(name, span)) - slots.length;
  return { slots, more };
}

/** Reads the last `count` days, today included, oldest first. */
export async function readPolicyDays(
  { store }: QueryContext,
  { name, timezone }: Policy,
  count: number,
): Promise<readonly PolicyDay[]> {
  const today = localDate(await redisTimeMs(store), timezone);
  const dates = Array.from({ length: count }, (_, index) => dayAfter(today, index + 1 - count));
  const spans = dates.map((date) => ({ first: date, last: date }));
  for await (const { counts } of readSpans(store, [name], spans))
    return dates.map((date, index) => ({ date, ...toSums(counts[index] ?? []) }));
  return [];
}
