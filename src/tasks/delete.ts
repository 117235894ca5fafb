// A delete task: the worker reads its guard (the sync job's name) right before each request, and
// sends one DELETE.
//
//   claimed ─▶ lease ─▶ guard: its name now ─▶ permission (intent written) ─▶ DELETE once
//   DELETE ─┬─▶ true | false | 204 | 404 ─▶ outcome
//           └─▶ no answer, or a 503 ─▶ verifyDeletion: read it again
//
// A sync job that a run of Syncline holds is not deleted: the task is skipped, or waits with
// `overlap: queue`. Called by process-task.ts.
import { showName } from "../core/plain-text.ts";
import type { Task } from "../model/task.ts";
import { complete, snooze } from "../model/verdict.ts";
import type { SyncService } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import { sentAtMsOf } from "../store/start-entry.ts";
import { confirmEffect, type EffectPredicate } from "./confirm-effect.ts";
import { deferIfDenied, stepAfterFailure } from "./defer.ts";
import { reasonOf } from "./judge.ts";
import { sendAgain, sendStart } from "./send-start.ts";
import {
  type Claim,
  describeOther,
  endRemoved,
  endTooLate,
  endUnsent,
  type StepResult,
  stepAgainSoon,
  type TaskEnding,
  takeLease,
  withoutOutcome,
} from "./step.ts";
import type { StartDependencies } from "./step-dependencies.ts";
import { endingOf, hasLostAnswer, snoozeUntilTimedOut, standingDoubt } from "./verify.ts";

/**
 * A missing sync job has no documented status (§7). The same read found it before, so 400 counts.
 * An object that names none shows neither that it is there nor that it is gone.
 */
const gone: EffectPredicate = {
  select: [],
  isShown: ({ syncJobId, name }) =>
    syncJobId == null && name == null ? { wrong: "the answer shows no sync job" } : false,
  isShownBy: (status) => status === 404 || status === 400,
};

/** Does the next step of a deletion. */
export async function stepDelete(task: Task, deps: StartDependencies, claim: Claim): Promise<StepResult> {
  const guard = guardOf(task, deps);
  switch (claim.entry.state) {
    case "settled":
      return withoutOutcome;
    case "claimed":
      return prepare(task, { deps, claim, guard });
    case "sending":
    case "confirmed":
      return verifyDeletion(task, { deps, claim, guard });
  }
}

/** The exact name that the sync job must have; undefined when no policy deletes it any more. */
function guardOf(task: Task, deps: StartDependencies): string | undefined {
  if (task.guard !== undefined) return task.guard;
  const action = deps.policy(task.policy)?.action;
  return action?.kind === "delete" && String(action.syncJob) === task.target ? action.name : undefined;
}

interface Deletion {
  readonly deps: StartDependencies;
  readonly claim: Claim;
  readonly guard: string | undefined;
}

async function prepare(task: Task, { deps, claim, guard }: Deletion): Promise<StepResult> {
  const { claimant } = claim;
  const nowMs = await deps.nowMs();
  const service = deps.service(task.service);
  if (guard === undefined) return endRemoved(claimant, `policy ${task.policy} does not delete sync job ${task.target}`);
  if (service === undefined) return endRemoved(claimant, `service ${task.service} is not`);
  if (nowMs > task.startByMs) return endTooLate(claimant);
  const deferred = await deferIfDenied(task, deps, { nowMs, claimant });
  if (deferred !== undefined) return deferred;
  // Always with the lease, whatever `overlap` says: a deletion must not hit a running sync job.
  const holder = await takeLease(task, deps, claimant);
  if (holder === undefined) return stepAgainSoon(nowMs);
  if (holder !== task.id && deps.policy(task.policy)?.overlap === "queue")
    return snooze(nowMs + deps.timing.queueForLeaseMs);
  if (holder !== task.id)
    return endUnsent(claimant, "skipped", { reason: "overlap", detail: `${holder} is still running` });
  const refused = await checkGuard(task, service, { deps, claimant, guard });
  return refused ?? sendStart(task, { deps, claim, baseline: "", isEndedByAnswer: true });
}

interface GuardCheck {
  readonly deps: StartDependencies;
  readonly claimant: string;
  readonly guard: string;
}

/** Reads the sync job; undefined when its name is the guard, else what becomes of the task. */
async function checkGuard(
  task: Task,
  service: SyncService,
  { deps, claimant, guard }: GuardCheck,
): Promise<StepResult | undefined> {
  const mismatch = (detail: string) => endUnsent(claimant, "not-started", { reason: "guard-mismatch", detail });
  try {
    const syncJob = await service.getSyncJobById(task.target, inRepository(task));
    const other = describeOther(task, syncJob);
    if (other !== undefined) return mismatch(`${other}; nothing was deleted`);
    return syncJob.name === guard ? undefined : mismatch(describeMismatch(guard, syncJob.name));
  } catch (error) {
    if (error instanceof ServiceError && error.kind === "not-found")
      return endUnsent(claimant, "skipped", { reason: "already-gone", detail: alreadyGone });
    const nowMs = await deps.nowMs();
    return stepAfterFailure(task, error, { nowMs, claimant, ending: (failure) => unreadEnding(failure, claimant) });
  }
}

/** 404 to the guard check: no DELETE was sent, or the service asked for patience. */
const alreadyGone = "there is no such sync job (404): deleted before, or the id or the repository is wrong";

function unreadEnding({ kind, message }: ServiceError, claimant: string): TaskEnding {
  // A missing sync job has no documented status here (service-interface §7): 400 may mean 404.
  const guess = kind === "bad-request" ? ", so most likely there is none" : "";
  return {
    ...{ status: "not-started", evidence: "direct", reason: reasonOf(kind) },
    ...{ detail: `its name cannot be read${guess}: ${message}`, from: { state: "claimed", claimant } },
  };
}

/** Describes a sync job whose name is not the guard's. */
function describeMismatch(guard: string, name: string | null | undefined): string {
  const isSpelling = typeof name === "string" && name.normalize("NFC") === guard.normalize("NFC");
  const why = isSpelling ? "; they look the same and are written with other Unicode characters" : "";
  return `the guard says ${showName(guard)}, the sync job has ${showName(name)}${why}; nothing was deleted`;
}

/** Verifies a deletion: gone, still there, sent again, or ended with what is known. */
async function verifyDeletion(task: Task, { deps, claim, guard }: Deletion): Promise<StepResult> {
  const { entry } = claim;
  const { state, claimant } = entry;
  if (state === "settled") return withoutOutcome;
  const onUnknown = deps.policy(task.policy)?.onUnknown;
  const isRemoved = deps.service(task.service) === undefined;
  const awaited = isRemoved || onUnknown === "give-up" ? await snoozeUntilTimedOut(task, entry, deps) : undefined;
  if (awaited !== undefined) return awaited;
  const doubt = await standingDoubt(task, deps);
  const sent = {
    startedAtMs: sentAtMsOf(entry),
    sends: entry.sends,
    answerLost: hasLostAnswer({ ...entry, doubt }),
  };
  const endAs = (ending: Pick<TaskEnding, "status" | "evidence" | "reason">, more: string): StepResult =>
    complete({ ...ending, ...sent, detail: `${doubt.detail}; ${more}`, from: { state, claimant } });
  if (isRemoved)
    return endAs({ ...endingOf(doubt), reason: "policy-removed" }, "the worker that had its turn lacks the service");
  if (onUnknown === "give-up") return endAs(endingOf(doubt), "the policy says give-up");
  const check = await confirmEffect(task, { deps, entry, predicate: gone });
  switch (check.is) {
    case "again":
      return check.result;
    case "effect": {
      const evidence = check.status === 404 ? "direct" : "inferred";
      const seen = `reading it again was answered with ${check.status}, so it is gone`;
      return endAs({ status: "succeeded", evidence, reason: "deletion-confirmed" }, seen);
    }
    case "none": {
      // The service asked for patience: the task waits for another turn, and reads its guard anew.
      if (doubt.kind === "throttled" && entry.sends === 1) {
        await deps.journal.takeBack(task, claimant, "answer");
        return stepAgainSoon(await deps.nowMs());
      }
      const { name } = check.syncJob;
      const isSame = guard !== undefined && name === guard;
      const mayRepeat = onUnknown === "retry" && isSame;
      const again = mayRepeat ? await sendAgain(task, { deps, claim, isEndedByAnswer: true }) : undefined;
      const renamed = isSame ? "" : `, and has ${showName(name)} now`;
      const seen = `it is still there ${Math.round(check.afterMs / 1_000)} s later${renamed}`;
      return again ?? endAs({ status: "failed", evidence: "direct", reason: "still-there" }, seen);
    }
    case "unreadable":
      return endAs(endingOf(doubt), `whether it is there cannot be read: ${check.why}`);
  }
}
