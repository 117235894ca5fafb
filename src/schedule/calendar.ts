// The calendar of a schedule: cron, interval or one time. Pure: instants in, instants out, never
// the current time. Called by slots.ts. cron-pattern.ts reads expressions, zone.ts knows the
// clocks, dst-rule.ts handles clock shifts.
import type { Schedule } from "../config/policy-set.ts";
import { parseWallText } from "../core/wall-text.ts";
import { type WallPattern, wallPattern } from "./cron-pattern.ts";
import { nextZonedSlot, slotsOfShiftedWall, type ZonedPattern } from "./dst-rule.ts";
import { zoneOf } from "./zone.ts";

/** The slots of one schedule. Instants are milliseconds UTC, whole seconds. */
export interface Calendar {
  /** The first slot after this instant; undefined when none will come. */
  next(afterMs: number): number | undefined;
}

/**
 * The calendar of a schedule. `every` counts elapsed time from 1970-01-01 UTC, so it is the same on
 * every replica. `once` is one instant, or none if a clock shift leaves it out and the rule drops
 * it. A list of expressions is due when any of them is; an instant that several name is one slot.
 * @throws Error when a cron expression or the zone is wrong; the loader finds that with
 * `checkCron`.
 */
export function createCalendar(schedule: Schedule): Calendar {
  if (schedule.kind === "every") {
    const { everyMs } = schedule;
    return { next: (afterMs) => (Math.floor(afterMs / everyMs) + 1) * everyMs };
  }
  if (schedule.kind === "once") {
    const slotMs = onceInstant(schedule);
    return { next: (afterMs) => (slotMs !== undefined && afterMs < slotMs ? slotMs : undefined) };
  }
  const patterns = zonedPatterns(schedule).map(({ zoned }) => zoned);
  return {
    next: (afterMs) => {
      const instants = patterns.map((zoned) => nextZonedSlot(zoned, afterMs)).filter((slot) => slot !== undefined);
      return instants.length === 0 ? undefined : Math.min(...instants);
    },
  };
}

/** A schedule of one time. */
type OnceSchedule = Extract<Schedule, { readonly kind: "once" }>;

/** No offset from UTC is this far, and no clock shift moves further. */
const aroundMs = 2 * 86_400_000;

/**
 * The instant (ms UTC, a whole second) of a schedule of one time; undefined if a clock shift leaves
 * it out and the rule drops it. @throws Error when the text or the zone is wrong, which the loader
 * has ruled out.
 */
function onceInstant(schedule: OnceSchedule): number | undefined {
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

/**
 * The expressions of a schedule with their wall times: cron or the one time. Intervals have none.
 */
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
