// A delete task, step by step: its guard is read anew right before each request, and the DELETE goes out once.
//
//   claimed ─▶ lease ─▶ guard: its name now ─▶ permission (intent written) ─▶ DELETE once ─▶ true | false | 204 | 404 ─▶ outcome
//                                                   └─ no answer ─▶ verify-deletion.ts: read it again
//
// A sync job that a run of Syncline holds is not deleted: skipped, or with `overlap: queue` later. Called by process-task.ts.
import type { SyncService } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import type { Task } from "../tasks/task.ts";
import { alreadyGone, tellMismatch } from "./delete-endings.ts";
import { heldBack, waitAfter } from "./held.ts";
import { judge, reasonOf } from "./judge.ts";
import { tellOther } from "./other-sync-job.ts";
import type { WorkParts } from "./parts.ts";
import { askAgain, sendStart } from "./send-start.ts";
import { type Claim, end, endUnsent, type Step } from "./step.ts";
import { takeLease } from "./take-lease.ts";
import { verifyDeletion } from "./verify-deletion.ts";

/** Does the next step of a deletion. */
export async function stepDelete(task: Task, parts: WorkParts, claim: Claim): Promise<Step> {
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

/** The exact name that the sync job must have; undefined when no policy asks for the deletion of this one any more. */
function guardOf(task: Task, parts: WorkParts): string | undefined {
  if (task.guard !== undefined) return task.guard;
  const action = parts.policy(task.policy)?.action;
  return action?.kind === "delete" && String(action.syncJob) === task.target ? action.name : undefined;
}

async function prepare(task: Task, parts: WorkParts, claim: Claim): Promise<Step> {
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
  const held = await heldBack(task, parts, { nowMs, owner });
  if (held !== undefined) return held;
  // Whatever `defaults` says of overlaps: to delete what runs is never meant.
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
  readonly parts: WorkParts;
  readonly owner: string;
  readonly guard: string;
  readonly service: SyncService;
}

/** Reads the sync job; undefined when it is the one that is meant, and otherwise what becomes of the task. */
async function checkGuard(task: Task, { parts, owner, guard, service }: GuardCheck): Promise<Step | undefined> {
  try {
    const syncJob = await service.getSyncJobById(Number(task.target), inRepository(task));
    const { name } = syncJob;
    const other = tellOther(task, syncJob);
    if (other !== undefined)
      return endUnsent(owner, "not-started", { reason: "guard-mismatch", detail: `${other}; nothing was sent` });
    if (name === guard) return undefined;
    return endUnsent(owner, "not-started", { reason: "guard-mismatch", detail: tellMismatch(guard, name) });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return judgeUnread(task, error, { parts, owner });
  }
}

async function judgeUnread(
  task: Task,
  error: ServiceError,
  { parts, owner }: Pick<GuardCheck, "parts" | "owner">,
): Promise<Step> {
  if (error.kind === "not-found") return endUnsent(owner, "skipped", { reason: "already-gone", detail: alreadyGone });
  // A missing sync job has no documented status here (service-interface §7), so a 400 may mean the same as a 404.
  const guess = error.kind === "bad-request" ? ", so most likely there is none" : "";
  const detail = `its name cannot be read${guess}: ${error.message}`;
  const ending = { status: "not-started", evidence: "direct", reason: reasonOf[error.kind], detail } as const;
  const from = { state: "claimed", owner } as const;
  switch (judge(error, "poll")) {
    case "give-up":
      return end(ending, from);
    case "wait":
      return waitAfter(task, error, { nowMs: await parts.nowMs(), owner });
    case "again":
      return { step: "snooze", untilMs: (await parts.nowMs()) + 1_000 };
    case "retry":
    case "verify":
      return { step: "retry", from, afterMs: error.retryAfterMs ?? 0, ending };
  }
}
