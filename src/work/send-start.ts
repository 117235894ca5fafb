// The one request of a run or activate task: permission, POST, answer. Called by run.ts and activate.ts; never twice for a task,
// unless the request surely did not leave this machine.
import { ServiceError } from "../service/service-error.ts";
import type { Task } from "../tasks/task.ts";
import { waitAfter } from "./held.ts";
import { judge, reasonOf } from "./judge.ts";
import type { WorkParts } from "./parts.ts";
import { end, endUnsent, type Step } from "./step.ts";

/** What the request needs. `baseline`: what was known before, for the journal. `acceptedEnds`: nothing is followed, 200 is the end. */
export interface StartRequest {
  readonly parts: WorkParts;
  readonly owner: string;
  readonly baseline: string;
  readonly acceptedEnds: boolean;
}

/** A process that slept longer than this between permission and request does not send: it may have been given up for dead. */
const sendWithinMs = 5_000;
/** A baseline that has waited longer than this is read anew. */
const baselineForMs = 30_000;

/** Asks for permission, sends, and notes the answer. */
export async function sendStart(task: Task, request: StartRequest): Promise<Step> {
  const { parts, owner, baseline } = request;
  const service = parts.service(task.service);
  if (service === undefined)
    return endUnsent("skipped", "policy-removed", `service ${task.service} is not configured any more`);
  const askedAtMs = parts.monotonicMs();
  const permission = await parts.journal.beginSending(task.id, owner, { startByMs: task.startByMs, baseline });
  if (permission === "too-late") return endUnsent("missed", "too-late", "its turn came after its start-by time");
  const nowMs = await parts.nowMs();
  // Another worker claimed it, or this one slept: whoever comes next reads the journal and goes on from there.
  if (permission === "lost-claim" || parts.monotonicMs() - askedAtMs > sendWithinMs)
    return { step: "snooze", untilMs: nowMs + 1_000 };
  try {
    const query = task.repository === null ? {} : { repository: task.repository };
    const options = { idempotencyKey: task.id };
    if (task.kind === "run") await service.runSyncJob(Number(task.target), query, options);
    else await service.enableSyncJobById(Number(task.target), query, options);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return judgeFailure(task, error, { parts, sentAtMs: nowMs });
  }
  await parts.journal.answered(task.id);
  parts.log.info("task.started", { policy: task.policy, taskId: task.id, kind: task.kind, target: task.target });
  if (request.acceptedEnds) {
    const status = task.kind === "activate" ? "succeeded" : "accepted";
    return end({
      status,
      evidence: "direct",
      reason: "answered",
      detail: "the service accepted it",
      startedAtMs: nowMs,
    });
  }
  return { step: "snooze", untilMs: nowMs + 1_000 };
}

async function judgeFailure(
  task: Task,
  error: ServiceError,
  context: { parts: WorkParts; sentAtMs: number },
): Promise<Step> {
  const { parts, sentAtMs } = context;
  const reason = reasonOf[error.kind];
  const ending = { status: "not-started", evidence: "direct", reason, detail: error.message } as const;
  switch (judge(error.kind, task.kind)) {
    case "verify":
      await parts.journal.answerLost(task.id, {
        kind: error.kind === "server" ? "server" : "unknown",
        detail: error.message,
      });
      parts.log.warn("task.answer-lost", {
        policy: task.policy,
        taskId: task.id,
        kind: error.kind,
        status: error.status,
      });
      return { step: "snooze", untilMs: sentAtMs + 500 };
    case "retry":
      await parts.journal.notSent(task.id);
      return { step: "retry", afterMs: 500, ending };
    case "wait":
      await parts.journal.notSent(task.id);
      if ((error.retryAfterMs ?? 0) > baselineForMs) await parts.journal.notReady(task.id);
      return waitAfter(task, error, await parts.nowMs());
    case "again":
      await parts.journal.notSent(task.id);
      return { step: "snooze", untilMs: sentAtMs + 5_000 };
    case "give-up":
      return end(ending);
  }
}
