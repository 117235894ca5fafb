// One step of a task, as a processor sees it: either it ends now, or it says when to go on. process-task.ts turns it into a verdict.
import type { Outcome, OutcomeReason, OutcomeStatus } from "../tasks/outcome.ts";

/** How a task ended; process-task.ts makes the outcome of it. */
export interface Ending {
  readonly status: OutcomeStatus;
  readonly evidence: Outcome["evidence"];
  readonly reason: OutcomeReason;
  readonly detail: string;
  readonly startedAtMs?: number | undefined;
  readonly answerLost?: boolean | undefined;
  readonly newConflicts?: number | undefined;
  readonly count?: number | undefined;
}

/**
 * The result of a step. `end`: over. `snooze`: nothing failed, call again then. `retry`: failed, call again after the wait, or after the backoff of its attempt when that is longer;
 * `ending` is what becomes of the task when that was the last attempt. `expanded`: other tasks stand for it. `settled`: it had ended before.
 */
export type Step =
  | { readonly step: "end"; readonly ending: Ending }
  | { readonly step: "snooze"; readonly untilMs: number }
  | { readonly step: "retry"; readonly afterMs: number; readonly ending: Ending }
  | { readonly step: "expanded" }
  | { readonly step: "settled" };

/** The task is over. */
export function end(ending: Ending): Step {
  return { step: "end", ending };
}

/** Nothing was sent: skipped or missed, with the reason. */
export function endUnsent(status: "skipped" | "missed" | "not-started", reason: OutcomeReason, detail: string): Step {
  return end({ status, evidence: "direct", reason, detail });
}
