// The pace of a start: the waits of its steps, and how long a followed run sleeps between two
// checks of its feeds. Pure.

/** The waits of a start and its following. */
export interface TaskTiming {
  /** How long a start waits for its baseline before it goes on without one. */
  readonly baselineWithinMs: number;
  /** How long after a lost answer an activity, or the effect, may take to appear. */
  readonly verifyForMs: number;
  /**
   * How long after its request has timed out a silent sender may bring the answer: longer than one
   * is kept (store/kept-writes.ts), with the last try to write it.
   */
  readonly answerKeptForMs: number;
  /** How long a sync job may be unreadable, without the time in which reads are denied. */
  readonly syncJobUnreadableForMs: number;
  /** The most time of denied reads that does not count. */
  readonly deniedForMsMax: number;
  /**
   * How long after its slot, and after the policies changed here, a task waits for a policy
   * that this replica may not have read yet, or whose file may be away for a moment.
   */
  readonly unknownPolicyForMs: number;
  /** How long a worker with newer policies keeps its place, and its tasks, while it is away. */
  readonly newerAwayForMs: number;
  /** How often a task asks whether its sync job is free, with `overlap: queue`. */
  readonly queueForLeaseMs: number;
  /** The sleep of a followed run: the first for a young one, up to the second for an old one. */
  readonly followPaceMs: readonly [number, number];
  /** The sleep of a run that a walk wakes: its own checks only replace a lost wake-up. */
  readonly wokenPaceMs: number;
}

/** The default waits. */
export const defaultTiming: TaskTiming = {
  baselineWithinMs: 10_000,
  verifyForMs: 30_000,
  answerKeptForMs: 140_000,
  syncJobUnreadableForMs: 300_000,
  deniedForMsMax: 7_200_000,
  unknownPolicyForMs: 300_000,
  newerAwayForMs: 60_000,
  queueForLeaseMs: 2_000,
  followPaceMs: [1_000, 15_000],
  wokenPaceMs: 60_000,
};

/** A process that slept longer after the permission does not send: it may count as dead. */
export const sendWithinMs = 5_000;

/** A followed run, as far as its sleep depends on it. Instants are milliseconds UTC by Redis. */
export interface FollowedRun {
  readonly nowMs: number;
  readonly sentAtMs: number;
  /** The latest instant at which it must be settled. */
  readonly deadlineMs: number;
  /** When it was first observed finished; undefined if never. */
  readonly finishSeenAtMs: number | undefined;
  /**
   * Activities name their sync job and whether they are finished: a walk that sees its end wakes
   * it.
   */
  readonly attributable: boolean;
  /** The shortest time after which unreadable feeds or a waiting approval settle the run. */
  readonly patienceMs: number;
}

/**
 * When to check again: after a fifth of the run's age, or of the time since its end was seen. A run
 * that a walk wakes sleeps longer. Never past the deadline; after it, the pace starts anew.
 */
export function nextCheckMs(run: FollowedRun, timing: Pick<TaskTiming, "followPaceMs" | "wokenPaceMs">): number {
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
