// The times at which the slots of a policy are skipped: its blackout windows, its holidays, and the
// events of its calendars. Pure. Called by the planner, and by what looks ahead.
import type { ClosedTimes, EventCalendar, Policy } from "../config/policy-set.ts";
import { formatDuration } from "../core/duration.ts";
import { getOrMake } from "../core/get-or-make.ts";
import { dayAfter, localDate } from "../core/instant.ts";
import { createCalendar } from "./calendar.ts";
import type { SlotSource } from "./slots.ts";
import { parseWallTime } from "./zone.ts";

/**
 * Why a policy is closed at an instant. `note` names the window, the date, or the event; `untilMs`:
 * its end, unless another closed time follows.
 */
interface Closure {
  readonly reason: "blackout" | "holiday";
  readonly note: string;
  readonly untilMs: number;
}

/** `holiday (bank-holidays: Christmas Day)`, `blackout (0 22 * * 5 for 8h)`; else `paused: why`. */
export function describeSkip({ reason, note }: { readonly reason: string; readonly note: string }): string {
  return reason === "blackout" || reason === "holiday" ? `${reason} (${note})` : `${reason}: ${note}`;
}

type ClosedAt = (instantMs: number) => Closure | undefined;

const remembered = new WeakMap<Pick<Policy, "closed" | "timezone">, ClosedAt>();

/** A search for an open slot ends after so many closed times: such a policy hardly starts. */
const closedMax = 400;

/** The first slot after an instant that no closed time will skip; undefined: none is in sight. */
export function nextOpen(
  policy: Pick<Policy, "closed" | "timezone">,
  source: Pick<SlotSource, "next"> | undefined,
  afterMs: number,
): number | undefined {
  return firstOpenSlot(policy, source, source?.next(afterMs));
}

/** This slot, or the first after it that no closed time will skip; undefined: none is in sight. */
export function firstOpenSlot(
  policy: Pick<Policy, "closed" | "timezone">,
  source: Pick<SlotSource, "next"> | undefined,
  slotMs: number | undefined,
): number | undefined {
  const closedAt = createClosedTimes(policy);
  let atMs = slotMs;
  for (let count = 0; atMs !== undefined && count < closedMax; count += 1) {
    const closed = closedAt(atMs);
    if (closed === undefined) return atMs;
    // A closed time may close thousands of slots: the search steps over all at once.
    atMs = source?.next(Math.max(atMs, closed.untilMs - 1));
  }
  return undefined;
}

/** With the third slot after a success, two whole intervals have passed without one. */
const slotsAfter = 3;

/**
 * The third slot after an instant, such as the last success; undefined when none will come. Slots
 * that a blackout or a holiday closes do not count.
 */
export function thirdOpenSlot(
  policy: Pick<Policy, "closed" | "timezone">,
  source: Pick<SlotSource, "next"> | undefined,
  sinceMs: number,
): number | undefined {
  let atMs: number | undefined = sinceMs;
  for (let slot = 0; slot < slotsAfter && atMs !== undefined; slot += 1) atMs = nextOpen(policy, source, atMs);
  return atMs;
}

/** Tells whether the policy is closed at an instant; cheapest when asked in order. */
export function createClosedTimes(policy: Pick<Policy, "closed" | "timezone">): ClosedAt {
  // Once per policy: a blackout's calendar costs more than asking it.
  return getOrMake(remembered, policy, closedTimesOf);
}

/** Whether a policy has no closed times at all, as most. */
export function isNeverClosed({ closed }: Pick<Policy, "closed">): boolean {
  const { blackouts, holidays, calendars = [] } = closed;
  return blackouts.length + holidays.length + calendars.length === 0;
}

function closedTimesOf({ closed, timezone }: Pick<Policy, "closed" | "timezone">): ClosedAt {
  const { blackouts, holidays, calendars = [] } = closed;
  const windows = blackouts.map((blackout) => ({
    note: `${blackout.cron} for ${formatDuration(blackout.durationMs)}`,
    endOf: blackoutWindow(blackout, timezone),
  }));
  const dates = new Set(holidays);
  const events = calendars.map(({ as, calendar }) => ({ as, find: eventsOf(calendar, timezone) }));
  return (instantMs) => {
    for (const { note, endOf } of windows) {
      const untilMs = endOf(instantMs);
      if (untilMs !== undefined) return { reason: "blackout", note, untilMs };
    }
    for (const { as, find } of events) {
      const event = find(instantMs);
      if (event !== undefined) return { reason: as, note: event.note, untilMs: event.toMs };
    }
    const date = dates.size === 0 ? "" : localDate(instantMs, timezone);
    if (!dates.has(date)) return undefined;
    return { reason: "holiday", note: date, untilMs: instantOf(dayAfter(date, 1), timezone) };
  };
}

type FindEvent = (instantMs: number) => { readonly note: string; readonly toMs: number } | undefined;

const found = new WeakMap<EventCalendar, Map<string, FindEvent>>();

/** Finds the event of an instant. Thousands of policies share a calendar and a zone. */
function eventsOf(calendar: EventCalendar, timezone: string): FindEvent {
  const byZone = getOrMake(found, calendar, () => new Map());
  return getOrMake(byZone, timezone, () => findEvents(calendar, timezone));
}

function findEvents({ name, events }: EventCalendar, timezone: string): FindEvent {
  const all = events.map(({ from, to, name: title }) => {
    return { fromMs: instantOf(from, timezone), toMs: instantOf(to, timezone), note: `${name}: ${title}` };
  });
  // Each ends later than the one before: what ends earlier lies in another one.
  const spans: typeof all = [];
  for (const span of all.toSorted((a, b) => a.fromMs - b.fromMs))
    if (span.toMs > (spans.at(-1)?.toMs ?? Number.NEGATIVE_INFINITY)) spans.push(span);
  return (instantMs) => {
    let [first, end] = [0, spans.length];
    while (first < end) {
      const middle = Math.floor((first + end) / 2);
      if ((spans[middle]?.toMs ?? 0) > instantMs) end = middle;
      else first = middle + 1;
    }
    const span = spans[first];
    return span !== undefined && span.fromMs <= instantMs ? span : undefined;
  };
}

/** The instant of a text of an event (CalendarEvent). */
function instantOf(text: string, timezone: string): number {
  if (text.endsWith("Z")) return Date.parse(text);
  const wall = parseWallTime(text.length === 10 ? `${text}T00:00:00` : text, timezone);
  if (wall === undefined) throw new Error(`${text} is no local time`);
  return wall.instants[0] ?? wall.nearMs;
}

function blackoutWindow(
  { cron, durationMs }: ClosedTimes["blackouts"][number],
  timezone: string,
): (instantMs: number) => number | undefined {
  const dst = { gap: "next", overlap: "first" } as const;
  const calendar = createCalendar({ kind: "cron", expressions: [cron], timezone, dst, spreadMs: 0 });
  // Between `afterMs` and `opensMs` no window opens: the slots of one tick lie close together, so
  // most need no new answer.
  let [afterMs, opensMs] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  return (instantMs) => {
    const from = instantMs - durationMs;
    if (from < afterMs || from >= opensMs) {
      [afterMs, opensMs] = [from, calendar.next(from) ?? Number.POSITIVE_INFINITY];
    }
    return opensMs <= instantMs ? opensMs + durationMs : undefined;
  };
}
