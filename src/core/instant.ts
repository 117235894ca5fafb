// Shows instants: to machines as ISO 8601, to people with their zone.
import { dayMs } from "./duration.ts";
import { getOrMake } from "./get-or-make.ts";

/** The end of the year 9999. A later one has a year of more digits, which no reader takes. */
export const lastInstantMs = Date.parse("9999-12-31T23:59:59.999Z");

/** From when to when, milliseconds UTC. Who takes one says whether its ends are inside. */
export interface Interval {
  readonly fromMs: number;
  readonly toMs: number;
}

/** All of time. */
export const always: Interval = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };

/** An instant for machines: ISO 8601 in UTC, in the year 9999 at most; null if there is none. */
export function toIso(instantMs: number): string;
export function toIso(instantMs: number | undefined): string | null;
export function toIso(instantMs: number | undefined): string | null {
  return instantMs === undefined ? null : new Date(Math.min(instantMs, lastInstantMs)).toISOString();
}

/** An instant as people read it: `2026-11-21 05:30:00Z`, or in a zone `2026-11-21 06:30:00 CET`. */
export function showInstant(instantMs: number, timezone?: string): string {
  const { date, clock, zone } = localTime(instantMs, timezone);
  return `${date} ${clock}${zone}`;
}

/** The same in both: `2026-11-21 05:30:00Z (2026-11-21 06:30:00 CET)`. */
export function showBoth(instantMs: number, timezone: string): string {
  const utc = showInstant(instantMs);
  return timezone === "UTC" ? utc : `${utc} (${showInstant(instantMs, timezone)})`;
}

/**
 * The time of day, with the date unless it is that of `besideMs`: `06:30 CET`, `05:30:01Z`. Seconds
 * are shown where there are some.
 */
export function showClock(instantMs: number, timezone: string | undefined, besideMs?: number): string {
  const { date, clock, zone } = localTime(instantMs, timezone);
  const isSaid = besideMs !== undefined && localTime(besideMs, timezone).date === date;
  const day = isSaid ? "" : `${date} `;
  return `${day}${clock.replace(/:00$/, "")}${zone}`;
}

const weekdayWithinMs = 6 * dayMs;

/** The same, with the day of the week within six days: `Tue 06:30 CET`. */
export function showNear(instantMs: number, timezone: string, besideMs: number): string {
  const text = showClock(instantMs, timezone, besideMs);
  if (!/^\d{4}-/.test(text) || Math.abs(instantMs - besideMs) > weekdayWithinMs) return text;
  return text.replace(/^\S+/, formatsOf(timezone).weekday.format(instantMs));
}

function localTime(instantMs: number, timezone: string | undefined) {
  if (timezone === undefined) {
    const text = new Date(instantMs).toISOString();
    return { date: text.slice(0, 10), clock: text.slice(11, 19), zone: "Z" };
  }
  const { day, name, shown } = formatsOf(timezone);
  const known = shown.get(instantMs);
  if (known !== undefined) return known;
  const text = day.format(instantMs);
  const zone = ` ${name.format(instantMs).split(" ").at(-1)}`;
  const local = { date: text.slice(0, 10), clock: text.slice(11, 19), zone };
  if (shown.size >= shownMax) shown.clear();
  shown.set(instantMs, local);
  return local;
}

interface Formats extends Readonly<Record<"day" | "name" | "weekday", Intl.DateTimeFormat>> {
  /** Thousands of policies are due at the same few hundred instants. */
  readonly shown: Map<number, { readonly date: string; readonly clock: string; readonly zone: string }>;
}

const formats = new Map<string, Formats>();
const shownMax = 1_000;

/**
 * The formats of a zone are kept: to make one takes longer than a hundred uses of it. sv-SE writes
 * dates as ISO 8601 does. There are about 600 zones, so the map stays small.
 */
function formatsOf(timeZone: string): Formats {
  return getOrMake(formats, timeZone, () => ({
    day: new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" }),
    name: new Intl.DateTimeFormat("en-GB", { timeZone, timeZoneName: "short" }),
    weekday: new Intl.DateTimeFormat("en-GB", { timeZone, weekday: "short" }),
    shown: new Map(),
  }));
}

const knownZones = new Set<string>();

/** Whether this Node's time zone database knows a zone by name; asking it takes long. */
export function isZone(timeZone: string): boolean {
  if (knownZones.has(timeZone)) return true;
  try {
    new Intl.DateTimeFormat("en", { timeZone });
  } catch {
    return false;
  }
  knownZones.add(timeZone);
  return true;
}

/** The local day, `2026-12-25`. */
export function localDate(instantMs: number, timezone: string): string {
  return formatsOf(timezone).day.format(instantMs).slice(0, 10);
}

/** The day so many days after another, such as `2026-12-25`. */
export function dayAfter(day: string, days: number): string {
  return new Date(Date.parse(day) + days * dayMs).toISOString().slice(0, 10);
}
