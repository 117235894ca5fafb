// How long a followed run sleeps between two looks at its feeds. Pure; called by run.ts.
import type { WorkTiming } from "./timing.ts";

/** What the sleep depends on. Instants are milliseconds UTC by Redis. */
export interface FollowedRun {
  readonly nowMs: number;
  readonly sentAtMs: number;
  /** When it must be settled, at the latest. */
  readonly deadlineMs: number;
  /** When it was first seen finished; undefined when it was not. */
  readonly finishSeenAtMs: number | undefined;
  /** Whether the activities say whose they are and whether they are final: then a walk that sees its end wakes it (wake-runs.ts). */
  readonly attributable: boolean;
  /** The shortest time that something must last before it settles the run: unreadable feeds, a waiting approval. */
  readonly patienceMs: number;
}

/**
 * When to look again: a fifth of the run's age from now, or of the time since its end was seen, inside the bounds; after the long sleep
 * where a walk wakes it, or a fifth of its patience. No later than its deadline, and after that as at its end.
 */
export function nextLookMs(run: FollowedRun, timing: Pick<WorkTiming, "followPaceMs" | "wokenPaceMs">): number {
  const { nowMs, sentAtMs, deadlineMs, finishSeenAtMs, attributable, patienceMs } = run;
  const [leastMs, mostMs] = timing.followPaceMs;
  const isOverdue = nowMs >= deadlineMs;
  const sinceMs = isOverdue ? deadlineMs : (finishSeenAtMs ?? sentAtMs);
  const paceMs = Math.min(mostMs, Math.max(leastMs, (nowMs - sinceMs) / 5));
  const sleepMs =
    attributable && finishSeenAtMs === undefined && !isOverdue
      ? Math.min(timing.wokenPaceMs, Math.max(leastMs, patienceMs / 5))
      : paceMs;
  return isOverdue ? nowMs + sleepMs : Math.min(nowMs + sleepMs, deadlineMs);
}
