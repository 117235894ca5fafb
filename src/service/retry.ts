// Whether and when a request is tried again inside one call. Pure; called by call.ts. Reads only: nothing else is ever repeated here.
import { backoffMs } from "../core/backoff.ts";
import { type HeldBy, isOwnLimit } from "../core/gate.ts";
import type { ServiceError } from "./service-error.ts";

const backoff = { baseMs: 500, capMs: 10_000 } as const;

/** How long a read may wait in place, for a service that asks for patience or for our own gate: whoever waits longer gives its place in the worker back. */
const waitInPlaceMsMax = 2_000;

/**
 * How long what goes on with something (a list's next page, an update after a look) waits in place for its turn by our own limits: if it gave
 * up, the request before would come again and take the turn, for ever where the limit is one in a while.
 */
export const waitToGoOnMsMax = 15_000;

/** How long a request may wait in place for the gate, in milliseconds. */
export function waitAtGateMsMax(
  { isRead, goesOn }: { readonly isRead: boolean; readonly goesOn: boolean },
  heldBy: HeldBy,
): number {
  if (goesOn && isOwnLimit(heldBy)) return waitToGoOnMsMax;
  return isRead ? waitInPlaceMsMax : 0;
}

/** What the decision rests on. */
export interface RetryState {
  /** Tries made so far, 1 or more. */
  readonly tries: number;
  /** Retries allowed after the first try. */
  readonly retriesMax: number;
  readonly random?: () => number;
}

/** The wait before the next try in milliseconds, or undefined when the failure stands. Source: design §7, "inside the call". */
export function retryWaitMs(error: ServiceError, state: RetryState): number | undefined {
  if (error.method !== "GET") return undefined;
  if (state.tries > state.retriesMax) return undefined;
  const wait = backoffMs(backoff, state.tries, state.random);
  if (error.kind === "throttled") {
    // What the gate holds back has waited in place already.
    if (error.heldBy !== undefined) return undefined;
    // A long pause belongs to the queue, which shares it with every replica.
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
