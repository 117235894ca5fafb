// What each policy did on each local day, kept for 400 days: one field a day in a hash a month.
// history.ts counts outcomes, slot-ledger.ts and chain-store.ts the slots that never started, each
// in the step that records them. `report` sums the days.
import { dayMs } from "../core/duration.ts";
import { localDate } from "../core/instant.ts";
import { type Outcome, type OutcomeStatus, outcomeStatuses, weightOf } from "../model/outcome.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import type { Store } from "./redis.ts";
import { batchesOf, readFields } from "./script.ts";

/** A slot, and the zone of its policy; default UTC. */
interface ZonedSlot {
  readonly policy: string;
  readonly slotMs: number;
  readonly timezone?: string | undefined;
}

const statusNames: Readonly<Record<OutcomeStatus, string>> = {
  succeeded: "S",
  conflicts: "C",
  accepted: "A",
  failed: "F",
  blocked: "B",
  "timed-out": "T",
  unknown: "U",
  "not-started": "N",
  skipped: "K",
  missed: "M",
};
const slotNames = { skipped: "P", missed: "Q", started: undefined, coalesced: undefined } as const;
const [conflictsName, longestName] = ["X", "L"];

/** Each bucket of durations ends a tenth after its beginning: its middle is at most 5 % off. */
const bucketRatio = 1.1;

/** Months of one call: it blocks Redis for half a millisecond. */
const monthsAtOnce = 25;

/** The sums of some days of a policy. Durations are those of runs that ended well. */
export interface DaySums {
  readonly statuses: ReadonlyMap<OutcomeStatus, number>;
  /** Slots that a rule, a pause or the catch-up kept from becoming a task. */
  readonly skippedSlots: number;
  readonly missedSlots: number;
  readonly newConflicts: number;
  readonly longestMs: number | undefined;
  readonly medianMs: number | undefined;
  readonly p95Ms: number | undefined;
  /** How many runs the three are of. */
  readonly timed: number;
}

/** The first and the last of some days, such as 2026-11-22. */
export interface DateSpan {
  readonly first: string;
  readonly last: string;
}

/** Numbers by the places of their names (`placeAt`); those of several days can be added. */
export type DayCounts = number[];

/** From this place on stand the buckets of durations, the shortest first; before it the letters. */
const bucketsFrom = 64;
const longestPlace = placeAt(longestName);

/** What a script adds to a day: `22S1kf1`, the day and what `addToDay` takes. */
interface DayChange {
  readonly key: string;
  readonly change: string;
}

/** Adds counts to others. */
export function addCounts(sum: DayCounts, other: readonly number[]): void {
  other.forEach((count, place) => {
    addCount(sum, place, count);
  });
}

/** Reads the counts of policies, each summed over each of these spans, a hundred at a time. */
export async function* readSpans(
  store: Store,
  policies: readonly string[],
  spans: readonly DateSpan[],
): AsyncGenerator<{ readonly policy: string; readonly counts: readonly DayCounts[] }, void, void> {
  const days = spans.flatMap((span, index) => datesOf(span).map((date) => ({ date, index })));
  const months = [...Map.groupBy(days, ({ date }) => date.slice(0, 7))];
  const readSome = async (some: readonly string[]) => {
    const sums = some.map(() => spans.map((): DayCounts => []));
    const readMonth = async ([month, dates]: (typeof months)[number]) => {
      const keys = some.map((policy) => daysKey(store, policy, month));
      const fields = dates.map(({ date }) => date.slice(8));
      for (const [at, texts] of (await readFields(store, keys, fields)).entries())
        for (const [day, { index }] of dates.entries()) addText(sums[at]?.[index] ?? [], texts[day] ?? "");
    };
    await Promise.all(months.map(readMonth));
    return sums;
  };
  for (const batch of batchesOf(policies, 100)) {
    const read = await Promise.all([...batchesOf(batch, monthsAtOnce)].map(readSome));
    for (const [index, counts] of read.flat().entries()) yield { policy: batch[index] ?? "", counts };
  }
}

/** What counts mean. */
export function toSums(counts: readonly number[]): DaySums {
  const of = (name: string) => counts[placeAt(name)] ?? 0;
  const buckets = counts.slice(bucketsFrom);
  const longestMs = counts[longestPlace];
  const total = buckets.reduce((sum, count) => sum + count, 0);
  const quantile = (share: number) => {
    let left = Math.ceil(share * total);
    for (let bucket = 0; bucket < buckets.length; bucket += 1) {
      left -= buckets[bucket] ?? 0;
      if (left <= 0) return Math.min(Math.round(middleOf(bucket)), longestMs ?? middleOf(bucket));
    }
    return undefined;
  };
  const statuses = outcomeStatuses.map((status) => [status, of(statusNames[status])] as const);
  return {
    statuses: new Map(statuses),
    skippedSlots: of(slotNames.skipped),
    missedSlots: of(slotNames.missed),
    newConflicts: of(conflictsName),
    longestMs,
    medianMs: quantile(0.5),
    p95Ms: quantile(0.95),
    timed: total,
  };
}

/** The month's key of an outcome, and how a script counts it there. */
export function outcomeDay(store: Store, outcome: Outcome, timezone: string | undefined): DayChange {
  const { policy, slot, status, newConflicts, durationMs } = outcome;
  const changes = [`${statusNames[status]}1`];
  if (weightOf(outcome) === "success" && durationMs !== null) {
    const tookMs = Math.round(durationMs);
    changes.push(`${bucketOf(tookMs)}1`, `${longestName}${tookMs}`);
  }
  if (newConflicts !== null && newConflicts > 0) changes.push(`${conflictsName}${newConflicts}`);
  return toChange(store, { policy, timezone, slotMs: Date.parse(slot) }, changes.join(""));
}

/** The same of a slot that starts nothing; undefined: it starts, or another covers it. */
export function slotDay(store: Store, slot: ZonedSlot & Pick<SlotRecord, "state">): DayChange | undefined {
  const name = slotNames[slot.state];
  return name === undefined ? undefined : toChange(store, slot, `${name}1`);
}

/** The same of a skipped slot that starts after all. */
export function unskippedDay(store: Store, slot: ZonedSlot): DayChange {
  return toChange(store, slot, `${slotNames.skipped}-1`);
}

function toChange(store: Store, { policy, timezone = "UTC", slotMs }: ZonedSlot, changes: string): DayChange {
  const date = localDate(slotMs, timezone);
  return { key: daysKey(store, policy, date.slice(0, 7)), change: `${date.slice(8)}${changes}` };
}

function daysKey({ key }: Pick<Store, "key">, policy: string, month: string): string {
  return key("days", policy, month);
}

/** Each day of a span, such as 2026-11-22. */
function datesOf({ first, last }: DateSpan): readonly string[] {
  const dates: string[] = [];
  for (let ms = Date.parse(first); ms <= Date.parse(last); ms += dayMs)
    dates.push(new Date(ms).toISOString().slice(0, 10));
  return dates;
}

/** Adds a day's text. It scans by hand: patterns and parts cut out take most of a long report. */
function addText(sum: DayCounts, text: string): void {
  for (let at = 0; at < text.length; ) {
    const place = placeAt(text, at);
    at += place < bucketsFrom ? 1 : 2;
    const isNegative = text[at] === "-";
    if (isNegative) at += 1;
    let count = 0;
    for (; text.charCodeAt(at) < 58; at += 1) count = count * 10 + text.charCodeAt(at) - 48;
    addCount(sum, place, isNegative ? -count : count);
  }
}

/** The place of the name that begins here: a letter, or the two small ones of a bucket. */
function placeAt(text: string, at = 0): number {
  const first = text.charCodeAt(at);
  const second = text.charCodeAt(at + 1);
  return second >= 97 ? bucketsFrom + (first - 97) * 26 + second - 97 : first - 64;
}

function addCount(sum: DayCounts, place: number, count: number): void {
  const known = sum[place] ?? 0;
  sum[place] = place === longestPlace ? Math.max(known, count) : known + count;
}

/** Two small letters. */
function bucketOf(durationMs: number): string {
  const index = Math.min(Math.floor(Math.log(Math.max(durationMs, 1)) / Math.log(bucketRatio)), 26 * 26 - 1);
  return String.fromCharCode(97 + Math.floor(index / 26), 97 + (index % 26));
}

function middleOf(bucket: number): number {
  return bucketRatio ** (bucket + 0.5);
}
