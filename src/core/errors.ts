// Errors that a person at the command line can mend. program.ts turns each into its exit code; anything else is a bug.

/** Wrong use or a wrong configuration: exit code 2. The message says what, where, why and what to do. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Redis or the service did not answer: exit code 3. */
export class OutOfReachError extends Error {
  override readonly name = "OutOfReachError";
}
