// Writes a task's outcome: to the history first, then one log line by whoever wrote it there. A recorder that dies in between leaves
// the task untold, and whoever gets the task again tells it: the line comes at least once, with the same taskId.
// Called by work/ at the end of every task. A task that has its outcome already keeps it.
import type { EventLog } from "../core/event-log.ts";
import { Gathered } from "../core/gathered.ts";
import type { Recorded, SettleFrom } from "../store/history.ts";
import type { PollNote } from "../store/poll-memories.ts";
import { isGood, type Outcome } from "../tasks/outcome.ts";

/** What the recorder needs of the history (store/history.ts). */
export interface OutcomeHistory {
  record(outcome: Outcome, from?: SettleFrom, poll?: PollNote): Promise<Recorded>;
  told(taskIds: readonly string[]): Promise<void>;
  untold(taskId: string): Promise<Outcome | number | undefined>;
}

/** What became of a task. `ended`: it is over. `ended-unawaited`: the same, and no chain waits for it. `stands`: it had its outcome before, told or not. `moved-on`: its start, or the memory of a poll, has gone further than the outcome knows. */
export type Ended = "ended" | "ended-unawaited" | "stands" | "moved-on";

/** The recorder. */
export interface Recorder {
  /** Records an outcome, once, and tells it. */
  readonly record: (outcome: Outcome, from?: SettleFrom, poll?: PollNote) => Promise<Ended>;
  /** Tells the outcome of a task that is over, if nobody did. Answers until when somebody else may still do so, if that is the case. */
  readonly retell: (taskId: string) => Promise<number | undefined>;
}

const endedBy: Readonly<Record<Recorded, Ended>> = {
  recorded: "ended-unawaited",
  "recorded-awaited": "ended",
  stands: "stands",
  "moved-on": "moved-on",
};

/** Makes the recorder. `alsoTell` is told after the log line, and like it more than once when somebody dies. */
export function createRecorder(
  history: OutcomeHistory,
  log: EventLog,
  alsoTell: (outcome: Outcome) => Promise<void> = async () => {},
): Recorder {
  const told = new Gathered<string>((taskIds) => history.told(taskIds));
  const tell = async (outcome: Outcome) => {
    const { v: _version, ...fields } = outcome;
    const level = isGood[outcome.status] ? "info" : outcome.status === "conflicts" ? "warn" : "error";
    log[level]("task.finished", fields);
    await alsoTell(outcome);
    // Nobody waits for it: without this note the outcome is told once more, should its task be delivered again.
    told.add(outcome.taskId).catch(() => {});
  };
  return {
    record: async (outcome, from, poll) => {
      const recorded = await history.record(outcome, from, poll);
      if (recorded === "recorded" || recorded === "recorded-awaited") await tell(outcome);
      return endedBy[recorded];
    },
    retell: async (taskId) => {
      const untold = await history.untold(taskId);
      if (typeof untold === "number") return untold;
      if (untold !== undefined) await tell(untold);
      return undefined;
    },
  };
}
