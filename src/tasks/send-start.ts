// The one request of a run, activate or delete task: permission, request, answer, in single steps
// or on the fast path. Called by the steps of these kinds. Sent once a task; a 401 is repeated with
// a new token (service/call.ts). Again only when the request surely started nothing (it stayed on
// this machine, or was answered 429, or 503 with Retry-After; a DELETE: once it is read as still
// there), the policy says `onUnknown: retry`, or `follow.appearsWithin` shows that the start did
// not happen (verify.ts).

import { needsBaseline, type Policy } from "../config/policy-set.ts";
import { createDeadline, systemClock } from "../core/clock.ts";
import { isDenied, noEnding, type Permit, resourceKey } from "../core/limiter.ts";
import { isFromMasks, type Task } from "../model/task.ts";
import { complete, retry, snooze } from "../model/verdict.ts";
import type { DeleteResult, StartOptions, SyncService } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import { doubtOfOnlyRequest, type Permission } from "../store/start-entry.ts";
import { acquireForDeletion, deferAfter, deferByLimiter, denialAfterProbe } from "./defer.ts";
import { receivedByMs } from "./evidence.ts";
import { doubtOf, judge, reasonOf } from "./judge.ts";
import {
  type Claim,
  endLostStart,
  endRemoved,
  endTooLate,
  type StepResult,
  stepAgainSoon,
  type TaskEnding,
} from "./step.ts";
import type { StartDependencies } from "./step-dependencies.ts";
import { sendWithinMs } from "./timing.ts";

/** What sending needs. `isEndedByAnswer`: a 200 ends the task; nothing is followed. */
interface StartRequest {
  readonly deps: StartDependencies;
  readonly claimant: string;
  readonly isEndedByAnswer: boolean;
  /** Since when nothing but the baseline stands before the request; undefined: just now. */
  readonly readyAtMs?: number | undefined;
}

/** A request before its permission. */
interface WantedStart extends Omit<StartRequest, "claimant" | "readyAtMs"> {
  readonly claim: Claim;
}

/** What is known before the first request; `knownSeq`: the feed's sequence, without a baseline. */
interface KnownBefore {
  readonly baseline: string;
  readonly knownSeq?: number | undefined;
}

/** A request with its permission. `sentAtMs`: when, by Redis; `startedAtMs`: that of the first. */
interface SendContext {
  readonly service: SyncService;
  readonly isTooLate: () => boolean;
  /** Which request of the task it is, from 1 on. */
  readonly nth: number;
  readonly sentAtMs: number;
  readonly startedAtMs: number;
  /** The limiter's permit, where the permission came with one. */
  readonly permit?: Permit | undefined;
}

/** The most requests of one task, with `onUnknown: retry`. */
const sendsMax = 3;
/** The first look at a start whose answer does not end it. */
const firstLookMs = 1_000;
/** The same after a lost or a bad answer, from when that was noticed. */
const verifiedAfterMs = 500;
/** The least wait for another attempt. */
const attemptAgainMs = 500;
/** The pause of a task whose request surely did not go out, or started nothing. */
const unsentPauseMs = 5_000;
/** How often a start of a silent sender is looked at, before it is sent again. */
const silentStepMs = 5_000;
/** A start deferred for longer than this takes its baseline anew. */
const deferredForMsMax = 30_000;

/** Whether the service's answer is the end of a start. */
export function endsByAnswer(
  { kind, service }: Task,
  { follow }: Policy,
  { activePredicate }: Pick<StartDependencies, "activePredicate">,
): boolean {
  return kind === "activate" ? activePredicate(service) === undefined : follow.until === "accepted";
}

/** Whether an activation goes before the runs of a policy. */
export function activatesFirst({ action }: Policy): boolean {
  return action.kind === "run" && action.activate === true;
}

/** Sends the first request of a task: asks for permission, sends, and notes the answer. */
export async function sendStart(task: Task, request: WantedStart & KnownBefore): Promise<StepResult> {
  const { deps, claim, baseline, knownSeq } = request;
  const { claimant } = claim;
  const service = deps.service(task.service);
  if (service === undefined) return endRemoved(claimant, `service ${task.service} is not`);
  const ask = () => deps.journal.beginSending(task, claimant, { ...intentOf(task), baseline, knownSeq });
  const result = await askAndSend(task, request, { service, nth: 1, ask });
  if (result === "too-late") return endTooLate(claimant);
  return result === "loss" ? endLostStart(claimant) : result;
}

/**
 * Sends once more, when a sender that fell silent, or that of a second request, can bring no answer
 * any more; undefined when that is not allowed: too often, too late, or a Redis loss.
 */
export async function sendAgain(task: Task, request: WantedStart): Promise<StepResult | undefined> {
  const { deps, claim } = request;
  const { sends, claimant: sender } = claim.entry;
  const service = deps.service(task.service);
  if (service === undefined || sends >= sendsMax) return undefined;
  const doubt = doubtOfOnlyRequest(claim.entry);
  const isNoted = doubt !== undefined && doubt.kind !== "crash";
  const silentUntilMs = isNoted ? 0 : receivedByMs(task, claim.entry, deps) + deps.timing.answerKeptForMs;
  const nowMs = await deps.nowMs();
  if (Math.max(silentUntilMs, nowMs) > task.startByMs) return undefined;
  if (nowMs < silentUntilMs) return snooze(Math.min(silentUntilMs, nowMs + silentStepMs));
  // Before the permission: a denied request gives it back, but the search has begun anew by then.
  const denied = await denialAfterProbe(task, deps);
  if (denied !== undefined) return snooze(Math.min(nowMs + denied.waitMs, task.startByMs));
  const ask = () => deps.journal.beginSendingAgain(task, claim.claimant, { ...intentOf(task), sends, sender });
  const result = await askAndSend(task, request, { service, nth: sends + 1, ask });
  return result === "too-late" || result === "loss" ? undefined : result;
}

/** The nth request of a task, and how the journal is asked for its permission. */
interface NthRequest {
  readonly service: SyncService;
  readonly nth: number;
  readonly ask: () => Promise<Permission>;
}

/**
 * Sends in single steps. A deletion acquires its permit before the journal's permission; other
 * requests acquire theirs in service/call.ts.
 */
async function askAndSend(
  task: Task,
  { deps, claim, isEndedByAnswer }: WantedStart,
  { service, nth, ask }: NthRequest,
): Promise<StepResult | "too-late" | "loss"> {
  const { claimant, entry } = claim;
  const permit = task.kind === "delete" ? await acquireForDeletion(task, deps) : undefined;
  if (permit !== undefined && isDenied(permit)) {
    const nowMs = await deps.nowMs();
    return nth > 1 ? snooze(nowMs + permit.waitMs) : deferByLimiter(task, permit, { nowMs, claimant });
  }
  try {
    if (deps.stopping.aborted) return snooze(await deps.nowMs());
    const isTooLate = createDeadline(sendWithinMs);
    // Recorded before the request: after a crash the next worker verifies instead of sending.
    const permission = await ask();
    if (permission === "too-late" || permission === "loss") return permission;
    const sentAtMs = await deps.nowMs().catch(async (error: unknown) => {
      // In an outage the journal keeps this, and writes it when Redis is back.
      if (permission === "permitted") await deps.journal.takeBack(task, claimant).catch(() => {});
      throw error;
    });
    if (permission !== "permitted") return stepAgainSoon(sentAtMs);
    const startedAtMs = nth > 1 ? (entry.sentAtMs ?? sentAtMs) : sentAtMs;
    const sending = { service, permit, isTooLate, nth, sentAtMs, startedAtMs };
    return await sendNow(task, { deps, claimant, isEndedByAnswer, readyAtMs: entry.readyAtMs }, sending);
  } finally {
    void permit?.release(noEnding);
  }
}

function intentOf({ startByMs, slotMs }: Task) {
  return { startByMs, slotMs };
}

/** How a task ends by its answer. */
type AnsweredEnding = Pick<TaskEnding, "status" | "evidence" | "reason" | "detail" | "atMs">;

/** Sends what this claimant has just got the permission for, and answers the step. */
export async function sendNow(task: Task, request: StartRequest, sending: SendContext): Promise<StepResult> {
  const { deps } = request;
  const { service, isTooLate, nth, sentAtMs, permit } = sending;
  const beganMs = systemClock.monotonicMs();
  // Without asking Redis: that may be out.
  const answeredAtMs = () => sentAtMs + Math.round(systemClock.monotonicMs() - beganMs);
  let answered: AnsweredEnding;
  try {
    const beforeSend = () => !isTooLate() && !deps.stopping.aborted;
    const options: StartOptions = { idempotencyKey: task.id, beforeSend, abortBeforeSend: deps.stopping, permit };
    // From here on the start may have happened, whatever fails.
    answered = { ...(await sendTo(service, task, options)), atMs: answeredAtMs() };
    tellSentAgain(task, deps, nth);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (error.sent !== "no") tellSentAgain(task, deps, nth);
    return judgeFailure(task, error, { request, sending, atMs: answeredAtMs() });
  } finally {
    // A request that failed before its exchange has not used the permit.
    void permit?.release(noEnding);
  }
  if (task.kind !== "delete") {
    const { policy, id: taskId, kind, target } = task;
    deps.log.info("task.started", { policy, taskId, kind, target });
    if (!request.isEndedByAnswer) {
      await deps.journal.noteConfirmed(task, "answer", answered.atMs);
      return snooze(sentAtMs + firstLookMs);
    }
  }
  if (answered.reason === "not-deleted" && nth > 1) {
    // It says nothing about the earlier ones: one of them may delete it just now.
    tellAgainFailed(task, deps, { sends: nth, kind: answered.reason, detail: answered.detail });
    return snooze(sentAtMs + firstLookMs);
  }
  return endAnswered(answered, sending);
}

function tellSentAgain({ policy, id: taskId, target }: Task, { log }: StartDependencies, nth: number): void {
  if (nth > 1) log.warn("task.sent-again", { policy, taskId, target, sends: nth });
}

/** What became of a further request, where that says nothing of the earlier ones. */
function tellAgainFailed(
  { policy, id: taskId, target }: Task,
  { log }: StartDependencies,
  failed: { readonly sends: number; readonly kind: string; readonly detail: string },
): void {
  log.warn("task.again-failed", { policy, taskId, target, ...failed });
}

function endAnswered(answered: AnsweredEnding, { startedAtMs, nth }: SendContext) {
  const from = { state: "confirmed", isAnswer: true } as const;
  return complete({ ...answered, startedAtMs, answerLost: nth > 1, sends: nth, from });
}

const accepted = { evidence: "direct", reason: "answered", detail: "the service accepted it" } as const;

/** Sends the request of a task; returns how it ends by the answer. @throws ServiceError */
async function sendTo(service: SyncService, task: Task, options: StartOptions): Promise<AnsweredEnding> {
  const key = task.target;
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

/** The 2xx answers to a DELETE. A 204 means success by assumption A9 only: `inferred`. */
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

function goneAfter(nth: number): AnsweredEnding {
  if (nth === 1) return goneMeanwhile;
  const by = "by an earlier request of this task or by another client";
  return { ...goneMeanwhile, detail: `the service answered 404: the sync job was deleted before this request, ${by}` };
}

/** `atMs`: when it failed. */
interface FailedStart {
  readonly request: StartRequest;
  readonly sending: SendContext;
  readonly atMs: number;
}

/** What a failed request means (judge.ts). Only what surely started nothing may be repeated. */
async function judgeFailure(task: Task, error: ServiceError, failed: FailedStart): Promise<StepResult> {
  const { request, sending, atMs } = failed;
  const { deps, claimant, readyAtMs = atMs } = request;
  const { sentAtMs, nth } = sending;
  if (task.kind === "delete" && error.kind === "not-found") return endAnswered({ ...goneAfter(nth), atMs }, sending);
  const { kind, message: detail } = error;
  const unstarted = { status: "not-started", evidence: "direct", reason: reasonOf(kind) } as const;
  const ending = { ...unstarted, detail };
  const next = judge(error, task.kind);
  if (nth > 1 && next !== "verify") tellAgainFailed(task, deps, { sends: nth, kind, detail });
  if (next === "verify") return noteInDoubt(task, error, { deps, atMs });
  if (next === "end") {
    // After more than one request, this refusal says nothing about the earlier ones.
    if (nth > 1) return snooze(sentAtMs + firstLookMs);
    return complete({ ...ending, atMs, from: { state: "sending", claimant } });
  }
  await deps.journal.takeBack(task, claimant, error.sent === "no" ? "sender" : "answer");
  switch (next) {
    case "retry":
      if (nth > 1) return snooze(sentAtMs + unsentPauseMs);
      return retry(attemptAgainMs, { ...ending, from: { state: "claimed", claimant } });
    case "defer":
      if (nth > 1) return snooze(sentAtMs + (error.retryAfterMs ?? unsentPauseMs));
      if (atMs - readyAtMs + (error.retryAfterMs ?? 0) > deferredForMsMax) await deps.journal.forgetReady(task.id);
      return deferAfter(task, error, { nowMs: await deps.nowMs(), claimant });
    case "resume":
      return snooze(sentAtMs + unsentPauseMs);
  }
}

async function noteInDoubt(
  { policy, id: taskId, target }: Task,
  { kind: failure, status, message: detail }: ServiceError,
  { deps, atMs }: Pick<StartRequest, "deps"> & Pick<FailedStart, "atMs">,
): Promise<StepResult> {
  const kind = doubtOf(failure);
  deps.log.warn("task.in-doubt", { policy, taskId, target, kind, status, detail });
  await deps.journal.noteDoubt(taskId, { kind, detail, atMs });
  return snooze(atMs + verifiedAfterMs);
}

/**
 * Starts a run or an activation; undefined, with nothing sent, when this path is not open now, or
 * not for such a task.
 */
export async function startFastPath(
  task: Task,
  deps: StartDependencies,
  claimant: string,
): Promise<StepResult | undefined> {
  // A deletion reads its guard first, and masks name no sync job yet.
  if (task.kind === "delete" || isFromMasks(task)) return undefined;
  const policy = deps.policy(task.policy);
  const service = deps.service(task.service);
  if (policy === undefined || service === undefined || !endsByAnswer(task, policy, deps)) return undefined;
  if (activatesFirst(policy) || (task.kind === "run" && needsBaseline(policy.follow))) return undefined;
  if (deps.stopping.aborted || (await deps.denialOf(task.service)) !== undefined) return undefined;
  const isTooLate = createDeadline(sendWithinMs);
  const answer = await deps.journal.tryBeginSending(task, claimant, {
    ...intentOf(task),
    takesLease: task.kind === "run" && policy.overlap !== "allow",
    notesFeed: task.kind === "run",
    limiter: deps.scriptedAcquire(task.service, () => resourceKey({ repository: task.repository, key: task.target })),
  });
  if (answer === undefined) return undefined;
  if ("denied" in answer) return deferByLimiter(task, answer.denied, { nowMs: await deps.nowMs(), claimant });
  const { sentAtMs, permit } = answer;
  const sending = { service, isTooLate, nth: 1, sentAtMs, startedAtMs: sentAtMs, permit };
  return sendNow(task, { deps, claimant, isEndedByAnswer: true }, sending);
}
