// When a schedule is due: the single door to croner. Pure: instants in, instants out, never the current time.
// One calendar object is shared by all policies with the same expression and zone, since each costs about 100 KB.
import { Cron } from "croner";
import type { Schedule } from "../config/policy-set.ts";

/** The slots of one schedule. Instants are milliseconds UTC, whole seconds. */
export interface Calendar {
  /** The first slot after this instant, or undefined when there is none any more. */
  next(afterMs: number): number | undefined;
}

const cronCalendars = new Map<string, Calendar>();
const cronCalendarsMax = 20_000;

/**
 * The calendar of a schedule. `every` counts elapsed time from 1970-01-01 UTC, so it is the same on every replica.
 * @throws RangeError when a cron expression is wrong; `checkCron` finds that at load.
 */
export function createCalendar(schedule: Schedule): Calendar {
  if (schedule.kind === "every") {
    const { everyMs } = schedule;
    return { next: (afterMs) => (Math.floor(afterMs / everyMs) + 1) * everyMs };
  }
  const calendars = schedule.expressions.map((expression) => cronCalendar(expression, schedule.timezone));
  return {
    next: (afterMs) => {
      const instants = calendars.map((calendar) => calendar.next(afterMs)).filter((instant) => instant !== undefined);
      return instants.length === 0 ? undefined : Math.min(...instants);
    },
  };
}

/** Says in one line what is wrong with a cron expression, or nothing when it has slots to come. */
export function checkCron(expression: string, timezone: string): string | undefined {
  try {
    const upcoming = parseCron(expression, timezone).nextRun(new Date("2026-01-01T00:00:00Z"));
    return upcoming === null ? "never comes due: there is no such date" : undefined;
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^CronPattern: /, "") : String(error);
  }
}

function cronCalendar(expression: string, timezone: string): Calendar {
  const key = `${timezone} ${expression}`;
  const known = cronCalendars.get(key);
  if (known !== undefined) return known;
  const cron = parseCron(expression, timezone);
  const calendar = { next: (afterMs: number) => cron.nextRun(new Date(afterMs))?.getTime() };
  if (cronCalendars.size >= cronCalendarsMax) cronCalendars.clear();
  cronCalendars.set(key, calendar);
  return calendar;
}

function parseCron(expression: string, timezone: string): Cron {
  return new Cron(expression, { timezone, mode: "5-or-6-parts", paused: true });
}
