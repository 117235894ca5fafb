// Decides whether and when one call repeats a request. Only reads are repeated. Pure; called by
// call.ts.
import { backoffMs } from "../core/clock.ts";
import { type DeniedBy, isOwnLimit } from "../core/limiter.ts";
import type { ServiceError } from "./service-error.ts";

const backoff = { baseMs: 500, capMs: 10_000 } as const;

/** How long a read may wait in place. A longer wait goes back to the queue and frees the worker. */
const waitInPlaceMsMax = 2_000;

/**
 * Follow-up requests wait this long for the limiter. If they gave up, the first request would come
 * again and take the permit, and a tight limit would never let the second one out.
 */
export const waitToGoOnMsMax = 15_000;

/** How long a request may wait in place for the limiter, in milliseconds. */
export function waitForLimiterMsMax(
  { isRead, isFollowUp }: { readonly isRead: boolean; readonly isFollowUp: boolean },
  deniedBy: DeniedBy,
): number {
  if (isFollowUp && isOwnLimit(deniedBy)) return waitToGoOnMsMax;
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

/** The wait before the next try in milliseconds; undefined when the call fails now. */
export function retryWaitMs(error: ServiceError, state: RetryState): number | undefined {
  const { method, kind, deniedBy, retryAfterMs = 0 } = error;
  if (method !== "GET" || state.tries > state.retriesMax) return undefined;
  if (kind !== "throttled" && kind !== "unreachable" && kind !== "server" && kind !== "unknown") return undefined;
  // A denied request has waited in place already. A long wait belongs to the queue, which shares it
  // with every replica.
  if (deniedBy !== undefined || retryAfterMs > waitInPlaceMsMax) return undefined;
  return Math.max(retryAfterMs, backoffMs(backoff, state.tries, state.random));
}
