// How often a feed is walked: fast after something new or a new waiter, slower when quiet. Pure.

/** The limits of the pace, in milliseconds. */
export interface FeedPace {
  /** The shortest time between two walks of one feed, however many runs wait. */
  readonly gapMs: number;
  /** The wait after something new. */
  readonly fastestMs: number;
  /** The longest wait of a quiet feed. After a long walk, `walkGapMs` is longer. */
  readonly slowestMs: number;
}

/** The default pace. */
export const defaultPace: FeedPace = { gapMs: 1_000, fastestMs: 5_000, slowestMs: 60_000 };

/** A feed rests five times as long as its own walk took: a long list is not read without pause. */
const restFactor = 5;

/** The shortest wait after a walk, without an upper limit. */
export function walkGapMs(pace: FeedPace, lastWalkMs: number): number {
  return Math.max(pace.gapMs, restFactor * lastWalkMs);
}

/** The wait until the next walk: the fastest after news or a new waiter, growing when quiet. */
export function walkPaceMs(pace: FeedPace, quietForMs: number, lastWalkMs: number): number {
  return Math.min(pace.slowestMs, Math.max(pace.fastestMs, quietForMs / 4, restFactor * lastWalkMs));
}

/** How old a run is before its approvals are read: most runs are over by then. */
export function approvalsAfterMs(blockedAfterMs: number): number {
  return blockedAfterMs / 5;
}
