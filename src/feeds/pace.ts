// How often a feed is walked: fast while something happens, slower when it does not. Pure.

/** The shortest time between the ends and starts of two walks of one feed, whoever asks. */
export const walkGapMs = 1_000;
const fastestMs = 5_000;
const slowestMs = 60_000;

/**
 * The wait until the next walk: 5 s after something new, growing to 60 s with the quiet, and never less than five times
 * what the last walk took, so that a long list is not read without end.
 */
export function walkPaceMs(quietForMs: number, lastWalkMs: number): number {
  return Math.min(slowestMs, Math.max(fastestMs, quietForMs / 4, 5 * lastWalkMs));
}
