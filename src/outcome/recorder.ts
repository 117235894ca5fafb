// Writes a task's outcome: to the history first, then exactly one log line for whoever wrote it there.
// Called by work/ at the end of every task. A task that has its outcome already keeps it.
import type { EventLog } from "../core/event-log.ts";
import { isGood, type Outcome } from "../tasks/outcome.ts";

/** What the recorder needs of the history (store/history.ts). */
export interface OutcomeHistory {
  record(outcome: Outcome): Promise<boolean>;
}

/** Records an outcome, once. */
export type RecordOutcome = (outcome: Outcome) => Promise<void>;

/** Makes the recorder. */
export function createRecorder(history: OutcomeHistory, log: EventLog): RecordOutcome {
  return async (outcome) => {
    if (!(await history.record(outcome))) return;
    const { v: _version, ...fields } = outcome;
    const level = isGood[outcome.status] ? "info" : outcome.status === "conflicts" ? "warn" : "error";
    log[level]("task.finished", fields);
  };
}
