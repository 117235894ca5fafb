// The log, the single door to pino: one event a line in JSON, named `noun.verb`. Callers pass
// simple fields, never errors, requests or settings. If one comes all the same, only its name and
// message are written. Every text passes the masking of core/secrets.ts.
import { pino, stdTimeFunctions } from "pino";
import { UsageError } from "../core/errors.ts";
import type { EventFields, EventLog } from "../core/event-log.ts";
import { withoutSecrets } from "../core/secrets.ts";

const levels = ["debug", "info", "warn", "error", "silent"];

/** Makes the log: lines of this level and above. @throws UsageError for an unknown level. */
export function createLogger(level: string, writeLine: (line: string) => void): EventLog {
  if (!levels.includes(level)) throw new UsageError(`SYNCLINE_LOG_LEVEL is "${level}"; it can be ${levels.join(", ")}`);
  const options = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  // pino's own destination would flush for ever once the reader of standard output is gone.
  const logger = pino(options, { write: (line) => writeLine(line.trimEnd()) });
  const write =
    (method: "info" | "warn" | "error") =>
    (event: string, fields: EventFields = {}) =>
      logger[method](toSafeFields(event, fields));
  return { info: write("info"), warn: write("warn"), error: write("error") };
}

function toSafeFields(event: string, fields: EventFields): Record<string, EventFields[string]> {
  // Copied whole: V8 makes a slow dictionary of an object that grows by many computed names.
  const safe: Record<string, EventFields[string]> = { event, ...fields };
  for (const name of Object.keys(fields)) {
    const value = toSafe(safe[name]);
    if (value !== safe[name]) safe[name] = value;
  }
  return safe;
}

/** Takes `unknown`: values that the types forbid are those that would leak. */
function toSafe(value: unknown): EventFields[string] {
  if (typeof value === "string") return withoutSecrets(value);
  if (typeof value === "number" || typeof value === "boolean" || value === null || value === undefined) return value;
  if (Array.isArray(value))
    return value.map((item: unknown) => (typeof item === "number" ? item : String(toSafe(item))));
  if (value instanceof Error) return withoutSecrets(`${value.name}: ${value.message}`);
  return "(not shown)";
}
