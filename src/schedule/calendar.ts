// When a schedule is due. Pure: instants in, instants out, never the current time. Called by slots.ts.
// What an expression says on the wall clock is cron-pattern.ts, what the clocks show is zone.ts, and what a clock change
// does to a slot is dst-rule.ts.
import type { Schedule } from "../config/policy-set.ts";
import { nextZonedSlot } from "./dst-rule.ts";
import { onceInstant, zonedPatterns } from "./once.ts";

/** The slots of one schedule. Instants are milliseconds UTC, whole seconds. */
export interface Calendar {
  /** The first slot after this instant, or undefined when there is none any more. */
  next(afterMs: number): number | undefined;
}

/**
 * The calendar of a schedule. `every` counts elapsed time from 1970-01-01 UTC, so it is the same on every replica.
 * `once` is one instant, or none where the clocks leave it out and the rule drops it.
 * A list of expressions is due whenever one of them is; an instant that several name is one slot.
 * @throws Error when a cron expression or the zone is wrong; `checkCron` finds that at load.
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
