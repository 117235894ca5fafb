// Parses the times that people give to commands: instants, local times, days in words, and times of
// day or durations, which mean the past or the future as the option needs. Called by most commands.
import { Option } from "commander";
import { type Policy, scheduleOf } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { dayMs, durationPattern, parseDuration, parseWallText } from "../core/duration.ts";
import { UsageError } from "../core/errors.ts";
import { dayAfter, type Interval, lastInstantMs, showInstant } from "../core/instant.ts";
import { zoneHint } from "../core/nearest-word.ts";
import { parseWallTime, type WallTime, zoneOf } from "../schedule/zone.ts";

const instantPattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/;

/** What a relative or local time refers to. */
export interface TimeContext {
  readonly nowMs: number;
  /** What durations count from, and before or after which a time of day lies. Default: now. */
  readonly baseMs?: number;
  /** The zone of times without one. */
  readonly timezone: string;
  /** Where `02:30` and `7d` lie: the newest one up to the base, or the next one after it. */
  readonly side: "past" | "future";
}

/** A time as written, and how precise it is: a day, a minute or a second. */
export interface WrittenTime extends WallTime {
  readonly widthMs: number;
}

const clockPattern = /^([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?$/;
const dayWords: Readonly<Record<string, number>> = { yesterday: -1, today: 0, tomorrow: 1 };

/** The forms of a time, for help texts. */
export const timeForms =
  "now, 02:30, 7d, +4h, -1h, today, yesterday 02:30, 2026-12-01, 2026-12-01T06:00 or 2026-12-01T06:00:00Z";

/** `--timezone`, as all commands with times have it. */
export function timezoneOption(): Option {
  return new Option("--timezone <zone>", "of times that name none (default: the policies', or this machine's)");
}

/**
 * The zone of times that name none: the option's, else the one that all these policies share, else
 * this machine's. @throws UsageError
 */
export function timezoneFor(option: string | undefined, policies: readonly Policy[] = []): string {
  if (option !== undefined) return checkTimezone(option);
  // A policy without a calendar has the zone of the defaults, which says less.
  const dated = policies.filter((policy) => ["cron", "once"].includes(scheduleOf(policy)?.kind ?? ""));
  const zones = new Set((dated.length > 0 ? dated : policies).map(({ timezone }) => timezone));
  const [zone] = zones;
  return zone !== undefined && zones.size === 1 ? zone : new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Parses a time into milliseconds UTC. @throws UsageError that names the option. */
export function parseTime(text: string, option: string, context: TimeContext): number {
  const time = readTime(text, context);
  if (time === undefined) throw new UsageError(`${option} "${text}" is no time: write ${timeForms}`);
  return time.nearMs;
}

/** Reads a time; undefined for a text that is none. @throws UsageError for one too far away. */
export function readTime(text: string, context: TimeContext): WrittenTime | undefined {
  const time = readWritten(text, context);
  if (time === undefined || Math.abs(time.nearMs) <= lastInstantMs) return time;
  throw new UsageError(`"${text}" is too far away: the last year is 9999`);
}

function readWritten(text: string, context: TimeContext): WrittenTime | undefined {
  const { nowMs, baseMs = nowMs, timezone, side } = context;
  const written = text.replace(/^[+-]/, "");
  if (durationPattern.test(written)) {
    const isBefore = text.startsWith("-") || (written === text && side === "past");
    return exactly(baseMs + (isBefore ? -1 : 1) * parseDuration(written), 60_000);
  }
  if (text === "now") return exactly(nowMs, 60_000);
  const widthMs = /\d{2}:\d{2}:\d{2}/.test(text) ? 1_000 : 60_000;
  // Date.parse takes 31 November for 1 December.
  const isDay = parseWallText(`${text.slice(0, 10)}T00:00`) !== undefined;
  const instantMs = isDay && instantPattern.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(instantMs)) return exactly(instantMs, widthMs);
  if (clockPattern.test(text)) return nearestOf(text, { nowMs, baseMs, timezone, side }, widthMs);
  const dated = text.replace(/^(yesterday|today|tomorrow)(?= |$)/, (day) =>
    dateOf(nowMs, timezone, dayWords[day] ?? 0),
  );
  if (/^\d{4}-\d{2}-\d{2}$/.test(dated)) return wholeDay(dated, timezone);
  const wall = parseWallTime(dated, timezone);
  return wall && { ...wall, widthMs };
}

function exactly(instantMs: number, widthMs: number): WrittenTime {
  return { instants: [instantMs], nearMs: instantMs, widthMs };
}

/** A local date, so many days from the one at an instant: `2026-12-01`. */
function dateOf(instantMs: number, timezone: string, days: number): string {
  const wallMs = instantMs + zoneOf(timezone).offsetMs(instantMs);
  return new Date(wallMs + days * dayMs).toISOString().slice(0, 10);
}

function wholeDay(date: string, timezone: string): WrittenTime | undefined {
  const begin = parseWallTime(`${date}T00:00`, timezone);
  if (begin === undefined) return undefined;
  const endMs = parseWallTime(`${dayAfter(date, 1)}T00:00`, timezone)?.nearMs ?? begin.nearMs + dayMs;
  return { ...begin, widthMs: endMs - begin.nearMs };
}

/** A time of day: the newest one up to the base, or the next one after it. */
function nearestOf(clock: string, near: Required<TimeContext>, widthMs: number): WrittenTime | undefined {
  const { baseMs, timezone, side } = near;
  const walls = [-2, -1, 0, 1, 2].flatMap((days) => {
    const wall = parseWallTime(`${dateOf(baseMs, timezone, days)}T${clock}`, timezone);
    if (wall === undefined) return [];
    const each = wall.instants.length === 0 ? [wall.nearMs] : wall.instants;
    return each.map((nearMs) => ({ ...wall, nearMs, widthMs }));
  });
  return side === "past"
    ? walls.findLast(({ nearMs }) => nearMs <= baseMs)
    : walls.find(({ nearMs }) => nearMs > baseMs);
}

/** Parses --from and --to of a look ahead; --to counts from --from. @throws UsageError */
export function parseRange(
  { from, to }: { readonly from: string; readonly to: string },
  { daysMax, most, timezone }: { readonly daysMax: number; readonly most: string; readonly timezone: string },
): Interval & { readonly context: TimeContext } {
  const now = { nowMs: systemClock.nowMs(), timezone, side: "future" } as const;
  const fromMs = parseTime(from, "--from", now);
  const context = { ...now, baseMs: fromMs };
  const toMs = parseTime(to, "--to", context);
  if (toMs <= fromMs) throw new UsageError(`--to is not after --from: ${showTimes({ fromMs, toMs }, timezone)}`);
  if (toMs - fromMs > daysMax * dayMs)
    throw new UsageError(`from --from to --to is more than ${most}, which is the most`);
  return { fromMs, toMs, context };
}

/**
 * Parses --since and --until of a look back; without one, that end is infinitely far. A time of day
 * in --until is the newest one up to now, or the next one after --since. @throws UsageError
 */
export function parsePast(
  { since, until }: { readonly since?: string | undefined; readonly until?: string | undefined },
  now: Pick<TimeContext, "nowMs" | "timezone">,
): Interval {
  const past = { ...now, side: "past" } as const;
  const fromMs = since === undefined ? Number.NEGATIVE_INFINITY : parseTime(since, "--since", past);
  if (fromMs > now.nowMs)
    throw new UsageError(
      `--since "${since}" is in the future (${showInstant(fromMs, now.timezone)}): write a time in the past`,
    );
  if (until === undefined) return { fromMs, toMs: Number.POSITIVE_INFINITY };
  const newestMs = parseTime(until, "--until", past);
  const isLater = newestMs > fromMs || !clockPattern.test(until);
  const toMs = isLater ? newestMs : parseTime(until, "--until", { ...past, baseMs: fromMs, side: "future" });
  if (toMs > fromMs) return { fromMs, toMs };
  throw new UsageError(`--until is not after --since: ${showTimes({ fromMs, toMs }, now.timezone)}`);
}

/** `2026-12-01 06:00:00 CET to 2026-12-01 07:00:00 CET`, in the zone in which times were read. */
export function showTimes({ fromMs, toMs }: Interval, timezone: string) {
  const zone = timezone === "UTC" ? undefined : timezone;
  return `${showInstant(fromMs, zone)} to ${showInstant(toMs, zone)}`;
}

/** Parses `FROM/TO`. A relative TO such as `+4h` counts from FROM. @throws UsageError */
export function parseInterval(text: string, option: string, context: TimeContext): Interval {
  const [from, to, ...more] = text.split("/");
  if (from === undefined || to === undefined || more.length > 0)
    throw new UsageError(`${option} "${text}" is no interval: write FROM/TO, for example +1d/+4h`);
  const fromMs = parseTime(from, option, context);
  const toMs = parseTime(to, option, { ...context, baseMs: fromMs });
  if (toMs <= fromMs) throw new UsageError(`${option} "${text}" ends before it begins`);
  return { fromMs, toMs };
}

/** A zone that Node knows. @throws UsageError for any other text. */
export function checkTimezone(timezone: string): string {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: timezone }).resolvedOptions().timeZone;
  } catch {
    throw new UsageError(`--timezone ${timezone} is no zone: ${zoneHint(timezone)}`);
  }
}
