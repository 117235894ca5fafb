// Errors that a person at the command line can mend. program.ts turns each into its exit code; anything else is a bug. And what an
// error is called where it is told.

/** Wrong use or a wrong configuration: exit code 2. The message says what, where, why and what to do. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** What went wrong, in one text: the message, without a library's advice about options that nobody here can set. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.name === "MaxRetriesPerRequestError" ? "Redis is out of reach" : error.message;
}

/** Redis or the service did not answer: exit code 3. */
export class OutOfReachError extends Error {
  override readonly name = "OutOfReachError";
}
