// The limiter of a service: the client acquires a permit before every exchange and releases it with
// the ending. store/service-limiter.ts answers for all replicas.
import type { ErrorKind } from "./errors.ts";
import { hashText } from "./stable-hash.ts";

/** Why a request is denied; `concurrency`, `rate` and `redis` (no answer of it) are our own. */
export type DeniedBy = "throttle" | "breaker" | "concurrency" | "rate" | "redis" | "token";

/** Whether we deny the request, not the service: a limit with a turn for it, or a silent Redis. */
export function isOwnLimit(deniedBy: DeniedBy | undefined): boolean {
  return deniedBy === "rate" || deniedBy === "concurrency" || deniedBy === "redis";
}

/** A denied request. `waitMs`: until the next try, at least what the service asked for. */
export interface Denial {
  readonly deniedBy: DeniedBy;
  readonly waitMs: number;
}

/** How an exchange ended. `kind`: none when it went well. `retryAfterMs`: the service's wish. */
export interface ExchangeEnding {
  readonly kind: ErrorKind | undefined;
  readonly retryAfterMs: number | undefined;
}

/** An ending that says nothing about the service. */
export const noEnding: ExchangeEnding = { kind: "cancelled", retryAfterMs: undefined };

/** The permit for one exchange. `release` never throws; a second call does nothing. */
export interface Permit {
  /** A probe decides for all other requests: its holder goes on only after the release. */
  readonly isProbe?: boolean;
  release(ending: ExchangeEnding): Promise<void>;
}

/** A request for a permit. `resource`: its `resourceKey`; undefined: it may be about anything. */
export interface LimiterRequest {
  readonly isRead: boolean;
  readonly resource?: string | undefined;
}

/** Permits or denies requests to one service. */
export interface Limiter {
  /** Asks for one exchange. Only a read may be the probe of an open breaker. */
  acquire(request: LimiterRequest): Promise<Permit | Denial>;
}

/** Names the resource of a request: one object of a repository, or one list; 16 hex digits. */
export function resourceKey(target: {
  readonly repository?: string | null | undefined;
  readonly key?: string | number | undefined;
  readonly operation?: string;
}): string {
  const { repository = null, key, operation = "" } = target;
  return hashText(JSON.stringify([repository, key === undefined ? operation : String(key)]));
}

/** What an exchange says about its service. */
export type ExchangeHealth = "failing" | "alive" | "silent";

/** `failing` counts towards the breaker, `alive` ends the count, `silent` says nothing. */
export const healthOf: Readonly<Record<ErrorKind, ExchangeHealth>> = {
  "bad-request": "alive",
  "not-found": "alive",
  unauthorized: "failing",
  forbidden: "failing",
  throttled: "alive",
  undocumented: "alive",
  server: "failing",
  unreachable: "failing",
  "answer-lost": "failing",
  contract: "alive",
  paging: "silent",
  cancelled: "silent",
};

/** Tells a denial from a permit. */
export function isDenied(answer: Permit | Denial): answer is Denial {
  return "deniedBy" in answer;
}
