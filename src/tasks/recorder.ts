// Records a task's outcome in the history, then publishes it: one log line, and the watches. After
// a crash in between, the next worker with the task publishes it: at least once, with the same
// taskId. Called by finish.ts. A recorded outcome never changes.
import { Batcher } from "../core/batcher.ts";
import type { EventLog } from "../core/event-log.ts";
import { isGood, type Outcome } from "../model/outcome.ts";
import type { History, OutcomeName, RecordResult, SettleFrom } from "../store/history.ts";
import type { PollNote } from "../store/poll-store.ts";

/** The part of the history that the recorder uses. */
export type OutcomeHistory = Pick<History, "record" | "recordAlone" | "published" | "claimUnpublished">;

/** The recorder. */
export interface Recorder {
  /** Records an outcome once, and publishes it. */
  readonly record: (outcome: Outcome, from?: SettleFrom, poll?: PollNote) => Promise<RecordResult>;
  /** Does so without the other writes (journal, poll note), where those fail. */
  readonly recordAlone: (outcome: Outcome) => Promise<void>;
  /** Publishes an outcome if no worker has. Returns until when another worker may still do so. */
  readonly republish: (task: OutcomeName) => Promise<number | undefined>;
}

/** Creates the recorder. `alsoPublish` follows the log line, and is repeated like it. */
export function createRecorder(
  history: OutcomeHistory,
  log: EventLog,
  alsoPublish: (outcome: Outcome) => Promise<void> = async () => {},
): Recorder {
  const published = new Batcher<string>((taskIds) => history.published(taskIds));
  const publish = async (outcome: Outcome) => {
    const { v: _version, ...fields } = outcome;
    const level = isGood[outcome.status] ? "info" : outcome.status === "conflicts" ? "warn" : "error";
    log[level]("task.finished", fields);
    await alsoPublish(outcome);
    // Not awaited: without this note the outcome is only published once more.
    published.add(outcome.taskId).catch(() => {});
  };
  return {
    record: async (outcome, from, poll) => {
      const recorded = await history.record(outcome, from, poll);
      if (isWritten(recorded)) await publish(outcome);
      return recorded;
    },
    recordAlone: async (outcome) => {
      if (await history.recordAlone(outcome)) await publish(outcome);
    },
    republish: async (task) => {
      const unpublished = await history.claimUnpublished(task);
      if (typeof unpublished === "number") return unpublished;
      if (unpublished !== undefined) await publish(unpublished);
      return undefined;
    },
  };
}

/** Whether the outcome was written now. */
export function isWritten(recorded: RecordResult): boolean {
  return recorded === "recorded" || recorded === "recorded-awaited";
}
