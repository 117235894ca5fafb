// One step of a task, as a processor sees it: either it ends now, or it says when to go on. process-task.ts turns it into a verdict.
import type { SettleFrom } from "../store/history.ts";
import type { PollMemory, PollSight } from "../store/poll-memories.ts";
import type { StartEntry } from "../store/start-entry.ts";
import type { Confidence, Outcome, OutcomeReason, OutcomeStatus } from "../tasks/outcome.ts";

/** What a poll that looked knows beside its ending; poll-note.ts makes of it what is remembered. */
interface PollEnding {
  /** What its judgement rests on; undefined when it looked at nothing but the list. */
  readonly basis: PollMemory | undefined;
  /** Its expectation is about what happened since the last poll: when it does not hold, that is news each time. */
  readonly isNews: boolean;
  /** What it saw, when it was judged. */
  readonly sight: PollSight | undefined;
}

/** How a task ended; process-task.ts makes the outcome of it. */
export interface Ending {
  readonly status: OutcomeStatus;
  readonly evidence: Outcome["evidence"];
  readonly reason: OutcomeReason;
  readonly detail: string;
  readonly startedAtMs?: number | undefined;
  readonly answerLost?: boolean | undefined;
  readonly sends?: number | undefined;
  readonly confidence?: Confidence | undefined;
  readonly newConflicts?: number | undefined;
  /** Of a run that is over, where it is known: conflicts from before the start that are gone, and that are still there. */
  readonly goneConflicts?: number | undefined;
  readonly stillConflicts?: number | undefined;
  readonly count?: number | undefined;
  readonly offending?: number | undefined;
  readonly offendingItems?: readonly string[] | undefined;
  /** What a poll that looked leaves for the next one. */
  readonly poll?: PollEnding | undefined;
}

/** A start as a step finds it in the journal: claimed by this step unless it has gone further. */
export interface Claim {
  /** Who this step is, in the journal. */
  readonly owner: string;
  readonly entry: StartEntry;
}

/**
 * The result of a step. `end`: over; `from`: what the journal must show for the ending to be true still. `snooze`: nothing failed, call again then. `retry`: failed, call again after the wait, or after the backoff of its attempt when that is longer;
 * `ending` is what becomes of the task when that was the last attempt. `expanded`: other tasks stand for it. `settled`: it had ended before.
 */
export type Step =
  | { readonly step: "end"; readonly ending: Ending; readonly from?: SettleFrom | undefined }
  | { readonly step: "snooze"; readonly untilMs: number }
  | {
      readonly step: "retry";
      readonly afterMs: number;
      readonly ending: Ending;
      readonly from?: SettleFrom | undefined;
    }
  | { readonly step: "expanded" }
  | { readonly step: "settled" };

/** The task is over, if the journal still shows what the ending rests on; a poll has no entry there. */
export function end(ending: Ending, from?: SettleFrom): Step {
  return { step: "end", ending, from };
}

/** Nothing was sent: true only as long as nobody else has claimed the start. */
export function endUnsent(
  owner: string,
  status: "skipped" | "missed" | "not-started",
  { reason, detail }: Pick<Ending, "reason" | "detail">,
): Step {
  return end({ status, evidence: "direct", reason, detail }, { state: "claimed", owner });
}
