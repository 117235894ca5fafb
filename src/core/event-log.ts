// The log for the rest of the code: named events with flat fields. ops/logger.ts writes it.

/** The fields of an event: simple values only, never a token, a body or an Error object. */
export type EventFields = Readonly<
  Record<string, string | number | boolean | null | undefined | readonly (string | number)[]>
>;

/**
 * Writes events named `noun.verb`: `info` for normal work, `warn` for what recovers by itself,
 * `error` for what needs an operator.
 */
export interface EventLog {
  info(event: string, fields?: EventFields): void;
  warn(event: string, fields?: EventFields): void;
  error(event: string, fields?: EventFields): void;
}

/** A log that drops everything; for tests and one-shot commands. */
export const silentLog: EventLog = { info: () => {}, warn: () => {}, error: () => {} };
