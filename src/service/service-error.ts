// The one error that the client throws. Built from allowed fields only: never a token, a header, a query or a whole body,
// and never with the HTTP library's error attached, because loggers print what is attached.
import type { ErrorKind } from "../core/error-kind.ts";
import type { HeldBy } from "../core/gate.ts";
import type { Operation } from "./operations.ts";

/** Why a walk over pages ended early. */
export type PagingReason =
  | "empty-link"
  | "malformed-link"
  | "link-too-long"
  | "link-userinfo"
  | "link-scheme"
  | "link-outside-base-path"
  | "link-other-collection"
  | "repeated-link"
  | "repeated-items"
  | "pages-max"
  | "items-max"
  | "empty-pages-max"
  | "deadline"
  | "expired";

/** What a {@link ServiceError} is made from. */
export interface ServiceErrorFields {
  readonly kind: ErrorKind;
  readonly operation: Operation;
  readonly method: string;
  /** Path of the request, without the query. */
  readonly path: string;
  /** `no`: the request surely did not leave this machine or was never made; `maybe`: it may have been carried out. */
  readonly sent: "no" | "maybe";
  /** What happened, in words: no secret, control characters escaped. */
  readonly problem: string;
  readonly status?: number | undefined;
  /** How long the service asked to wait, 0 to 900,000 ms; or how long our own gate says to. */
  readonly retryAfterMs?: number | undefined;
  /** What of our own held the request back, so that nothing was sent; undefined when nothing did. */
  readonly heldBy?: HeldBy | undefined;
  /** The id under which the service's own log knows the exchange. */
  readonly correlationId?: string | undefined;
  /** What the interface says of this status for this operation; undefined where it says nothing. */
  readonly documented?: string | undefined;
  /** What the service said, at most 200 characters, secrets taken out. */
  readonly answer?: string | undefined;
  /** The operating system's or the HTTP library's error code, such as `ECONNREFUSED`. */
  readonly code?: string | undefined;
  /** For the kind `paging`: why. */
  readonly reason?: PagingReason | undefined;
}

/** An exchange with the service that failed. Decide by `kind` and `sent`, never by the message (design §7). */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly kind: ErrorKind;
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  readonly sent: "no" | "maybe";
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly heldBy: HeldBy | undefined;
  readonly correlationId: string | undefined;
  readonly documented: string | undefined;
  readonly answer: string | undefined;
  readonly code: string | undefined;
  readonly reason: PagingReason | undefined;

  constructor(fields: ServiceErrorFields) {
    super(describe(fields));
    this.kind = fields.kind;
    this.operation = fields.operation;
    this.method = fields.method;
    this.path = fields.path;
    this.sent = fields.sent;
    this.status = fields.status;
    this.retryAfterMs = fields.retryAfterMs;
    this.heldBy = fields.heldBy;
    this.correlationId = fields.correlationId;
    this.documented = fields.documented;
    this.answer = fields.answer;
    this.code = fields.code;
    this.reason = fields.reason;
  }
}

function describe(fields: ServiceErrorFields): string {
  const parts = [`${fields.operation} (${fields.method} ${fields.path}): ${fields.problem}`];
  if (fields.documented !== undefined) parts.push(`the interface says: ${fields.documented}`);
  if (fields.answer !== undefined) parts.push(`the service says: ${fields.answer}`);
  return parts.join("; ");
}
