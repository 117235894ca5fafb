// The calendar of a schedule: cron, interval or one time. Pure: instants in, instants out, never
// the current time. dst-rule.ts handles clock shifts.
import type { Schedule } from "../config/policy-set.ts";
import { parseWallText } from "../core/duration.ts";
import { type WallPattern, wallPattern } from "./cron-pattern.ts";
import { nextZonedSlot, slotsOfShiftedWall, type ZonedPattern } from "./dst-rule.ts";
import { instantsOf, shiftsAround, zoneOf } from "./zone.ts";

/** The slots of one schedule. Instants are milliseconds UTC, whole seconds. */
export interface Calendar {
  /** The first slot after this instant; undefined when none will come. */
  next(afterMs: number): number | undefined;
}

/**
 * The calendar of a schedule. `every` counts from 1970-01-01 UTC, the same on every replica.
 * @throws Error when a cron expression or the zone is wrong; the loader has found that before.
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

/** The instant of one time; undefined if a clock shift leaves it out and the rule drops it. */
function onceInstant(schedule: OnceSchedule): number | undefined {
  const zone = zoneOf(schedule.timezone);
  const wallMs = wallOf(schedule);
  for (const shift of shiftsAround(wallMs, zone)) {
    const { atMs, beforeMs, afterMs } = shift;
    const isTouched = wallMs >= atMs + Math.min(beforeMs, afterMs) && wallMs < atMs + Math.max(beforeMs, afterMs);
    if (isTouched) return slotsOfShiftedWall(zonedOnce(schedule), shift, wallMs)[0];
  }
  return instantsOf(wallMs, zone)[0];
}

/** The expressions of a schedule with their wall times: cron or the one time. */
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
