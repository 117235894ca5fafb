// Reads the pauses for the scheduler, and logs when one begins or ends. Called once a round.
import type { EventLog } from "../core/event-log.ts";
import { endedBySuccess, isInForce, type Pause, pauseId } from "../model/pause.ts";

/** Reads all pauses that may still touch a slot. `nowMs`: the time that decides what is due. */
export type ReadPauses = (nowMs: number) => Promise<readonly Pause[]>;

/** Creates a reader that logs `pause.set` and `pause.cleared`, except for what ended earlier. */
export function createPauseReader(readAll: () => Promise<readonly Pause[]>, log: EventLog): ReadPauses {
  const logged = new Map<string, "set" | "cleared">();
  let isFirst = true;
  return async (nowMs) => {
    const pauses = await readAll();
    for (const pause of pauses) {
      const id = pauseId(pause);
      const isOver = pause.untilMs !== null && !isInForce(pause, Math.max(nowMs, pause.sinceMs));
      if (isFirst && isOver) logged.set(id, "cleared");
      // The worker that sets a quarantine logs it, and its end by a success too; the other ends are
      // logged here only.
      if (pause.cause === undefined) {
        if (!logged.has(id)) log.info("pause.set", fieldsOf(pause));
        if (isOver && logged.get(id) !== "cleared")
          log.info("pause.cleared", { ...fieldsOf(pause), by: pause.endedBy });
      } else if (isOver && logged.get(id) !== "cleared" && !isBySuccess(pause)) {
        log.info("policy.released", { policy: pause.name, by: pause.endedBy });
      }
      logged.set(id, isOver ? "cleared" : "set");
    }
    const kept = new Set(pauses.map(pauseId));
    for (const id of logged.keys()) if (!kept.has(id)) logged.delete(id);
    isFirst = false;
    return pauses;
  };
}

function isBySuccess({ endedBy }: Pause): boolean {
  return endedBy?.startsWith(endedBySuccess) ?? false;
}

function fieldsOf({ scope, name, note, actor, sinceMs, untilMs }: Pause) {
  const until = untilMs === null ? null : new Date(untilMs).toISOString();
  return { scope, name, note, actor, since: new Date(sinceMs).toISOString(), until };
}
