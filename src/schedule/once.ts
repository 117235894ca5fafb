// `schedule: { once: … }`: the one instant of a local date and time, under the DST rule. Pure; called by calendar.ts for firing and
// by dst-days.ts for previews.
import type { Schedule } from "../config/policy-set.ts";
import { parseWallText } from "../core/wall-text.ts";
import { type WallPattern, wallPattern } from "./cron-pattern.ts";
import { slotsOfShiftedWall, type ZonedPattern } from "./dst-rule.ts";
import { zoneOf } from "./zone.ts";

/** A schedule that is one time. */
export type OnceSchedule = Extract<Schedule, { readonly kind: "once" }>;

/** No offset from UTC is this far, and no clock shift moves further. */
const aroundMs = 2 * 86_400_000;

/**
 * The instant (ms UTC, a whole second) of a schedule that is one time; undefined when the clocks leave it out and the rule drops it.
 * @throws Error when the text or the zone is wrong, which the loader has ruled out.
 */
export function onceInstant(schedule: OnceSchedule): number | undefined {
  const zone = zoneOf(schedule.timezone);
  const wallMs = wallOf(schedule);
  const shifts = zone.shifts(wallMs - aroundMs, wallMs + aroundMs);
  for (const shift of shifts) {
    const { atMs, beforeMs, afterMs } = shift;
    const isTouched = wallMs >= atMs + Math.min(beforeMs, afterMs) && wallMs < atMs + Math.max(beforeMs, afterMs);
    if (isTouched) return slotsOfShiftedWall(zonedOnce(schedule), shift, wallMs)[0];
  }
  const offsets = [zone.offsetMs(wallMs - aroundMs), ...shifts.map(({ afterMs }) => afterMs)];
  return offsets.map((offsetMs) => wallMs - offsetMs).find((atMs) => wallMs - atMs === zone.offsetMs(atMs));
}

/** The expressions of a schedule with their wall times: those of cron, or the one time. Intervals have none. */
export function zonedPatterns(
  schedule: Schedule,
): readonly { readonly expression: string; readonly zoned: ZonedPattern }[] {
  if (schedule.kind === "every") return [];
  if (schedule.kind === "once") return [{ expression: schedule.at, zoned: zonedOnce(schedule) }];
  const { dst, timezone, expressions } = schedule;
  const zone = zoneOf(timezone);
  return expressions.map((expression) => ({ expression, zoned: { pattern: wallPattern(expression), zone, dst } }));
}

function zonedOnce(schedule: OnceSchedule): ZonedPattern {
  const wallMs = wallOf(schedule);
  const pattern: WallPattern = {
    next: (afterWallMs) => (afterWallMs < wallMs ? wallMs : undefined),
    isSubDaily: false,
  };
  const { gap, overlap } = schedule.dst;
  return { pattern, zone: zoneOf(schedule.timezone), dst: { gap, overlap: overlap === "both" ? "first" : overlap } };
}

function wallOf({ at }: OnceSchedule): number {
  const wallMs = parseWallText(at);
  if (wallMs === undefined) throw new Error(`${at} is no local date and time`);
  return wallMs;
}
