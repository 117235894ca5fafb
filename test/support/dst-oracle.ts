// The DST rule of docs/time.md said a second time, by brute force: ask Intl what the clocks of a
// zone show at each minute, and look up where each matching wall-clock minute went. For tests and
// scripts/oracle.ts; knows nothing of src/.
import type { CronOracle } from "./cron-oracle.ts";

/** What becomes of a wall time that does not exist, and of one that comes twice. */
export interface OracleRule {
  readonly gap: "next" | "skip";
  readonly overlap: "first" | "second" | "both";
}

/** What the clocks of one zone show, minute by minute, around an instant. */
export interface ClockWindow {
  readonly firstMs: number;
  /** The wall time at each minute since `firstMs`. */
  readonly walls: readonly number[];
  /** All instants at which a wall-clock minute is shown. */
  readonly instants: ReadonlyMap<number, readonly number[]>;
}

const minuteMs = 60_000;
const hourMs = 3_600_000;
const formats = new Map<string, Intl.DateTimeFormat>();

/** The wall time of an instant in a zone, written as a UTC instant. */
function wallTime(timezone: string, atMs: number): number {
  let format = formats.get(timezone);
  if (format === undefined) {
    const two = "2-digit";
    const fields = { year: "numeric", month: two, day: two, hour: two, minute: two, second: two } as const;
    format = new Intl.DateTimeFormat("en-US", { timeZone: timezone, hourCycle: "h23", ...fields });
    formats.set(timezone, format);
  }
  const [month = 0, day = 0, year = 0, hour = 0, minute = 0, second = 0] = format.format(atMs).split(/\D+/).map(Number);
  return Date.UTC(year, month - 1, day, hour, minute, second);
}

/**
 * The instants from `fromMs` to before `untilMs` (whole hours) at which a zone's clocks shift,
 * found minute by minute.
 */
export function clockShifts(timezone: string, fromMs: number, untilMs: number): number[] {
  const offsetAt = (atMs: number) => wallTime(timezone, atMs) - atMs;
  const found: number[] = [];
  for (let atMs = fromMs; atMs < untilMs; atMs += 6 * hourMs) {
    if (offsetAt(atMs) === offsetAt(atMs + 6 * hourMs)) continue;
    let minute = atMs;
    while (offsetAt(minute) === offsetAt(atMs)) minute += minuteMs;
    found.push(minute);
  }
  return found;
}

/** The clocks of a zone from 26 hours before an instant to 26 hours after it. */
export function clockWindow(timezone: string, aroundMs: number): ClockWindow {
  const firstMs = Math.floor(aroundMs / minuteMs) * minuteMs - 26 * hourMs;
  const walls: number[] = [];
  const instants = new Map<number, number[]>();
  for (let atMs = firstMs; atMs <= firstMs + 52 * hourMs; atMs += minuteMs) {
    const wall = wallTime(timezone, atMs);
    walls.push(wall);
    const same = instants.get(wall);
    if (same === undefined) instants.set(wall, [atMs]);
    else same.push(atMs);
  }
  return { firstMs, walls, instants };
}

/**
 * Every slot of an expression inside a window, in order: each matching wall-clock minute, wherever
 * the rule puts it.
 */
export function oracleSlots(window: ClockWindow, cron: CronOracle, rule: OracleRule): number[] {
  const slots = new Set<number>();
  const first = window.walls[0] ?? 0;
  const last = window.walls.at(-1) ?? 0;
  for (let wall = first; wall <= last; wall += minuteMs) {
    if (!cron.matchesMinute(wall)) continue;
    const shown = window.instants.get(wall) ?? [];
    if (shown.length === 0 && !cron.isSubDaily) {
      if (rule.gap === "next") slots.add(gapEnd(window, wall));
      continue;
    }
    for (const minute of keep(window, { wall, shown, isSubDaily: cron.isSubDaily, overlap: rule.overlap }))
      for (const second of cron.seconds) slots.add(minute + second * 1_000);
  }
  return [...slots].sort((a, b) => a - b);
}

interface Shown {
  readonly wall: number;
  readonly shown: readonly number[];
  readonly isSubDaily: boolean;
  readonly overlap: OracleRule["overlap"];
}

function keep(window: ClockWindow, { wall, shown, isSubDaily, overlap }: Shown): readonly number[] {
  if (shown.length === 0) {
    // The old clock goes on: as many minutes after the last minute before the gap as the wall times
    // lie apart.
    const before = gapEnd(window, wall) - minuteMs;
    return [before + wall - (window.walls[(before - window.firstMs) / minuteMs] ?? Number.NaN)];
  }
  if (isSubDaily || overlap === "both") return shown;
  return overlap === "first" ? shown.slice(0, 1) : shown.slice(-1);
}

/** The first minute that shows a later wall time than one that is never shown. */
function gapEnd({ firstMs, walls }: ClockWindow, wall: number): number {
  return firstMs + walls.findIndex((shown) => shown > wall) * minuteMs;
}
