// The one request of a run, activate or delete task: permission, request, answer. Called by the
// steps of these kinds. Never sent twice per task, unless the request surely stayed on this
// machine, the policy says `onUnknown: retry`, or `follow.appearsWithin` shows that the start did
// not happen (verify.ts).
import type { Policy } from "../config/policy-set.ts";
import { createDeadline } from "../core/clock.ts";
import { isDenied, noVerdict, type Permit } from "../core/limiter.ts";
import { showName } from "../core/plain-text.ts";
import type { Task } from "../model/task.ts";
import type { DeleteResult, StartOptions, SyncService } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import type { TaskDependencies } from "./contracts.ts";
import { acquireAfterGuard, deferAfter, deferByLimiter } from "./defer.ts";
import { sendWithinMs } from "./follow-pace.ts";
import { judge, lossOf, reasonOf } from "./judge.ts";
import { type Claim, end, endUnsent, type TaskEnding, type TaskStep } from "./step.ts";

/** What sending needs. `acceptedEnds`: a 200 ends the task; nothing is followed. */
interface StartRequest {
  readonly parts: TaskDependencies;
  readonly owner: string;
  readonly acceptedEnds: boolean;
}

/**
 * A request before its permission. `baseline`: for the journal; `knownSeq`: without one, the feed's
 * sequence.
 */
interface WantedStart extends Omit<StartRequest, "owner"> {
  readonly claim: Claim;
  readonly baseline: string;
  readonly knownSeq?: number | undefined;
}

/** The most requests of one task, with `onUnknown: retry`. */
const sendsMax = 3;
/** The pause when a repeated start could not be sent. */
const sentAgainMs = 5_000;
/** A baseline older than this is read anew. */
const baselineForMs = 30_000;

/** Whether the service's answer is the end of a start. */
export function acceptedEnds(
  { kind, service }: Task,
  { follow }: Policy,
  { activePredicate }: TaskDependencies,
): boolean {
  return kind === "activate" ? activePredicate(service) === undefined : follow.until === "accepted";
}

/** Asks for permission, sends, and notes the answer. */
export async function sendStart(task: Task, request: WantedStart): Promise<TaskStep> {
  const { parts, claim } = request;
  const { owner } = claim;
  const service = parts.service(task.service);
  if (service === undefined) {
    const detail = `service ${task.service} is not configured any more`;
    return endUnsent(owner, "skipped", { reason: "policy-removed", detail });
  }
  const permit = task.kind === "delete" ? await acquireAfterGuard(task, parts) : undefined;
  if (permit !== undefined && isDenied(permit))
    return deferByLimiter(task, permit, { nowMs: await parts.nowMs(), owner });
  try {
    return await permitAndSend(task, request, { service, permit });
  } finally {
    void permit?.release(noVerdict);
  }
}

/** Where a request goes, and the limiter's permit if it has one. */
type SendTarget = Pick<Permitted, "service" | "permit">;

async function permitAndSend(task: Task, request: WantedStart, target: SendTarget): Promise<TaskStep> {
  const { parts, claim, baseline, knownSeq } = request;
  const { owner } = claim;
  if (parts.stopping.aborted) return { step: "snooze", untilMs: await parts.nowMs() };
  const isTooLate = createDeadline(sendWithinMs);
  // Recorded before the request: after a crash the next worker verifies instead of sending.
  const permission = await parts.journal.beginSending(task, owner, { ...intentOf(task), baseline, knownSeq });
  if (permission === "too-late")
    return endUnsent(owner, "missed", { reason: "too-late", detail: "its turn came after its start-by time" });
  if (permission === "loss") return end(lostWithRedis, { state: "claimed", owner });
  const sentAtMs = await parts.nowMs();
  if (permission !== "permitted") return askAgain(sentAtMs);
  return sendPermitted(
    task,
    { ...request, owner },
    { ...target, isTooLate, sends: 1, sentAtMs, startedAtMs: sentAtMs },
  );
}

/** Redis lost writes around this start: whether the request was sent cannot be known. */
export const lostWithRedis: TaskEnding = {
  status: "unknown",
  evidence: "none",
  reason: "redis-loss",
  detail:
    "Redis lost what was written around the time this was due: it may have been started before; not started again",
};

function intentOf({ startByMs, slotMs }: Task) {
  return { startByMs, slotMs };
}

/**
 * Another worker has the claim, or the fence is not decided yet: the next step reads the journal
 * anew.
 */
export function askAgain(nowMs: number): TaskStep {
  return { step: "snooze", untilMs: nowMs + 1_000 };
}

/**
 * Sends once more after a lost answer; undefined when that is not allowed: sent too often, too
 * late, or a Redis loss.
 */
export async function sendAgain(
  task: Task,
  request: Omit<WantedStart, "baseline" | "knownSeq">,
): Promise<TaskStep | undefined> {
  const { parts, claim } = request;
  const { sends } = claim.entry;
  const service = parts.service(task.service);
  if (service === undefined || sends >= sendsMax) return undefined;
  const permit = task.kind === "delete" ? await acquireAfterGuard(task, parts) : undefined;
  if (permit !== undefined && isDenied(permit))
    return { step: "snooze", untilMs: (await parts.nowMs()) + permit.waitMs };
  try {
    return await permitAgain(task, request, { service, permit });
  } finally {
    void permit?.release(noVerdict);
  }
}

async function permitAgain(
  task: Task,
  request: Omit<WantedStart, "baseline" | "knownSeq">,
  target: SendTarget,
): Promise<TaskStep | undefined> {
  const { parts, claim } = request;
  const { sends, owner: sender } = claim.entry;
  if (parts.stopping.aborted) return { step: "snooze", untilMs: await parts.nowMs() };
  const isTooLate = createDeadline(sendWithinMs);
  const permission = await parts.journal.sendAgain(task, claim.owner, { ...intentOf(task), sends, sender });
  if (permission === "too-late" || permission === "loss") return undefined;
  const sentAtMs = await parts.nowMs();
  if (permission !== "permitted") return askAgain(sentAtMs);
  parts.log.warn("task.sent-again", { policy: task.policy, taskId: task.id, target: task.target, sends: sends + 1 });
  const startedAtMs = claim.entry.sentAtMs ?? sentAtMs;
  const permitted = { ...target, isTooLate, sends: sends + 1, sentAtMs, startedAtMs };
  return sendPermitted(task, { ...request, owner: claim.owner }, permitted);
}

/**
 * A permitted request. `sentAtMs`: when it was permitted, by Redis; `startedAtMs`: when the task's
 * first one was.
 */
interface Permitted {
  readonly service: SyncService;
  readonly isTooLate: () => boolean;
  readonly sends: number;
  readonly sentAtMs: number;
  readonly startedAtMs: number;
  /** The limiter's permit, where the permission came with one. */
  readonly permit?: Permit | undefined;
}

/** How a task ends by its answer. */
type AnsweredEnding = Pick<TaskEnding, "status" | "evidence" | "reason" | "detail">;

/** Sends what the journal has just permitted to this owner, and turns the answer into a step. */
export async function sendPermitted(task: Task, request: StartRequest, permitted: Permitted): Promise<TaskStep> {
  const { parts } = request;
  const { service, isTooLate, sends, sentAtMs, startedAtMs, permit } = permitted;
  let answered: AnsweredEnding;
  try {
    const beforeSend = () => !isTooLate() && !parts.stopping.aborted;
    const options = { idempotencyKey: task.id, beforeSend, abortBeforeSend: parts.stopping, permit };
    // From here on the start may have happened, whatever fails.
    answered = await sendTo(service, task, options);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return judgeFailure(task, error, { request, sentAtMs, startedAtMs, sends });
  } finally {
    // A request that failed before its exchange has not used the permit.
    void permit?.release(noVerdict);
  }
  const sent = { startedAtMs, answerLost: sends > 1, sends };
  if (task.kind === "delete") return end({ ...answered, ...sent }, { state: "answered", isAnswer: true });
  const started = { policy: task.policy, taskId: task.id, kind: task.kind, target: task.target };
  if (!request.acceptedEnds) {
    await parts.journal.answered(task, "answer");
    parts.log.info("task.started", started);
    return { step: "snooze", untilMs: sentAtMs + 1_000 };
  }
  parts.log.info("task.started", started);
  return end({ ...answered, ...sent }, { state: "answered", isAnswer: true });
}

const accepted = { evidence: "direct", reason: "answered", detail: "the service accepted it" } as const;

/**
 * Sends the request of a task, and returns how the task ends by its answer. @throws ServiceError
 */
async function sendTo(service: SyncService, task: Task, options: StartOptions): Promise<AnsweredEnding> {
  const key = Number(task.target);
  const query = inRepository(task);
  switch (task.kind) {
    case "run":
      await service.runSyncJob(key, query, options);
      return { ...accepted, status: "accepted" };
    case "activate":
      await service.enableSyncJobById(key, query, options);
      return { ...accepted, status: "succeeded" };
    case "delete":
      return answeredDeletion[await service.deleteSyncJobById(key, query, options)];
    case "apply":
    case "poll":
      throw new Error(`a task of kind ${task.kind} starts nothing`);
  }
}

interface FailedStart {
  readonly request: StartRequest;
  readonly sentAtMs: number;
  readonly startedAtMs: number;
  readonly sends: number;
}

/**
 * The 2xx answers to a DELETE. A 204 means success by assumption A9 only, so its evidence is
 * `inferred`.
 */
const answeredDeletion: Readonly<Record<DeleteResult, AnsweredEnding>> = {
  deleted: { status: "succeeded", evidence: "direct", reason: "deleted", detail: "the service answered true" },
  "not-deleted": {
    status: "failed",
    evidence: "direct",
    reason: "not-deleted",
    detail: "the service answered false: it did not delete the sync job, and does not say why",
  },
  "deleted-no-content": {
    status: "succeeded",
    evidence: "inferred",
    reason: "deleted-no-content",
    detail: "the service answered 204, without saying true or false",
  },
};

/** 404 to the DELETE: the guard check had just read the sync job. */
export const goneMeanwhile: AnsweredEnding = {
  status: "succeeded",
  evidence: "direct",
  reason: "gone-meanwhile",
  detail: "the service answered 404: the sync job was deleted after its name had been read, not by this request",
};

/** 404 to the guard check: no DELETE was sent. */
export const alreadyGone =
  "there is no such sync job (404): deleted before, or the id or the repository is wrong; nothing was sent";

async function judgeFailure(task: Task, error: ServiceError, failed: FailedStart): Promise<TaskStep> {
  const { request, sentAtMs, startedAtMs, sends } = failed;
  const { parts, owner } = request;
  if (task.kind === "delete" && error.kind === "not-found") {
    const ending = { ...goneMeanwhile, startedAtMs, answerLost: sends > 1, sends };
    return end(ending, { state: "answered", isAnswer: true });
  }
  const reason = reasonOf[error.kind];
  const ending = { status: "not-started", evidence: "direct", reason, detail: error.message } as const;
  const action = judge(error, task.kind);
  if (action === "verify") {
    const { policy, id: taskId } = task;
    await parts.journal.answerLost(taskId, {
      kind: lossOf[error.kind],
      detail: error.message,
      atMs: await parts.nowMs(),
    });
    parts.log.warn("task.answer-lost", { policy, taskId, kind: error.kind, status: error.status });
    return { step: "snooze", untilMs: sentAtMs + 500 };
  }
  if (action === "give-up") {
    if (sends === 1) return end(ending, { state: "sending", owner });
    // This refusal says nothing about the earlier requests, which had no answer.
    return { step: "snooze", untilMs: sentAtMs + 1_000 };
  }
  await parts.journal.notSent(task, owner);
  switch (action) {
    case "retry": {
      if (sends > 1) return { step: "snooze", untilMs: sentAtMs + sentAgainMs };
      return { step: "retry", afterMs: 500, ending, from: { state: "claimed", owner } };
    }
    case "defer":
      if (sends > 1) return { step: "snooze", untilMs: sentAtMs + (error.retryAfterMs ?? sentAgainMs) };
      if ((error.retryAfterMs ?? 0) > baselineForMs) await parts.journal.notReady(task.id);
      return deferAfter(task, error, { nowMs: await parts.nowMs(), owner });
    case "resume":
      return { step: "snooze", untilMs: sentAtMs + sentAgainMs };
  }
}

/** Describes a sync job whose name is not the guard's. */
export function describeMismatch(guard: string, name: string | null | undefined): string {
  const isSpelling = typeof name === "string" && name.normalize("NFC") === guard.normalize("NFC");
  const why = isSpelling ? "; they look the same and are written with other Unicode characters" : "";
  return `the guard says ${showName(guard)}, the sync job has ${showName(name)}${why}; nothing was sent`;
}
