// The one error that the client throws. It never holds a token, a header, a query, a whole body or
// the HTTP library's error, because loggers print attached errors.
import type { ErrorKind } from "../core/error-kind.ts";
import type { DeniedBy } from "../core/limiter.ts";
import type { Operation } from "./operations.ts";

/** Why a walk over pages ended early. */
export type PagingReason =
  | "empty-link"
  | "malformed-link"
  | "link-too-long"
  | "link-userinfo"
  | "link-scheme"
  | "link-outside-base-path"
  | "link-other-origin"
  | "repeated-link"
  | "repeated-items"
  | "pages-max"
  | "items-max"
  | "empty-pages-max"
  | "deadline"
  | "expired";

/** The fields of a {@link ServiceError}. */
export interface ServiceErrorFields {
  readonly kind: ErrorKind;
  readonly operation: Operation;
  readonly method: string;
  /** Path of the request, without the query. */
  readonly path: string;
  /** `no`: the request surely did not leave; `maybe`: it may have been carried out. */
  readonly sent: "no" | "maybe";
  /** What happened, in words: no secret, control characters escaped. */
  readonly problem: string;
  readonly status?: number | undefined;
  /** How long the service or the limiter asks to wait, 0 to 900,000 ms. */
  readonly retryAfterMs?: number | undefined;
  /** Which of our own limits denied the request; undefined when none did. */
  readonly deniedBy?: DeniedBy | undefined;
  /** The id of the exchange in the service's own log. */
  readonly correlationId?: string | undefined;
  /** What the interface says of this status for this operation. */
  readonly documented?: string | undefined;
  /** The service's own words, at most 200 characters, secrets masked. */
  readonly answer?: string | undefined;
  /** The operating system's or the HTTP library's error code, such as `ECONNREFUSED`. */
  readonly code?: string | undefined;
  /** For the kind `paging`: why. */
  readonly reason?: PagingReason | undefined;
}

/** A failed exchange with the service. Decide by `kind` and `sent`, never by the message. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly kind: ErrorKind;
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  readonly sent: "no" | "maybe";
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly deniedBy: DeniedBy | undefined;
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
    this.deniedBy = fields.deniedBy;
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
