// The deadlines of a policy: which there are, when one was kept, and what is late. Pure. Called by
// queries/deadlines.ts and the simulation; docs/time.md has the rule.
//
//   successBy   each day of `on` with an open slot between midnight and that time: slots of that day
//   within      each open slot, that long after it: this slot or a later one
import { dailyCron, type Expectation, type Policy, scheduleOf } from "../config/policy-set.ts";
import { getOrMake } from "../core/get-or-make.ts";
import { localDate } from "../core/instant.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import type { Deadline, DeadlineFinding, DeadlineState, JudgedDeadlines, Late } from "../model/deadline.ts";
import { createCalendar } from "./calendar.ts";
import { createClosedTimes } from "./closed-times.ts";
import { createChainSource, createSlotSource, dueSlots, type SlotSource } from "./slots.ts";

/** The most slots or days that one call looks at; a longer backlog takes several. */
const placesMax = 100;

/** Deadlines, oldest first. `doneMs`: up to when they are complete. */
export interface DeadlineSpan {
  readonly deadlines: readonly Deadline[];
  readonly doneMs: number;
}

/** The deadlines after one instant and up to another; slots from `dueSinceMs` on count. */
export function deadlinesOf(
  policy: Policy,
  { afterMs, untilMs, dueSinceMs = 0 }: { afterMs: number; untilMs: number; dueSinceMs?: number | undefined },
): DeadlineSpan {
  const { expect } = policy;
  const slots = createChainSource(policy);
  if (expect === undefined || slots === undefined) return { deadlines: [], doneMs: untilMs };
  const withinMs = expect.kind === "within" ? expect.withinMs : 0;
  const places = expect.kind === "within" ? slots : daysOf(policy, expect);
  const found = dueSlots(places, afterMs - withinMs, untilMs - withinMs, placesMax);
  const closedAt = found.length === 0 ? () => undefined : createClosedTimes(policy);
  const deadlines = found.flatMap((placeMs) => {
    const fromMs = expect.kind === "within" ? placeMs : startOfDay(placeMs, policy.timezone);
    const hasOpenSlot =
      expect.kind === "within"
        ? placeMs >= dueSinceMs && closedAt(placeMs) === undefined
        : isAnyOpen(slots, closedAt, [Math.max(fromMs, dueSinceMs), placeMs]);
    return hasOpenSlot ? [{ fromMs, atMs: placeMs + withinMs }] : [];
  });
  const isCut = found.length === placesMax;
  return { deadlines, doneMs: isCut ? (found.at(-1) ?? 0) + withinMs : untilMs };
}

/** Slots of the longest local day, one a second. */
const slotsOfDayMax = 90_000;

function isAnyOpen(
  slots: SlotSource,
  closedAt: (instantMs: number) => unknown,
  [fromMs, toMs]: readonly [number, number],
): boolean {
  let slotMs = slots.next(fromMs - 1);
  for (let count = 0; slotMs !== undefined && slotMs <= toMs && count < slotsOfDayMax; count += 1) {
    if (closedAt(slotMs) === undefined) return true;
    slotMs = slots.next(slotMs);
  }
  return false;
}

/** The deadline that a slot must meet; undefined when it has none. */
export function deadlineOfSlot(policy: Policy, slotMs: number): Deadline | undefined {
  const { expect } = policy;
  if (expect === undefined) return undefined;
  const untilMs = expect.kind === "within" ? slotMs + expect.withinMs : daysOf(policy, expect).next(slotMs - 1);
  if (untilMs === undefined) return undefined;
  const [found] = deadlinesOf(policy, { afterMs: untilMs - 1, untilMs }).deadlines;
  return found !== undefined && found.fromMs <= slotMs ? found : undefined;
}

const daySources = new WeakMap<Policy, SlotSource>();

/** When each day's deadline comes: one that the clocks leave out, right after the gap. */
function daysOf(policy: Policy, expect: Extract<Expectation, { kind: "successBy" }>): SlotSource {
  return getOrMake(daySources, policy, ({ timezone }) => {
    const schedule = scheduleOf(policy);
    const overlap = schedule?.kind === "cron" && schedule.dst.overlap === "second" ? "second" : "first";
    const dst = { gap: "next", overlap } as const;
    const expressions = [dailyCron(expect.at, expect.on)];
    const source = createSlotSource({ name: "", schedule: { kind: "cron", expressions, timezone, dst, spreadMs: 0 } });
    if (source === undefined) throw new Error("a cron schedule without slots");
    return source;
  });
}

/** The first instant of the local day. */
function startOfDay(instantMs: number, timezone: string): number {
  const at = `${localDate(instantMs, timezone)}T00:00:00`;
  const dst = { gap: "next", overlap: "first" } as const;
  return createCalendar({ kind: "once", at, timezone, dst, spreadMs: 0 }).next(0) ?? instantMs;
}

/** A task that ended well. */
export interface EndedWell {
  readonly target: string;
  readonly slotMs: number;
  readonly endedMs: number;
}

/** When the last of these targets had ended well, of slots from `fromMs` on; undefined: not yet. */
export function madeAt(fromMs: number, targets: readonly string[], ends: readonly EndedWell[]): number | undefined {
  const firsts = new Map<string, number>();
  for (const { target, slotMs, endedMs } of ends)
    if (slotMs >= fromMs) firsts.set(target, Math.min(endedMs, firsts.get(target) ?? endedMs));
  const instants = targets.map((target) => firsts.get(target) ?? Number.POSITIVE_INFINITY);
  const atMs = Math.max(...instants);
  return Number.isFinite(atMs) ? atMs : undefined;
}

/** A policy whose deadlines begin now: those of a new expectation. */
export function freshDeadlines(expect: Expectation, nowMs: number): DeadlineState {
  return { v: 1, expect: expectHash(expect), judgedMs: nowMs, late: null, sinks: [] };
}

/** Whether a state is that of this expectation. */
export function isStateOf(state: DeadlineState, expect: Expectation): boolean {
  return state.expect === expectHash(expect);
}

function expectHash(expect: Expectation): string {
  return hashText(canonicalJson(expect), 8);
}

/**
 * Judges deadlines, oldest first. `made`: when one was met, also later. The caller adds `why`. Of a
 * policy that is late already, at most one more is told on each local day. What was late is over
 * when the newest missed deadline is made up for.
 */
export function judgeDeadlines(
  policy: Policy,
  before: DeadlineState,
  { deadlines, doneMs }: DeadlineSpan,
  made: (deadline: Deadline) => number | undefined,
): JudgedDeadlines {
  const findings: DeadlineFinding[] = [];
  const timezone = policy.timezone;
  let { late } = before;
  const endLate = (untilMs: number) => {
    const endedWellMs = late === null ? undefined : made(late);
    if (late === null || endedWellMs === undefined || endedWellMs > untilMs) return;
    findings.push({ finding: "ended", late, endedWellMs });
    late = null;
  };
  for (const deadline of deadlines) {
    const { fromMs, atMs } = deadline;
    endLate(atMs);
    const endedWellMs = made(deadline);
    if (endedWellMs !== undefined && endedWellMs <= atMs) continue;
    const known: Late | null = late;
    const isTold = known !== null && localDate(known.toldMs, timezone) === localDate(atMs, timezone);
    late = {
      sinceMs: atMs,
      toldMs: atMs,
      ...known,
      ...(isTold ? {} : { toldMs: atMs }),
      fromMs,
      atMs,
      why: "",
    };
    if (!isTold) findings.push({ finding: "late", late });
  }
  // Not beyond: a deadline before that end may have to be judged first.
  endLate(doneMs);
  return { state: { ...before, judgedMs: Math.max(before.judgedMs, doneMs), late }, findings };
}

/** Weekdays are judged over so many slots: also those of a schedule that is due once a month. */
const slotsJudgedMax = 500;
const judgedFromMs = Date.UTC(2026, 0, 1);
const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/** What is wrong with a deadline for its policy's slots, and where; undefined: nothing. */
export function problemOfDeadline(
  policy: Policy,
): { readonly key: "successBy" | "on"; readonly message: string; readonly hint: string } | undefined {
  const { expect } = policy;
  const slots = createChainSource(policy);
  if (expect?.kind !== "successBy" || slots === undefined) return undefined;
  const days = daysOf(policy, expect);
  const timezone = policy.timezone;
  const wanted = new Set<number>();
  for (let day = 0, atMs = judgedFromMs; day < weekdays.length; day += 1) {
    atMs = days.next(atMs) ?? atMs;
    wanted.add(weekdayOf(atMs, timezone));
  }
  const found = new Set<number>();
  let slotMs = slots.next(scheduleOf(policy)?.kind === "once" ? 0 : judgedFromMs);
  for (let count = 0; slotMs !== undefined && found.size < wanted.size && count < slotsJudgedMax; count += 1) {
    const atMs = days.next(slotMs - 1);
    if (atMs === undefined) break;
    const fromMs = startOfDay(atMs, timezone);
    if (fromMs <= slotMs) found.add(weekdayOf(atMs, timezone));
    // No other slot of this deadline says more; one before its day begins says nothing.
    slotMs = slots.next(Math.max(slotMs, fromMs <= slotMs ? atMs : fromMs - 1));
  }
  const between = `between midnight and ${expect.at} (${timezone})`;
  if (found.size === 0) {
    const hint = "choose a later time, or `within` to count from each slot";
    return { key: "successBy", message: `no slot of this policy lies ${between}`, hint };
  }
  const empty = [...wanted].filter((weekday) => !found.has(weekday)).toSorted();
  if (expect.on === "*" || empty.length === 0) return undefined;
  const names = empty.map((weekday) => weekdays[weekday]).join(", ");
  const hint = "name only days with a slot, or leave `on` out: days without a slot have no deadline";
  return { key: "on", message: `on ${names} no slot of this policy lies ${between}`, hint };
}

function weekdayOf(instantMs: number, timezone: string): number {
  return new Date(localDate(instantMs, timezone)).getUTCDay();
}
