// Records a task's outcome in the history, then publishes it: one log line, and the watches. A
// recorder that dies in between leaves the outcome unpublished, and the next worker with the task
// publishes it: at least once, with the same taskId. Called by process-task.ts at the end of every
// task. A recorded outcome never changes.

import { Batcher } from "../core/batcher.ts";
import type { EventLog } from "../core/event-log.ts";
import { isGood, type Outcome } from "../model/outcome.ts";
import type { OutcomeName, Recorded, SettleFrom } from "../store/history.ts";
import type { PollNote } from "../store/poll-store.ts";

/** The part of store/history.ts that the recorder uses. */
export interface OutcomeHistory {
  record(outcome: Outcome, from?: SettleFrom, poll?: PollNote): Promise<Recorded>;
  recordAlone(outcome: Outcome): Promise<boolean>;
  published(taskIds: readonly string[]): Promise<void>;
  claimUnpublished(task: OutcomeName): Promise<Outcome | number | undefined>;
}

/**
 * What became of a task. `ended`: recorded now. `ended-no-followers`: the same, and no chain waits
 * for it. `already-recorded`: it had its outcome, published or not. `superseded`: its start, or the
 * note of a poll, has gone further than the outcome knows.
 */
export type Ended = "ended" | "ended-no-followers" | "already-recorded" | "superseded";

/** The recorder. */
export interface Recorder {
  /** Records an outcome once, and publishes it. */
  readonly record: (outcome: Outcome, from?: SettleFrom, poll?: PollNote) => Promise<Ended>;
  /**
   * Records and publishes an outcome without its other writes (journal, poll note), where those
   * fail.
   */
  readonly recordAlone: (outcome: Outcome) => Promise<void>;
  /**
   * Publishes the outcome of a task if no worker has. Returns until when another worker may still
   * do so.
   */
  readonly republish: (task: OutcomeName) => Promise<number | undefined>;
}

const endedBy: Readonly<Record<Recorded, Ended>> = {
  recorded: "ended-no-followers",
  "recorded-awaited": "ended",
  "already-recorded": "already-recorded",
  superseded: "superseded",
};

/**
 * Creates the recorder. `alsoPublish` follows the log line, and like it is repeated after a crash.
 */
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
    // Not awaited: without this note the outcome is published once more, should its task be
    // delivered again.
    published.add(outcome.taskId).catch(() => {});
  };
  return {
    record: async (outcome, from, poll) => {
      const recorded = await history.record(outcome, from, poll);
      if (recorded === "recorded" || recorded === "recorded-awaited") await publish(outcome);
      return endedBy[recorded];
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
