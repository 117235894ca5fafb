// What a SyncService can be told, with every default and its reason in one place. Read by client.ts, transport.ts and retry.ts.
import type { Clock } from "../core/clock.ts";
import type { ErrorKind } from "../core/error-kind.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Gate, Pass } from "../core/gate.ts";
import type { Operation, PathForm } from "./operations.ts";
import type { TlsFiles } from "./tls-files.ts";
import type { TokenSource } from "./token.ts";

/** The time limits of one HTTP exchange, in milliseconds. `requestMs` bounds all of it and alone stops a dripping answer. */
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

/** Short until the request is out, because nothing is lost by trying again; patient afterwards, because something is. */
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

/** Longest decoded body that is read: 16 MiB. A page of 100 entities has room for 160 KiB each. */
export const defaultBodyBytesMax = 16 * 1024 * 1024;

/** How often a GET is tried again after its first try. */
export const defaultRetries = 2;

/** Connections for reads that one service may hold open at a time. */
export const defaultMaxSockets = 8;

/** How identities are addressed: `ecmsync.userorgroup(…)`, `userorgroup(…)` or `userorgroup?…`. Source: service-interface §4.1, §4.2. */
export type IdentityForm = "qualified" | "unqualified" | "query";

/**
 * Which values stand in single quotes in an identity path. The interface shows none, so `none` is the default; services that
 * read the values as OData literals want `repository` (id is a GUID) or `all` (id is a string). Ignored by the form `query`.
 */
export type QuoteStrings = "none" | "repository" | "all";

/** One finished call, for metrics: the tries behind it are counted, not listed. */
export interface RequestEvent {
  readonly operation: Operation;
  readonly method: string;
  /** Status of the last answer; undefined when none came. */
  readonly status: number | undefined;
  /** Undefined when the call went well. */
  readonly kind: ErrorKind | undefined;
  readonly durationMs: number;
  /** HTTP exchanges made, 0 when the call failed before the first. */
  readonly tries: number;
}

/** How to reach one service. */
export interface ServiceOptions {
  /** http(s) URL without userinfo, query and fragment; may have a path. */
  readonly baseUrl: string;
  readonly token: TokenSource;
  /** Authorities and a client certificate; Node's own authorities unless set. */
  readonly tls?: TlsFiles | undefined;
  /** `parentheses` unless set. */
  readonly pathForm?: PathForm | undefined;
  /** `qualified` unless set. */
  readonly identityForm?: IdentityForm | undefined;
  /** `none` unless set. */
  readonly quoteStrings?: QuoteStrings | undefined;
  /** Overrides single limits of {@link defaultTimeouts}. */
  readonly timeouts?: Partial<Timeouts> | undefined;
  /** Longest decoded body, in bytes; {@link defaultBodyBytesMax} unless set. */
  readonly bodyBytesMax?: number | undefined;
  /** Further tries of a GET; {@link defaultRetries} unless set, 0 switches them off. Other methods are never repeated. */
  readonly retries?: number | undefined;
  /** Connections kept for reads; {@link defaultMaxSockets} unless set. */
  readonly maxSockets?: number | undefined;
  /** Gets `request.retried`, `token.renewed` and `link.rebased`; silent unless set. */
  readonly log?: EventLog | undefined;
  readonly clock?: Clock | undefined;
  /** Asked before every exchange; without one, nothing holds a request back. A read waits up to 2 s for it in place, nothing else waits at all: what is held then is a ServiceError of kind `throttled` with `sent: "no"` and `heldBy`. */
  readonly gate?: Gate | undefined;
  /** Called once at the end of every call; must not throw. */
  readonly onRequest?: ((event: RequestEvent) => void) | undefined;
}

/** Per call: how long, and what stops it. */
export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** For the whole exchange in milliseconds; the default time-outs unless set. */
  readonly timeoutMs?: number | undefined;
  /** It goes on with what an earlier request began, so it waits longer in place for its turn by our own limits. Updates and further pages always do. */
  readonly goesOn?: boolean | undefined;
}

/** For the four updates. */
export interface UpdateOptions extends CallOptions {
  /** Sent as `If-Match`: an entity's `@odata.etag`, or `*`. Without it nothing is sent: the interface knows no ETag, some services do. */
  readonly ifMatch?: string | undefined;
}

/** For run, activate and delete: what must not happen twice. */
export interface StartOptions extends CallOptions {
  /** Sent as the header `Idempotency-Key`, 1 to 255 printable ASCII characters. Helps only where a proxy or a later version of the service honours it: nothing in Syncline relies on it. */
  readonly idempotencyKey?: string | undefined;
  /** Asked when the connection stands, right before the first byte leaves. On `false` nothing is sent: kind `cancelled`, `sent: "no"`. */
  readonly maySend?: (() => boolean) | undefined;
  /** Ends the wait for a token, before the request or after a 401, and for the connection: kind `cancelled`, `sent: "no"`. Unlike `signal` it cuts no request off. */
  readonly untilSent?: AbortSignal | undefined;
  /** A pass of the gate that the caller has already: the first exchange goes by it. Should there be none, the caller leaves it. */
  readonly pass?: Pass | undefined;
}

/** Properties to change, and only those: sending a read-only one is a 400. Source: service-interface §4.3. */
export type Changes = Readonly<Record<string, unknown>>;
