// Waits before the next try: exponential with full jitter, bounded. Pure; chance is an argument.

/** The shape of a backoff: the first step and the longest wait, in milliseconds. */
export interface Backoff {
  readonly baseMs: number;
  readonly capMs: number;
}

/**
 * The wait before retry number `retry` (1 = the first): a random part of `base · 2^(retry-1)`,
 * capped.
 */
export function backoffMs(backoff: Backoff, retry: number, random: () => number = Math.random): number {
  const ceiling = Math.min(backoff.capMs, backoff.baseMs * 2 ** Math.min(retry - 1, 30));
  return Math.ceil(random() * ceiling);
}
