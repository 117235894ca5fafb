// A rate as the gate counts it. Called by service-gate.ts. Pure.

/**
 * A rate as a count in a window of microseconds: in any window of that length, at most that many. A rate above 1 is counted
 * over about a second, so that a short burst is as good as even steps; one below 1 lets one through each 1/rate seconds.
 */
export function toRate(requestsPerSecond: number | undefined): { count: number; windowUs: number } {
  if (requestsPerSecond === undefined) return { count: 0, windowUs: 0 };
  const count = Math.max(1, Math.floor(requestsPerSecond));
  return { count, windowUs: Math.ceil((count / requestsPerSecond) * 1_000_000) };
}
