// The log for the rest of the code: named events with flat fields. ops/logger.ts writes it.
import type { Clock } from "./clock.ts";

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

/** A mistake that goes on is logged so often: its alert looks back half an hour. */
export const bugEveryMs = 600_000;

const quietMs = 60_000;
const kindsMax = 1_000;

/** Passes a warning at most once a minute for each event and value of the field `subject`. */
export function createRateLimitedLog(log: EventLog, clock: Clock, subject: string): EventLog {
  const last = new Map<string, { atMs: number; leftOut: number }>();
  const warn = (event: string, fields: EventFields = {}) => {
    const key = `${event} ${String(fields[subject])}`;
    const nowMs = clock.monotonicMs();
    const known = last.get(key);
    if (known !== undefined && nowMs - known.atMs < quietMs) {
      known.leftOut += 1;
      return;
    }
    if (last.size >= kindsMax) last.clear();
    last.set(key, { atMs: nowMs, leftOut: 0 });
    log.warn(event, known === undefined || known.leftOut === 0 ? fields : { ...fields, leftOut: known.leftOut });
  };
  return { info: log.info, warn, error: log.error };
}
