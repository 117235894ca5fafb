// The offsets and clock shifts of an IANA time zone, from Node's time zone database through Intl,
// and the instants of a local time. Answers are kept.
import { parseWallText } from "../core/duration.ts";
import { getOrMake } from "../core/get-or-make.ts";

/** One change of a zone's offset: clocks go from `beforeMs` to `afterMs` (wall time minus UTC). */
export interface ClockShift {
  readonly atMs: number;
  readonly beforeMs: number;
  readonly afterMs: number;
}

/** A time zone. */
export interface Zone {
  /** Wall time minus UTC at this instant, ms. */
  offsetMs(atMs: number): number;
  /** The shifts after the first instant up to and including the second, in order. */
  shifts(afterMs: number, untilMs: number): readonly ClockShift[];
}

const zones = new Map<string, Zone>();

/** The distance of the probes for shifts; two shifts of a zone lie 6.9 days apart at least. */
const probeEveryMs = 2 * 86_400_000;
const secondMs = 1_000;
/** No offset from UTC is this far, and no clock shift moves further. */
const aroundMs = 2 * 86_400_000;

/**
 * The zone of a name; the same object for the same name.
 * @throws RangeError when this Node knows no such zone.
 */
export function zoneOf(timezone: string): Zone {
  return getOrMake(zones, timezone, createZone);
}

/** A local time. `instants`: when clocks show it: none in a gap, two in a repeated hour. */
export interface WallTime {
  readonly instants: readonly number[];
  /** The first instant; in a gap, the instant by the clock from before it. */
  readonly nearMs: number;
}

/** Reads `2027-03-28T02:30` in a zone; undefined when the text is no such date and time. */
export function parseWallTime(text: string, timezone: string): WallTime | undefined {
  const wallMs = parseWallText(text);
  if (wallMs === undefined) return undefined;
  const zone = zoneOf(timezone);
  const instants = instantsOf(wallMs, zone);
  return { instants, nearMs: instants[0] ?? wallMs - zone.offsetMs(wallMs - aroundMs) };
}

/** Every instant at which the clocks of a zone show a wall time, in order. */
export function instantsOf(wallMs: number, zone: Zone): number[] {
  const shifts = shiftsAround(wallMs, zone).map(({ afterMs }) => afterMs);
  const offsets = new Set([zone.offsetMs(wallMs - aroundMs), ...shifts]);
  const instants = [...offsets].map((offsetMs) => wallMs - offsetMs);
  return instants.filter((atMs) => wallMs - atMs === zone.offsetMs(atMs)).sort((a, b) => a - b);
}

/** The clock shifts that may touch a wall time. */
export function shiftsAround(wallMs: number, zone: Zone): readonly ClockShift[] {
  return zone.shifts(wallMs - aroundMs, wallMs + aroundMs);
}

function createZone(timezone: string): Zone {
  const format = new Intl.DateTimeFormat("en-US", { timeZone: timezone, timeZoneName: "longOffset" });
  const readOffset = (atMs: number) => parseOffset(format.format(atMs));
  const years = new Map<number, readonly ClockShift[]>();
  const findIn = (year: number) => findShifts(readOffset, Date.UTC(year, 0, 1), Date.UTC(year + 1, 0, 1));
  const shiftsOf = (year: number) => getOrMake(years, year, findIn);
  // The part of a year without a shift that was asked about last: it has one offset.
  let calm = { fromMs: Number.POSITIVE_INFINITY, toMs: Number.NEGATIVE_INFINITY, offsetMs: 0 };
  return {
    offsetMs: (atMs) => {
      if (atMs >= calm.fromMs && atMs < calm.toMs) return calm.offsetMs;
      const [offsetMs, year] = [readOffset(atMs), yearOf(atMs)];
      // Date.UTC takes two digits for a year of the last century.
      if (year < 100) return offsetMs;
      const fromMs = shiftsOf(year).findLast((shift) => shift.atMs <= atMs)?.atMs ?? Date.UTC(year, 0, 1);
      const toMs = shiftsOf(year).find((shift) => shift.atMs > atMs)?.atMs ?? Date.UTC(year + 1, 0, 1);
      calm = { fromMs, toMs, offsetMs };
      return offsetMs;
    },
    shifts: (afterMs, untilMs) => {
      const found: ClockShift[] = [];
      if (afterMs >= calm.fromMs && untilMs < calm.toMs) return found;
      for (let year = yearOf(afterMs); year <= yearOf(untilMs); year += 1) {
        for (const shift of shiftsOf(year)) if (shift.atMs > afterMs && shift.atMs <= untilMs) found.push(shift);
      }
      return found;
    },
  };
}

/** The shifts from `startMs` to before `endMs`. */
function findShifts(offsetMs: (atMs: number) => number, startMs: number, endMs: number): ClockShift[] {
  const found: ClockShift[] = [];
  let knownMs = startMs - secondMs;
  let before = offsetMs(knownMs);
  while (knownMs < endMs - secondMs) {
    const probeMs = Math.min(knownMs + probeEveryMs, endMs - secondMs);
    const after = offsetMs(probeMs);
    if (after !== before) found.push({ atMs: bisect(offsetMs, knownMs, probeMs), beforeMs: before, afterMs: after });
    knownMs = probeMs;
    before = after;
  }
  return found;
}

/** The first second with another offset than at `lowMs`; `highMs` has another. */
function bisect(offsetMs: (atMs: number) => number, lowMs: number, highMs: number): number {
  const before = offsetMs(lowMs);
  let low = lowMs;
  let high = highMs;
  while (high - low > secondMs) {
    const middle = low + Math.floor((high - low) / 2 / secondMs) * secondMs;
    if (offsetMs(middle) === before) low = middle;
    else high = middle;
  }
  return high;
}

/** Reads `1/1/2027, GMT+05:30`, also `GMT-00:16:08` as clocks once were. */
function parseOffset(text: string): number {
  const found = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?$/.exec(text);
  if (found === null) throw new Error(`Intl wrote an unreadable offset: ${text}`);
  const [, sign, hours, minutes, seconds = "0"] = found;
  const offsetSeconds = Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds);
  return (sign === "-" ? -offsetSeconds : offsetSeconds) * secondMs;
}

function yearOf(instantMs: number): number {
  return new Date(instantMs).getUTCFullYear();
}
