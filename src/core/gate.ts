// The gate of a service: asked before every exchange, told how each one ended. The port between the client, which asks, and
// store/service-gate.ts, which answers for all replicas. A client without a gate asks nobody.
import type { ErrorKind } from "./error-kind.ts";
import { hashText } from "./stable-hash.ts";

/** What holds a request back: the service asked for patience, it fails all the time, one of our own limits is reached, or there is no token for it. */
export type HeldBy = "throttle" | "breaker" | "concurrency" | "rate" | "token";

/** Whether what holds a request back is one of our own limits: others go out meanwhile, and a turn comes. */
export function isOwnLimit(heldBy: HeldBy | undefined): boolean {
  return heldBy === "rate" || heldBy === "concurrency";
}

/** A request must not go out yet. `waitMs`: how long to wait before asking again, 0 or more, never shorter than what the service asked for. */
export interface Hold {
  readonly heldBy: HeldBy;
  readonly waitMs: number;
}

/** How an exchange ended: its kind of failure, undefined when it went well, and the wait that the service asked for. */
export interface ExchangeEnding {
  readonly kind: ErrorKind | undefined;
  readonly retryAfterMs: number | undefined;
}

/** An ending that says nothing of the service. */
export const unsaid: ExchangeEnding = { kind: "cancelled", retryAfterMs: undefined };

/** The permission for one exchange. `leave` gives it back, once, and never throws; leaving again does nothing. */
export interface Pass {
  /** How this exchange ends decides for all others: whoever goes on after it waits until that is told. */
  readonly isProbe?: boolean;
  leave(ending: ExchangeEnding): Promise<void>;
}

/** A request that wants through. `subject`: what it is about (`requestSubject`); without one it may be about anything. */
export interface GateRequest {
  readonly isRead: boolean;
  readonly subject?: string | undefined;
}

/** Lets requests to one service through, or holds them back. */
export interface Gate {
  /** Asks for one exchange. Only a read may be the probe of a service whose breaker is open. */
  enter(request: GateRequest): Promise<Pass | Hold>;
}

/** Names what a request is about: one thing of a repository, whatever is done to it, or one list. 16 hex digits. */
export function requestSubject(target: {
  readonly repository?: string | null | undefined;
  readonly key?: string | number | undefined;
  readonly operation?: string;
}): string {
  const { repository = null, key, operation = "" } = target;
  return hashText(JSON.stringify([repository, key === undefined ? operation : String(key)]));
}

/** What an exchange says about the health of its service. */
export type Health = "failing" | "alive" | "silent";

/**
 * What each kind of failure says of the service: `failing` counts towards the breaker, `alive` ends the count, `silent` says
 * nothing. A refusal of one request shows a service that works; a refused token is of no use to any request (design §7).
 */
export const healthOf: Readonly<Record<ErrorKind, Health>> = {
  "bad-request": "alive",
  "not-found": "alive",
  unauthorized: "failing",
  forbidden: "failing",
  throttled: "alive",
  server: "failing",
  unreachable: "failing",
  unknown: "failing",
  contract: "alive",
  paging: "silent",
  cancelled: "silent",
};

/** Tells a hold from a pass. */
export function isHold(answer: Pass | Hold): answer is Hold {
  return "heldBy" in answer;
}
