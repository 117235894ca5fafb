// When a policy's slots do not start by its own rules: blackout windows and holidays. Pure; called by the planner and by `explain`.
// A blackout opens when its cron expression is due in the policy's zone and stays open for its duration; a holiday is a local date there.
// Both are judged at the slot's instant, after its spread.
import type { Policy } from "../config/policy-set.ts";
import { formatDuration } from "../core/duration.ts";
import { createCalendar } from "./calendar.ts";

/** Why a policy is closed at an instant. `note` names the window, or the date. */
export interface Closed {
  readonly reason: "blackout" | "holiday";
  readonly note: string;
}

const dateFormats = new Map<string, Intl.DateTimeFormat>();

const known = new WeakMap<Policy["closed"], ReturnType<typeof createClosedTimes>>();

/** The same as `createClosedTimes`, made once for a policy: a blackout's calendar costs more than a look at it. */
export function closedTimesOf(policy: Policy): (instantMs: number) => Closed | undefined {
  const remembered = known.get(policy.closed) ?? createClosedTimes(policy);
  known.set(policy.closed, remembered);
  return remembered;
}

/** Says of instants (milliseconds UTC) whether the policy is closed then. Cheapest when they are asked in order. */
export function createClosedTimes({ closed }: Policy): (instantMs: number) => Closed | undefined {
  const windows = closed.blackouts.map((blackout) => ({
    note: `${blackout.cron} for ${formatDuration(blackout.durationMs)}`,
    isOpen: blackoutWindow(blackout, closed.timezone),
  }));
  const holidays = new Set(closed.holidays);
  return (instantMs) => {
    const window = windows.find(({ isOpen }) => isOpen(instantMs));
    if (window !== undefined) return { reason: "blackout", note: window.note };
    const date = holidays.size === 0 ? "" : localDate(instantMs, closed.timezone);
    return holidays.has(date) ? { reason: "holiday", note: date } : undefined;
  };
}

function blackoutWindow(
  { cron, durationMs }: Policy["closed"]["blackouts"][number],
  timezone: string,
): (instantMs: number) => boolean {
  const dst = { gap: "next", overlap: "first" } as const;
  const calendar = createCalendar({ kind: "cron", expressions: [cron], timezone, dst, spreadMs: 0 });
  // Between `afterMs` and `opensMs` no window opens: slots of one look lie close together, so most need no new answer.
  let [afterMs, opensMs] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  return (instantMs) => {
    const from = instantMs - durationMs;
    if (from < afterMs || from >= opensMs) {
      [afterMs, opensMs] = [from, calendar.next(from) ?? Number.POSITIVE_INFINITY];
    }
    return opensMs <= instantMs;
  };
}

/** `2026-12-25` in the zone. */
function localDate(instantMs: number, timezone: string): string {
  const known = dateFormats.get(timezone);
  // sv-SE writes dates as ISO 8601 does. There are about 600 zones, so the map stays small.
  const format = known ?? new Intl.DateTimeFormat("sv-SE", { timeZone: timezone, dateStyle: "short" });
  if (known === undefined) dateFormats.set(timezone, format);
  return format.format(instantMs);
}
