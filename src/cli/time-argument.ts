// Parses times that people give to `simulate` and `plan`: an instant, a local time, now, or an
// offset.
import { systemClock } from "../core/clock.ts";
import { parseDuration } from "../core/duration.ts";
import { UsageError } from "../core/errors.ts";
import { zoneHint } from "../core/nearest-word.ts";
import { parseWallTime } from "../schedule/zone.ts";
import { parseInstant } from "./shared-options.ts";

/** What a relative or local time refers to. */
export interface TimeContext {
  readonly nowMs: number;
  /** What `+7d` and `-1h` count from. */
  readonly baseMs: number;
  /** The zone of times without one. */
  readonly timezone: string;
}

const relativePattern = /^([+-])(\d{1,9}(?:ms|s|m|h|d))$/;
const datePattern = /^\d{4}-\d{2}-\d{2}$/;

/** The forms of a time, for help texts. */
export const timeForms =
  "now, 2026-12-01T06:00:00Z, 2026-12-01T06:00 or 2026-12-01 (in the zone of --timezone), or +7d after, -1h before";

/** Parses a time into milliseconds UTC. @throws UsageError that names the option. */
export function parseTime(text: string, option: string, { nowMs, baseMs, timezone }: TimeContext): number {
  if (text === "now") return nowMs;
  const relative = relativePattern.exec(text);
  if (relative !== null) return baseMs + (relative[1] === "-" ? -1 : 1) * parseDuration(relative[2] ?? "");
  const wall = parseWallTime(datePattern.test(text) ? `${text}T00:00` : text, timezone);
  const instantMs = parseInstant(text) ?? wall?.instants[0] ?? wall?.nearMs;
  if (instantMs === undefined) throw new UsageError(`${option} "${text}" is no time: write ${timeForms}`);
  return instantMs;
}

/** Parses --from, --to and --timezone. @throws UsageError */
export function parseRange(
  { from, to, timezone: zone }: { readonly from: string; readonly to: string; readonly timezone: string },
  { daysMax, most }: { readonly daysMax: number; readonly most: string },
): { readonly fromMs: number; readonly toMs: number; readonly context: TimeContext } {
  const nowMs = systemClock.nowMs();
  const timezone = checkTimezone(zone);
  const fromMs = parseTime(from, "--from", { nowMs, baseMs: nowMs, timezone });
  const context = { nowMs, baseMs: fromMs, timezone };
  const toMs = parseTime(to, "--to", context);
  if (toMs <= fromMs) throw new UsageError("--to is not after --from");
  if (toMs - fromMs > daysMax * 86_400_000)
    throw new UsageError(`from --from to --to is more than ${most}, which is the most`);
  return { fromMs, toMs, context };
}

/** Parses `FROM/TO`. A relative TO such as `+4h` counts from FROM. @throws UsageError */
export function parseInterval(
  text: string,
  option: string,
  context: TimeContext,
): { readonly fromMs: number; readonly toMs: number } {
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
