// Errors that the operator can correct, texts of errors, and the kinds of failed exchanges: all
// that decisions look at, never a message. cli/program.ts turns each class into its exit code; any
// other error is a bug.

/** Wrong use or configuration: exit code 2. The message says what, where, why and what to do. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Rightly asked, but not possible as things are now. */
export class ConflictError extends UsageError {}

/** The message of an error, without ioredis's advice about options that an operator cannot set. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.name === "MaxRetriesPerRequestError" ? "Redis is out of reach" : error.message;
}

/** The first line of an error's message: CEL and yaml put the source below it. */
export function firstLine(error: unknown): string {
  return errorText(error).split("\n", 1)[0] ?? "";
}

/** The code of a system error, such as `ENOENT`; without one the other text, or the whole error. */
export function errorCode(error: unknown, otherwise = String(error)): string {
  return error instanceof Error && "code" in error ? String(error.code) : otherwise;
}

/** The stack of an error for the log, or its message. */
export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Redis or the service did not answer: exit code 3. */
export class OutOfReachError extends Error {
  override readonly name = "OutOfReachError";
}

/** Every kind of failure that an exchange with the service can have. */
export const errorKinds = [
  "bad-request",
  "not-found",
  "unauthorized",
  "forbidden",
  "throttled",
  "undocumented",
  "server",
  "unreachable",
  "answer-lost",
  "contract",
  "paging",
  "cancelled",
] as const;

/**
 * The cause of a failure: `bad-request` 400; `not-found` 404; `unauthorized` 401; `forbidden` 403;
 * `throttled` 429, or 503 with Retry-After; `undocumented` another 4xx, which does not say whether
 * the request was carried out; `server` another 5xx; `unreachable` surely not sent; `answer-lost`
 * sent, no whole answer (also 408, 502, 504; a 2xx to a start counts without its body); `contract`
 * an answer of the wrong shape or size, a redirect, a 1xx that ends nothing, a 404 of a proxy;
 * `paging` a link that loops, leaves the origin or never ends; `cancelled` stopped by this process,
 * not by a person.
 */
export type ErrorKind = (typeof errorKinds)[number];
