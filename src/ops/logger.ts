// The log: the single door to pino. JSON lines on standard output, one event each, named `noun.verb`.
// Fields are simple values that the caller chose; errors, requests and settings are never passed in.
import { pino } from "pino";
import type { EventFields, EventLog } from "../core/event-log.ts";

/** Where log lines go: a stream, or standard output when none is given. */
export interface LogTarget {
  readonly level: string;
  readonly stream?: { write(line: string): void } | undefined;
}

/** The log levels that may be asked for. */
export const logLevels = ["debug", "info", "warn", "error", "silent"] as const;

/** Makes the log of this process. */
export function createLogger({ level, stream }: LogTarget): EventLog {
  const options = {
    level,
    base: null,
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  const logger = stream === undefined ? pino(options) : pino(options, stream);
  const write = (method: "info" | "warn" | "error") => (event: string, fields?: EventFields) =>
    logger[method]({ event, ...fields });
  return { info: write("info"), warn: write("warn"), error: write("error") };
}
