// What a scheduler knows of pauses: read once a look, and every change told in the log, also when a pause ends by itself.
// Called by the scheduler through a function; never decides what a pause means (plan-slots.ts does).
import type { EventLog } from "../core/event-log.ts";
import { isInForce, type Pause, pauseId } from "../tasks/pause.ts";

/** Reads all pauses that may still touch a slot. `nowMs` is the time that decides what is due; it was taken before. */
export type ReadPauses = (nowMs: number) => Promise<readonly Pause[]>;

/** Makes a reader that logs `pause.set` and `pause.cleared`. What had ended before the first reading is not told. */
export function createPauseWatch(readAll: () => Promise<readonly Pause[]>, log: EventLog): ReadPauses {
  const told = new Map<string, "set" | "cleared">();
  let isFirst = true;
  return async (nowMs) => {
    const pauses = await readAll();
    for (const pause of pauses) {
      const id = pauseId(pause);
      const isOver = pause.untilMs !== null && !isInForce(pause, Math.max(nowMs, pause.sinceMs));
      if (isFirst && isOver) told.set(id, "cleared");
      // A quarantine is told by the worker that set it, and its end by a success too; the rest of its ends is seen here only.
      if (pause.cause === undefined) {
        if (!told.has(id)) log.info("pause.set", fieldsOf(pause));
        if (isOver && told.get(id) !== "cleared") log.info("pause.cleared", { ...fieldsOf(pause), by: pause.endedBy });
      } else if (isOver && told.get(id) !== "cleared" && !isBySuccess(pause)) {
        log.info("policy.released", { policy: pause.name, by: pause.endedBy });
      }
      told.set(id, isOver ? "cleared" : "set");
    }
    const kept = new Set(pauses.map(pauseId));
    for (const id of told.keys()) if (!kept.has(id)) told.delete(id);
    isFirst = false;
    return pauses;
  };
}

function isBySuccess({ endedBy }: Pause): boolean {
  return endedBy?.startsWith("a success") ?? false;
}

function fieldsOf({ scope, name, note, actor, sinceMs, untilMs }: Pause) {
  const until = untilMs === null ? null : new Date(untilMs).toISOString();
  return { scope, name, note, actor, since: new Date(sinceMs).toISOString(), until };
}
