// The options of a SyncService, with every default and its reason. Read by client.ts, transport.ts
// and call.ts.
import type { Clock } from "../core/clock.ts";
import type { ErrorKind } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Limiter, Permit } from "../core/limiter.ts";
import type { Operation, PathForm } from "./operations.ts";
import type { TlsFiles } from "./tls-files.ts";
import type { TokenSource } from "./token.ts";

/** The limits of one HTTP exchange; only `requestMs`, the whole, stops an answer that drips. */
export interface Timeouts {
  readonly lookupMs: number;
  readonly connectMs: number;
  readonly secureConnectMs: number;
  /** Silence on the socket. */
  readonly socketMs: number;
  /** Sending the request. */
  readonly sendMs: number;
  /** From the request's end to the answer's head. */
  readonly responseMs: number;
  /** From the answer's head to its end. */
  readonly readMs: number;
  readonly requestMs: number;
}

/** Short until the request is sent: a repeat costs nothing. Long afterwards. */
export const defaultTimeouts: Timeouts = {
  lookupMs: 5_000,
  connectMs: 5_000,
  secureConnectMs: 5_000,
  socketMs: 30_000,
  sendMs: 10_000,
  responseMs: 30_000,
  readMs: 30_000,
  requestMs: 60_000,
};

/** The limits after sending where the whole may take so long: a slow answer begins in silence. */
export function timeoutsWithin(requestMs: number): Partial<Timeouts> {
  return { socketMs: requestMs, responseMs: requestMs, readMs: requestMs, requestMs };
}

/** The longest decoded body, 16 MiB: 160 KiB for each entity of a page of 100. */
export const defaultBodyBytesMax = 16 * 1024 * 1024;

/** How often a GET is tried again after its first try. */
export const defaultRetries = 2;

/** How many connections for reads one service may hold open. */
export const defaultMaxSockets = 8;

/** How identities are addressed: `ecmsync.userorgroup(…)`, `userorgroup(…)` or `userorgroup?…`. */
export type IdentityForm = "qualified" | "unqualified" | "query";

/**
 * Which values stand in single quotes in an identity path. The interface shows none. Services that
 * parse OData literals want `repository` (id is a GUID) or `all` (id is a string).
 */
export type QuoteStrings = "none" | "repository" | "all";

/** One finished call, for metrics. */
export interface RequestEvent {
  readonly operation: Operation;
  readonly method: string;
  /** Status of the last answer; undefined when none came. */
  readonly status: number | undefined;
  /** Undefined after a success. */
  readonly kind: ErrorKind | undefined;
  /** As of the error: whether the request may have been carried out; undefined after a success. */
  readonly sent: "no" | "maybe" | undefined;
  readonly durationMs: number;
  /** HTTP exchanges made; 0 when the call failed before the first. */
  readonly tries: number;
}

/** How to reach one service. */
export interface ServiceOptions {
  /** http(s) URL without userinfo, query and fragment; may have a path. */
  readonly baseUrl: string;
  readonly token: TokenSource;
  /** Authorities and a client certificate; default: Node's own authorities. */
  readonly tls?: TlsFiles | undefined;
  /** Default `parentheses`. */
  readonly pathForm?: PathForm | undefined;
  /** Default `qualified`. */
  readonly identityForm?: IdentityForm | undefined;
  /** Default `none`. */
  readonly quoteStrings?: QuoteStrings | undefined;
  /** Replaces single limits of {@link defaultTimeouts}. */
  readonly timeouts?: Partial<Timeouts> | undefined;
  /** The longest decoded body, in bytes; default {@link defaultBodyBytesMax}. */
  readonly bodyBytesMax?: number | undefined;
  /** Repeats of a failed GET; default {@link defaultRetries}. Other methods are never repeated. */
  readonly retries?: number | undefined;
  /** Connections kept for reads; default {@link defaultMaxSockets}. */
  readonly maxSockets?: number | undefined;
  /**
   * Logs `request.retried`, `request.stuck`, `token.renewed`, `token.too-short`, `token.unusable`,
   * `link.rebased` and `link.refused`; default: no log.
   */
  readonly log?: EventLog | undefined;
  readonly clock?: Clock | undefined;
  /**
   * Asked before every exchange; default: no limits. A read waits up to 2 s for it, a follow-up or
   * an update 15 s for our own limits, a start not at all. A denied one is a ServiceError of kind
   * `throttled` with `deniedBy`.
   */
  readonly limiter?: Limiter | undefined;
  /** Called once at the end of every call but one that a bug ends; must not throw. */
  readonly onRequest?: ((event: RequestEvent) => void) | undefined;
}

/** For every call. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** For the whole exchange in milliseconds; default: the client's time-outs. */
  readonly timeoutMs?: number | undefined;
  /** A follow-up waits 15 s for the limiter, not 2 s. Updates and further pages always are one. */
  readonly isFollowUp?: boolean | undefined;
}

/** For the four updates. */
export interface UpdateOptions extends CallOptions {
  /** Sent as `If-Match`: an entity's `@odata.etag`, or `*`. The interface knows no ETag. */
  readonly ifMatch?: string | undefined;
}

/** For run, activate and delete: requests that must not happen twice. */
export interface StartOptions extends CallOptions {
  /** Sent as `Idempotency-Key`, 1 to 255 printable ASCII characters. Nothing relies on it. */
  readonly idempotencyKey?: string | undefined;
  /** Asked on the open connection, before the first byte: `false` is `cancelled`, `sent: "no"`. */
  readonly beforeSend?: (() => boolean) | undefined;
  /** Ends waits for token and connection: `cancelled`, `sent: "no"`. Cuts no request off. */
  readonly abortBeforeSend?: AbortSignal | undefined;
  /** A permit for the first exchange. If none happens, the caller releases it. */
  readonly permit?: Permit | undefined;
}

/** The properties to change, and only those: a read-only one is a 400. */
export type Changes = Readonly<Record<string, unknown>>;
