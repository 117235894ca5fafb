// The one error that the client throws. It never holds a token, a header, a query, a whole body or
// the HTTP library's error, because loggers print attached errors.
import type { ErrorKind } from "../core/errors.ts";
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

type RequiredField = "kind" | "operation" | "method" | "path" | "sent";

/** What a {@link ServiceError} is made of. `problem`: what happened, in words, without secrets. */
export type ServiceErrorFields = Pick<ServiceError, RequiredField> &
  Partial<Omit<ServiceError, RequiredField | keyof Error>> & { readonly problem: string };

/** A failed exchange with the service. Decide by `kind` and `sent`, never by the message. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  declare readonly kind: ErrorKind;
  declare readonly operation: Operation;
  declare readonly method: string;
  /** Path of the request, without the query. */
  declare readonly path: string;
  /**
   * `no`: it did not leave, or after a 401 there was no token; `maybe`: all else, also where `kind`
   * says that it was refused.
   */
  declare readonly sent: "no" | "maybe";
  declare readonly status: number | undefined;
  /** How long the service or the limiter asks to wait, 0 to 900,000 ms. */
  declare readonly retryAfterMs: number | undefined;
  /** Why the limiter denied the request; undefined when it did not. */
  declare readonly deniedBy: DeniedBy | undefined;
  /** The id of the exchange in the service's own log. */
  declare readonly correlationId: string | undefined;
  /** What the interface says of this status for this operation. */
  declare readonly documented: string | undefined;
  /** The service's own words, at most 200 characters, secrets masked. */
  declare readonly answer: string | undefined;
  /** The operating system's or the HTTP library's error code, such as `ECONNREFUSED`. */
  declare readonly code: string | undefined;
  /** For the kind `paging`: why. */
  declare readonly reason: PagingReason | undefined;

  constructor({ problem, ...fields }: ServiceErrorFields) {
    const { operation, method, path, documented, answer } = fields;
    const parts = [`${operation} (${method} ${path}): ${problem}`];
    if (documented !== undefined) parts.push(`the interface says: ${documented}`);
    if (answer !== undefined) parts.push(`the service says: ${answer}`);
    super(parts.join("; "));
    Object.assign(this, fields);
  }
}
