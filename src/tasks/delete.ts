// A delete task: the worker reads its guard (the sync job's name) right before each request, and
// sends one DELETE.
//
//   claimed ─▶ lease ─▶ guard: its name now ─▶ permission (intent written) ─▶ DELETE once ─▶ true | false | 204 | 404 ─▶ outcome
//                                                   └─ no answer ─▶ verifyDeletion: read it again
//
// A sync job that a run of Syncline holds is not deleted: the task is skipped, or waits with
// `overlap: queue`. Called by process-task.ts.
import { showName } from "../core/plain-text.ts";
import type { Task } from "../model/task.ts";
import type { SyncService } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import { confirmEffect, type EffectPredicate } from "./confirm-effect.ts";
import type { TaskDependencies } from "./contracts.ts";
import { deferAfter, deferIfLimited } from "./defer.ts";
import { judge, reasonOf } from "./judge.ts";
import { alreadyGone, askAgain, describeMismatch, sendAgain, sendStart } from "./send-start.ts";
import { type Claim, describeOther, end, endUnsent, type TaskEnding, type TaskStep, takeLease } from "./step.ts";
import { awaitAnswer, endingOf, isLost, noteLoss } from "./verify.ts";

/**
 * The status for a missing sync job is not documented (§7). The same read found it right before the
 * request, so 400 counts too.
 */
const gone: EffectPredicate = {
  select: [],
  isShown: () => false,
  isShownBy: (status) => status === 404 || status === 400,
};

/** Does the next step of a deletion. */
export async function stepDelete(task: Task, parts: TaskDependencies, claim: Claim): Promise<TaskStep> {
  switch (claim.entry.state) {
    case "settled":
      return { step: "settled" };
    case "claimed":
      return prepare(task, parts, claim);
    case "sending":
    case "answered":
      return verifyDeletion(task, { parts, claim, guard: guardOf(task, parts) });
  }
}

/** The exact name that the sync job must have; undefined when no policy deletes it any more. */
function guardOf(task: Task, parts: TaskDependencies): string | undefined {
  if (task.guard !== undefined) return task.guard;
  const action = parts.policy(task.policy)?.action;
  return action?.kind === "delete" && String(action.syncJob) === task.target ? action.name : undefined;
}

async function prepare(task: Task, parts: TaskDependencies, claim: Claim): Promise<TaskStep> {
  const { owner } = claim;
  const nowMs = await parts.nowMs();
  const guard = guardOf(task, parts);
  const service = parts.service(task.service);
  if (guard === undefined || service === undefined) {
    const what =
      guard === undefined
        ? `policy ${task.policy} does not delete sync job ${task.target}`
        : `service ${task.service} is not configured`;
    return endUnsent(owner, "skipped", { reason: "policy-removed", detail: `${what} any more` });
  }
  if (nowMs > task.startByMs)
    return endUnsent(owner, "missed", { reason: "too-late", detail: "its turn came after its start-by time" });
  const deferred = await deferIfLimited(task, parts, { nowMs, owner });
  if (deferred !== undefined) return deferred;
  // Always with the lease, whatever `overlap` says: a deletion must not hit a running sync job.
  const holder = await takeLease(task, parts, owner);
  if (holder === undefined) return askAgain(nowMs);
  if (holder !== task.id && parts.policy(task.policy)?.overlap === "queue")
    return { step: "snooze", untilMs: nowMs + parts.timing.queueForLeaseMs };
  if (holder !== task.id)
    return endUnsent(owner, "skipped", { reason: "overlap", detail: `${holder} is still running` });
  const refused = await checkGuard(task, { parts, owner, guard, service });
  return refused ?? sendStart(task, { parts, claim, baseline: "", acceptedEnds: true });
}

interface GuardCheck {
  readonly parts: TaskDependencies;
  readonly owner: string;
  readonly guard: string;
  readonly service: SyncService;
}

/** Reads the sync job; undefined when its name is the guard, else the step of the task. */
async function checkGuard(task: Task, { parts, owner, guard, service }: GuardCheck): Promise<TaskStep | undefined> {
  try {
    const syncJob = await service.getSyncJobById(Number(task.target), inRepository(task));
    const { name } = syncJob;
    const other = describeOther(task, syncJob);
    if (other !== undefined)
      return endUnsent(owner, "not-started", { reason: "guard-mismatch", detail: `${other}; nothing was sent` });
    if (name === guard) return undefined;
    return endUnsent(owner, "not-started", { reason: "guard-mismatch", detail: describeMismatch(guard, name) });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return judgeUnread(task, error, { parts, owner });
  }
}

async function judgeUnread(
  task: Task,
  error: ServiceError,
  { parts, owner }: Pick<GuardCheck, "parts" | "owner">,
): Promise<TaskStep> {
  if (error.kind === "not-found") return endUnsent(owner, "skipped", { reason: "already-gone", detail: alreadyGone });
  // A missing sync job has no documented status here (service-interface §7), so a 400 may mean the
  // same as a 404.
  const guess = error.kind === "bad-request" ? ", so most likely there is none" : "";
  const detail = `its name cannot be read${guess}: ${error.message}`;
  const ending = { status: "not-started", evidence: "direct", reason: reasonOf[error.kind], detail } as const;
  const from = { state: "claimed", owner } as const;
  switch (judge(error, "poll")) {
    case "give-up":
      return end(ending, from);
    case "defer":
      return deferAfter(task, error, { nowMs: await parts.nowMs(), owner });
    case "resume":
      return { step: "snooze", untilMs: (await parts.nowMs()) + 1_000 };
    case "retry":
    case "verify":
      return { step: "retry", from, afterMs: error.retryAfterMs ?? 0, ending };
  }
}

/**
 * A deletion without an answer. `guard`: undefined when no policy asks for it any more; then it is
 * only verified.
 */
interface Lost {
  readonly parts: TaskDependencies;
  readonly claim: Claim;
  readonly guard: string | undefined;
}

/** Verifies a deletion: gone, still there, sent again, or ended with what is known. */
async function verifyDeletion(task: Task, { parts, claim, guard }: Lost): Promise<TaskStep> {
  const { entry } = claim;
  const { state, owner } = entry;
  if (state === "settled") return { step: "settled" };
  const onUnknown = parts.policy(task.policy)?.onUnknown;
  const isRemoved = parts.service(task.service) === undefined;
  const awaited = isRemoved || onUnknown === "give-up" ? await awaitAnswer(entry, parts) : undefined;
  if (awaited !== undefined) return awaited;
  const lost = await noteLoss(task, parts);
  const sent = { startedAtMs: entry.sentAtMs ?? entry.claimedAtMs, sends: entry.sends, answerLost: isLost(lost) };
  const finish = (ending: Pick<TaskEnding, "status" | "evidence" | "reason">, more: string): TaskStep =>
    end({ ...ending, ...sent, detail: `${lost.detail}; ${more}` }, { state, owner });
  if (isRemoved) return finish({ ...endingOf(lost), reason: "policy-removed" }, "the service was removed meanwhile");
  if (onUnknown === "give-up") return finish(endingOf(lost), "the policy says give-up");
  const check = await confirmEffect(task, { parts, entry, predicate: gone });
  switch (check.is) {
    case "again":
      return check.step;
    case "effect": {
      const evidence = check.status === 404 ? "direct" : "inferred";
      const seen = `reading it again was answered with ${check.status}, so it is gone`;
      return finish({ status: "succeeded", evidence, reason: "deletion-confirmed" }, seen);
    }
    case "none": {
      const { name } = check.syncJob;
      const isSame = guard !== undefined && name === guard;
      const again =
        onUnknown === "retry" && isSame ? await sendAgain(task, { parts, claim, acceptedEnds: true }) : undefined;
      const renamed = isSame ? "" : `, and has ${showName(name)} now`;
      const seen = `it is still there ${Math.round(check.afterMs / 1_000)} s later${renamed}`;
      return again ?? finish({ status: "failed", evidence: "direct", reason: "still-there" }, seen);
    }
    case "unreadable":
      return finish(endingOf(lost), `whether it is there cannot be read: ${check.why}`);
  }
}
