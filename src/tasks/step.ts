// The result of one step of a task (it ends, sleeps or retries), and what the steps of several
// kinds share: the lease of a sync job, and the check of whose answer it is. process-task.ts turns
// a step into a verdict.
import type { Confidence, Outcome, OutcomeReason, OutcomeStatus } from "../model/outcome.ts";
import type { Task } from "../model/task.ts";
import type { SyncJob } from "../service/client.ts";
import type { SettleFrom } from "../store/history.ts";
import type { PollMemory, PollObservation } from "../store/poll-store.ts";
import type { StartEntry } from "../store/start-entry.ts";
import type { TaskDependencies } from "./contracts.ts";

/** A holder that does not renew its lease for this long counts as dead. */
export const leaseMs = 300_000;

/**
 * What a poll that read its list adds to its ending; poll.ts turns it into the note for the next
 * poll.
 */
interface PollEnding {
  /** The memory that it was judged by; undefined when it was judged by the list alone. */
  readonly basis: PollMemory | undefined;
  /** Its expectation is about changes since the last poll: each failure is news. */
  readonly isNews: boolean;
  /** What it observed; undefined when it could not be judged. */
  readonly observation: PollObservation | undefined;
}

/** How a task ended; process-task.ts turns it into the outcome. */
export interface TaskEnding {
  readonly status: OutcomeStatus;
  readonly evidence: Outcome["evidence"];
  readonly reason: OutcomeReason;
  readonly detail: string;
  readonly startedAtMs?: number | undefined;
  readonly answerLost?: boolean | undefined;
  readonly sends?: number | undefined;
  readonly confidence?: Confidence | undefined;
  readonly newConflicts?: number | undefined;
  /**
   * Of a run that is over, if known: conflicts from before the start that are gone, and that
   * remain.
   */
  readonly goneConflicts?: number | undefined;
  readonly stillConflicts?: number | undefined;
  readonly count?: number | undefined;
  readonly offending?: number | undefined;
  readonly offendingItems?: readonly string[] | undefined;
  /** Only of a poll that read its list. */
  readonly poll?: PollEnding | undefined;
}

/** A start as a step finds it in the journal: claimed by this step, or further. */
export interface Claim {
  /** The id of this step in the journal. */
  readonly owner: string;
  readonly entry: StartEntry;
}

/**
 * The result of a step. `end`: over; `from`: what the journal must still show when the ending is
 * recorded. `snooze`: nothing failed; the task is delivered again then. `retry`: failed; delivered
 * again after `afterMs` or the backoff, whichever is longer. `ending`: if no attempt is left.
 * `fanned-out`: a task for each sync job replaces this one. `settled`: it had ended before.
 */
export type TaskStep =
  | { readonly step: "end"; readonly ending: TaskEnding; readonly from?: SettleFrom | undefined }
  | { readonly step: "snooze"; readonly untilMs: number }
  | {
      readonly step: "retry";
      readonly afterMs: number;
      readonly ending: TaskEnding;
      readonly from?: SettleFrom | undefined;
    }
  | { readonly step: "fanned-out" }
  | { readonly step: "settled" };

/**
 * The task is over, if the journal still shows `from`; polls and apply tasks have no journal entry.
 */
export function end(ending: TaskEnding, from?: SettleFrom): TaskStep {
  return { step: "end", ending, from };
}

/** Nothing was sent: true only while this owner's claim holds. */
export function endUnsent(
  owner: string,
  status: "skipped" | "missed" | "not-started",
  { reason, detail }: Pick<TaskEnding, "reason" | "detail">,
): TaskStep {
  return end({ status, evidence: "direct", reason, detail }, { state: "claimed", owner });
}

/**
 * Takes or renews the lease of the task's sync job. Takes it over from a dead holder that has sent
 * nothing or is over. Returns the task that holds it; undefined when the claim is no longer this
 * owner's.
 */
export async function takeLease(task: Task, parts: TaskDependencies, owner: string): Promise<string | undefined> {
  const holder = await parts.leases.acquire(task, owner, leaseMs);
  if (holder === undefined || holder === task.id) return holder;
  const jobStatus = await parts.jobStatus(task.service, holder);
  if (jobStatus === "open") return holder;
  const taken = await parts.leases.takeOver(task, owner, { holder, isOver: jobStatus === "over", durationMs: leaseMs });
  if (taken === task.id) parts.log.warn("lease.taken-over", { policy: task.policy, taskId: task.id, holder });
  return taken;
}

/**
 * Describes an answer about another sync job; undefined when it is the right one or does not name
 * one.
 */
export function describeOther({ target }: Task, { syncJobId }: SyncJob): string | undefined {
  if (syncJobId === undefined || syncJobId === null || String(syncJobId) === target) return undefined;
  return `the service answered with sync job ${syncJobId} instead of ${target}`;
}
