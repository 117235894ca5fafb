// What a step of a task says (its verdict and its ending), and what the steps of several kinds
// share: the lease of a sync job, the check of whose answer it is, and endings.
import type { Confidence, Outcome, OutcomeReason, OutcomeStatus } from "../model/outcome.ts";
import type { Task } from "../model/task.ts";
import { complete, snooze, type Verdict } from "../model/verdict.ts";
import type { SyncJob } from "../service/client.ts";
import type { SettleFrom } from "../store/history.ts";
import type { PollMemory, PollObservation } from "../store/poll-store.ts";
import type { StartEntry } from "../store/start-entry.ts";
import type { StartDependencies } from "./step-dependencies.ts";

/** What a poll that read its list adds to its ending, for the note to the next poll. */
interface PollEnding {
  /** The memory that it was judged by; undefined when it was judged by the list alone. */
  readonly basis: PollMemory | undefined;
  /** Its expectation is about changes since the last poll: each failure is news. */
  readonly isNews: boolean;
  /** What it observed; undefined when it could not be judged. */
  readonly observation: PollObservation | undefined;
}

/** How a task ended; finish.ts makes the outcome of it. */
export interface TaskEnding {
  readonly status: OutcomeStatus;
  readonly evidence: Outcome["evidence"];
  readonly reason: OutcomeReason;
  readonly detail: string;
  /**
   * What the journal must still show when this is recorded; else it is `superseded`. Undefined for
   * polls and apply tasks, and after a bug: any state.
   */
  readonly from?: SettleFrom | undefined;
  /** When the first request was permitted; of a poll or apply task, when its last step began. */
  readonly startedAtMs?: number | undefined;
  /** When the answer came that is the end; undefined: just now. */
  readonly atMs?: number | undefined;
  readonly answerLost?: boolean | undefined;
  /** The detail of this run tells what became of the activation before it. */
  readonly tellsActivation?: true;
  readonly sends?: number | undefined;
  readonly confidence?: Confidence | undefined;
  readonly newConflicts?: number | undefined;
  /** Of a run that is over: conflicts from before the start that are gone, and that remain. */
  readonly goneConflicts?: number | undefined;
  readonly stillConflicts?: number | undefined;
  /** Of a run that is over: how many activities are of it, where the mapping tells. */
  readonly activities?: number | undefined;
  /** A worker noted while the run went on that it takes unusually long. */
  readonly toldLong?: true | undefined;
  readonly count?: number | undefined;
  readonly offending?: number | undefined;
  readonly offendingItems?: readonly string[] | undefined;
  /** Only of a poll that read its list. */
  readonly poll?: PollEnding | undefined;
}

/** A start as a step finds it in the journal: claimed by this step, or further. */
export interface Claim {
  /** The id of this step; in the journal only where it got the claim. */
  readonly claimant: string;
  readonly entry: StartEntry;
}

/** What a step of a task answers: how the task ends, or when it goes on. */
export type StepResult = Verdict<TaskEnding> | typeof withoutOutcome;

/** The task needs no outcome any more: it had ended before, or other tasks replace it. */
export const withoutOutcome = { verdict: "complete", ending: undefined } as const;

/** Nothing was sent: true only while this claim stands, where the task has one. */
export function endUnsent(
  claimant: string | undefined,
  status: "skipped" | "missed" | "not-started",
  why: Pick<TaskEnding, "reason" | "detail" | "tellsActivation">,
): StepResult {
  const from = claimant === undefined ? undefined : ({ state: "claimed", claimant } as const);
  return complete({ status, evidence: "direct", ...why, from });
}

/** Its turn came too late. */
export function endTooLate(claimant: string | undefined): StepResult {
  return endUnsent(claimant, "missed", { reason: "too-late", detail: "its turn came after its start-by time" });
}

/** The worker that had the task's turn lacks its policy: removed, or not there yet. */
export function endRemoved(claimant: string | undefined, what: string): StepResult {
  const detail = `${what} in the policies of the worker that had its turn`;
  return endUnsent(claimant, "skipped", { reason: "policy-removed", detail });
}

/**
 * Takes or renews the lease of the task's sync job, also from a dead holder. Returns the holder;
 * undefined when another step has the claim.
 */
export async function takeLease(
  task: Task,
  deps: Pick<StartDependencies, "leases" | "jobStatus" | "log">,
  claimant: string,
): Promise<string | undefined> {
  const holder = await deps.leases.acquire(task, claimant);
  if (holder === undefined || holder === task.id) return holder;
  const jobStatus = await deps.jobStatus(task.service, holder);
  if (jobStatus === "pending") return holder;
  const taken = await deps.leases.takeOver(task, claimant, {
    holder,
    isOver: jobStatus === "completed",
  });
  if (taken === task.id) deps.log.warn("lease.taken-over", { policy: task.policy, taskId: task.id, holder });
  return taken;
}

/** Describes an answer about another sync job; undefined when it names this one or none. */
export function describeOther({ target }: Pick<Task, "target">, { syncJobId }: SyncJob): string | undefined {
  if (syncJobId === undefined || syncJobId === null || String(syncJobId) === target) return undefined;
  return `the service answered with sync job ${syncJobId} instead of ${target}`;
}

/** Redis lost writes around this start: whether the request was sent cannot be known. */
export const lostWithRedis: TaskEnding = {
  status: "unknown",
  evidence: "none",
  reason: "redis-loss",
  detail:
    "Redis lost what was written around the time this was due: it may have been started before; not started again",
};

/** Ends a claimed task whose start Redis may have lost. */
export function endLostStart(claimant: string): StepResult {
  return complete({ ...lostWithRedis, from: { state: "claimed", claimant } });
}

/** Another worker has the claim, the fence is undecided, or an answer is not written yet. */
export function stepAgainSoon(nowMs: number): StepResult {
  return snooze(nowMs + 1_000);
}
