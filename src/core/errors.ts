// Errors that the operator can correct, and the texts of errors. cli/program.ts turns each class
// into its exit code; any other error is a bug.

/** Wrong use or configuration: exit code 2. The message says what, where, why and what to do. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The message of an error, without ioredis's advice about options that an operator cannot set. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.name === "MaxRetriesPerRequestError" ? "Redis is out of reach" : error.message;
}

/** The code of a system error, such as `ENOENT`; the whole error as text without one. */
export function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}

/** The stack of an error for the log, or its message. */
export function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Redis or the service did not answer: exit code 3. */
export class OutOfReachError extends Error {
  override readonly name = "OutOfReachError";
}
