// The one request of a run, activate or delete task: permission, request, answer. Called by the steps of these kinds; never twice for a
// task, unless the request surely did not leave this machine, the policy says onUnknown: retry, or
// follow.appearsWithin shows that it did not happen (verify.ts).
import type { Policy } from "../config/policy-set.ts";
import { createDeadline } from "../core/clock.ts";
import { isHold, type Pass, unsaid } from "../core/gate.ts";
import type { StartOptions, SyncService } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import type { Task } from "../tasks/task.ts";
import { answeredDeletion, goneMeanwhile, type SaidEnding } from "./delete-endings.ts";
import { placeAfterLook, waitAfter, waitAtGate } from "./held.ts";
import { judge, reasonOf } from "./judge.ts";
import type { WorkParts } from "./parts.ts";
import { type Claim, type Ending, end, endUnsent, type Step } from "./step.ts";
import { sendWithinMs } from "./timing.ts";

/** What the request needs. `acceptedEnds`: nothing is followed, 200 is the end. */
interface StartRequest {
  readonly parts: WorkParts;
  readonly owner: string;
  readonly acceptedEnds: boolean;
}

/** A request that is to be permitted. `baseline`: what a walk showed before, for the journal; `knownSeq`: without one, how far the feed had been read. */
interface WantedStart extends Omit<StartRequest, "owner"> {
  readonly claim: Claim;
  readonly baseline: string;
  readonly knownSeq?: number | undefined;
}

/** How many requests are sent in all, at the most: by `onUnknown: retry`, before the task ends as unknown. */
const sendsMax = 3;
/** A start that could not go out for want of the service, or of time to wait for it, is looked at again after this. */
const sentAgainMs = 5_000;
/** A baseline that has waited longer than this is read anew. */
const baselineForMs = 30_000;

/** Whether the service's answer is all that is to be known of a start. */
export function acceptedEnds({ kind, service }: Task, { follow }: Policy, { activeSign }: WorkParts): boolean {
  return kind === "activate" ? activeSign(service) === undefined : follow.until === "accepted";
}

/** Asks for permission, sends, and notes the answer. */
export async function sendStart(task: Task, request: WantedStart): Promise<Step> {
  const { parts, claim } = request;
  const { owner } = claim;
  const service = parts.service(task.service);
  if (service === undefined) {
    const detail = `service ${task.service} is not configured any more`;
    return endUnsent(owner, "skipped", { reason: "policy-removed", detail });
  }
  const place = task.kind === "delete" ? await placeAfterLook(task, parts) : undefined;
  if (place !== undefined && isHold(place)) return waitAtGate(task, place, { nowMs: await parts.nowMs(), owner });
  try {
    return await permitAndSend(task, request, { service, pass: place });
  } finally {
    void place?.leave(unsaid);
  }
}

/** Where a request goes, and the place at the gate that it has already. */
type Way = Pick<Permitted, "service" | "pass">;

async function permitAndSend(task: Task, request: WantedStart, way: Way): Promise<Step> {
  const { parts, claim, baseline, knownSeq } = request;
  const { owner } = claim;
  if (parts.stopping.aborted) return { step: "snooze", untilMs: await parts.nowMs() };
  const isTooLate = createDeadline(sendWithinMs);
  const permission = await parts.journal.beginSending(task, owner, { ...intentOf(task), baseline, knownSeq });
  if (permission === "too-late")
    return endUnsent(owner, "missed", { reason: "too-late", detail: "its turn came after its start-by time" });
  if (permission === "loss") return end(lostWithRedis, { state: "claimed", owner });
  const sentAtMs = await parts.nowMs();
  if (permission !== "permitted") return askAgain(sentAtMs);
  return sendPermitted(task, { ...request, owner }, { ...way, isTooLate, sends: 1, sentAtMs, startedAtMs: sentAtMs });
}

/** Redis went back to a time before its record of this start, if there was one: whether the request went out cannot be known. */
export const lostWithRedis: Ending = {
  status: "unknown",
  evidence: "none",
  reason: "redis-loss",
  detail:
    "Redis lost what was written around the time this was due: it may have been started before; not started again",
};

function intentOf({ startByMs, slotMs }: Task) {
  return { startByMs, slotMs };
}

/** Another worker claimed it, or Redis must be looked at first: whoever comes next reads the journal and goes on from there. */
export function askAgain(nowMs: number): Step {
  return { step: "snooze", untilMs: nowMs + 1_000 };
}

/** Sends once more after no answer came; undefined when that may not be: sent often enough, or after the start-by time. */
export async function sendAgain(
  task: Task,
  request: Omit<WantedStart, "baseline" | "knownSeq">,
): Promise<Step | undefined> {
  const { parts, claim } = request;
  const { sends } = claim.entry;
  const service = parts.service(task.service);
  if (service === undefined || sends >= sendsMax) return undefined;
  const place = task.kind === "delete" ? await placeAfterLook(task, parts) : undefined;
  if (place !== undefined && isHold(place)) return { step: "snooze", untilMs: (await parts.nowMs()) + place.waitMs };
  try {
    return await permitAgain(task, request, { service, pass: place });
  } finally {
    void place?.leave(unsaid);
  }
}

async function permitAgain(
  task: Task,
  request: Omit<WantedStart, "baseline" | "knownSeq">,
  way: Way,
): Promise<Step | undefined> {
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
  const permitted = { ...way, isTooLate, sends: sends + 1, sentAtMs, startedAtMs };
  return sendPermitted(task, { ...request, owner: claim.owner }, permitted);
}

/** A request that may go out now. `sentAtMs`: since when, by Redis; `startedAtMs`: since when the first of the task could. */
interface Permitted {
  readonly service: SyncService;
  readonly isTooLate: () => boolean;
  readonly sends: number;
  readonly sentAtMs: number;
  readonly startedAtMs: number;
  /** Where the permission came with a place at the service's gate. */
  readonly pass?: Pass | undefined;
}

/** Sends what the journal has permitted to this owner just now, and judges what comes of it. */
export async function sendPermitted(task: Task, request: StartRequest, permitted: Permitted): Promise<Step> {
  const { parts } = request;
  const { service, isTooLate, sends, sentAtMs, startedAtMs, pass } = permitted;
  let said: SaidEnding;
  try {
    const maySend = () => !isTooLate() && !parts.stopping.aborted;
    const options = { idempotencyKey: task.id, maySend, untilSent: parts.stopping, pass };
    said = await sendTo(service, task, options);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return judgeFailure(task, error, { request, sentAtMs, startedAtMs, sends });
  } finally {
    // What failed before the exchange has not used it.
    void pass?.leave(unsaid);
  }
  const told = { startedAtMs, answerLost: sends > 1, sends };
  if (task.kind === "delete") return end({ ...said, ...told }, { state: "answered", isAnswer: true });
  const started = { policy: task.policy, taskId: task.id, kind: task.kind, target: task.target };
  if (!request.acceptedEnds) {
    await parts.journal.answered(task, "answer");
    parts.log.info("task.started", started);
    return { step: "snooze", untilMs: sentAtMs + 1_000 };
  }
  parts.log.info("task.started", started);
  return end({ ...said, ...told }, { state: "answered", isAnswer: true });
}

const accepted = { evidence: "direct", reason: "answered", detail: "the service accepted it" } as const;

/** Sends the request of a task, and reads from the answer how the task ends if that is its end. @throws ServiceError */
async function sendTo(service: SyncService, task: Task, options: StartOptions): Promise<SaidEnding> {
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

interface Failed {
  readonly request: StartRequest;
  readonly sentAtMs: number;
  readonly startedAtMs: number;
  readonly sends: number;
}

async function judgeFailure(task: Task, error: ServiceError, failed: Failed): Promise<Step> {
  const { request, sentAtMs, startedAtMs, sends } = failed;
  const { parts, owner } = request;
  if (task.kind === "delete" && error.kind === "not-found") {
    const ending = { ...goneMeanwhile, startedAtMs, answerLost: sends > 1, sends };
    return end(ending, { state: "answered", isAnswer: true });
  }
  const reason = reasonOf[error.kind];
  const ending = { status: "not-started", evidence: "direct", reason, detail: error.message } as const;
  const judgement = judge(error, task.kind);
  if (judgement === "verify") {
    const { policy, id: taskId } = task;
    const kind = error.kind === "server" || error.kind === "contract" ? error.kind : "unknown";
    await parts.journal.answerLost(taskId, { kind, detail: error.message, atMs: await parts.nowMs() });
    parts.log.warn("task.answer-lost", { policy, taskId, kind: error.kind, status: error.status });
    return { step: "snooze", untilMs: sentAtMs + 500 };
  }
  if (judgement === "give-up") {
    if (sends === 1) return end(ending, { state: "sending", owner });
    // That this one was refused says nothing of the earlier ones, which nobody answered.
    return { step: "snooze", untilMs: sentAtMs + 1_000 };
  }
  await parts.journal.notSent(task, owner);
  switch (judgement) {
    case "retry": {
      if (sends > 1) return { step: "snooze", untilMs: sentAtMs + sentAgainMs };
      return { step: "retry", afterMs: 500, ending, from: { state: "claimed", owner } };
    }
    case "wait":
      if (sends > 1) return { step: "snooze", untilMs: sentAtMs + (error.retryAfterMs ?? sentAgainMs) };
      if ((error.retryAfterMs ?? 0) > baselineForMs) await parts.journal.notReady(task.id);
      return waitAfter(task, error, { nowMs: await parts.nowMs(), owner });
    case "again":
      return { step: "snooze", untilMs: sentAtMs + sentAgainMs };
  }
}
