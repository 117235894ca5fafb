// A log for warnings that repeat during an outage: once a minute, with the number left out.
import type { Clock } from "./clock.ts";
import type { EventFields, EventLog } from "./event-log.ts";

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
