// How often a feed is walked: fast while something happens or somebody new waits, slower when not. Pure.

/** The limits of the pace, in milliseconds. */
export interface FeedPace {
  /** The shortest time between two walks of one feed, whoever asks. */
  readonly gapMs: number;
  /** The wait after something new. */
  readonly fastestMs: number;
  /** The longest wait. */
  readonly slowestMs: number;
}

/** The pace unless said otherwise. */
export const defaultPace: FeedPace = { gapMs: 1_000, fastestMs: 5_000, slowestMs: 60_000 };

/** A walk takes at most this part of the time: a long list is not read without end. */
const walkShare = 5;

/** The earliest time for a walk after the last one ended, whoever asks. */
export function walkGapMs(pace: FeedPace, lastWalkMs: number): number {
  return Math.max(pace.gapMs, walkShare * lastWalkMs);
}

/** The wait until the next walk: fastest after something new or somebody new, growing with the quiet to the slowest. */
export function walkPaceMs(pace: FeedPace, quietForMs: number, lastWalkMs: number): number {
  return Math.min(pace.slowestMs, Math.max(pace.fastestMs, quietForMs / 4, walkShare * lastWalkMs));
}

/** How old a run is before its approvals are read: none can block it sooner than `blockedAfter`, and most runs are over by then. */
export function approvalsAfterMs(blockedAfterMs: number): number {
  return blockedAfterMs / 5;
}
