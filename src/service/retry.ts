// Decides whether and when one call repeats a request. Only reads are repeated. Pure; called by
// call.ts.
import { backoffMs } from "../core/backoff.ts";
import { type DeniedBy, isOwnLimit } from "../core/limiter.ts";
import type { ServiceError } from "./service-error.ts";

const backoff = { baseMs: 500, capMs: 10_000 } as const;

/**
 * How long a read may wait in place, for a busy service or the limiter. A longer wait goes back to
 * the queue and frees the worker's slot.
 */
const waitInPlaceMsMax = 2_000;

/**
 * Follow-up requests (a list's next page, an update after a read) wait this long for the limiter.
 * If they gave up, the first request would come again and take the permit, and a tight limit would
 * never let the second one out.
 */
export const waitToGoOnMsMax = 15_000;

/** How long a request may wait in place for the limiter, in milliseconds. */
export function waitForLimiterMsMax(
  { isRead, goesOn }: { readonly isRead: boolean; readonly goesOn: boolean },
  deniedBy: DeniedBy,
): number {
  if (goesOn && isOwnLimit(deniedBy)) return waitToGoOnMsMax;
  return isRead ? waitInPlaceMsMax : 0;
}

/** What the decision depends on. */
export interface RetryState {
  /** Tries made so far, 1 or more. */
  readonly tries: number;
  /** Retries allowed after the first try. */
  readonly retriesMax: number;
  readonly random?: () => number;
}

/**
 * The wait before the next try in milliseconds; undefined when the call fails now. Source: design
 * §7, "inside the call".
 */
export function retryWaitMs(error: ServiceError, state: RetryState): number | undefined {
  if (error.method !== "GET") return undefined;
  if (state.tries > state.retriesMax) return undefined;
  const wait = backoffMs(backoff, state.tries, state.random);
  if (error.kind === "throttled") {
    // A denied request has waited in place already.
    if (error.deniedBy !== undefined) return undefined;
    // A long wait belongs to the queue, which shares it with every replica.
    if ((error.retryAfterMs ?? 0) > waitInPlaceMsMax) return undefined;
    return Math.max(error.retryAfterMs ?? 0, wait);
  }
  if (error.kind === "unreachable" || error.kind === "server" || error.kind === "unknown") {
    return error.retryAfterMs !== undefined && error.retryAfterMs > waitInPlaceMsMax
      ? undefined
      : Math.max(error.retryAfterMs ?? 0, wait);
  }
  return undefined;
}
