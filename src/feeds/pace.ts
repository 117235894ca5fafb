// How often a feed is walked: fast after something new or a new follower, slower when quiet. Pure.

/** The limits of the pace, in milliseconds. */
export interface FeedPace {
  /** The shortest time between two walks of one feed, however many runs wait. */
  readonly gapMs: number;
  /** The wait after something new. */
  readonly fastestMs: number;
  /** The longest wait. */
  readonly slowestMs: number;
}

/** The default pace. */
export const defaultPace: FeedPace = { gapMs: 1_000, fastestMs: 5_000, slowestMs: 60_000 };

/** Walks take at most one fifth of the time, so that a long list is not read without pause. */
const walkShare = 5;

/** The shortest wait after a walk. */
export function walkGapMs(pace: FeedPace, lastWalkMs: number): number {
  return Math.max(pace.gapMs, walkShare * lastWalkMs);
}

/** The wait until the next walk: the fastest after news or a new follower, growing when quiet. */
export function walkPaceMs(pace: FeedPace, quietForMs: number, lastWalkMs: number): number {
  return Math.min(pace.slowestMs, Math.max(pace.fastestMs, quietForMs / 4, walkShare * lastWalkMs));
}

/** How old a run is before its approvals are read: most runs are over by then. */
export function approvalsAfterMs(blockedAfterMs: number): number {
  return blockedAfterMs / 5;
}
