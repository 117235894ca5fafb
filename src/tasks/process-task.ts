// What a worker does with a task that the queue delivers: it takes the next step and answers the
// queue with a verdict.
//
//   task ─▶ takeStep (run.ts, activate.ts, delete.ts, poll.ts, apply.ts) ─▶ snooze or retry ─▶ delivered again
//                                                                        └▶ end ─▶ finish: the one outcome (recorder.ts)
//
// Called by the consumers (app/create-consumers.ts).
import { randomUUID } from "node:crypto";
import { matchesMask } from "../config/policy-set.ts";
import { backoffMs, systemClock } from "../core/clock.ts";
import { errorText, stackOf } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { NewerVersionError } from "../core/newer-version.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import type { Attempt, ProcessTask } from "../model/contracts.ts";
import { isNotified } from "../model/notify-event.ts";
import { coveredSlotsMax, type Outcome } from "../model/outcome.ts";
import { isFromMasks, type Task } from "../model/task.ts";
import { taskId } from "../model/task-id.ts";
import { done, giveUp, retry, skipped, snooze, type Verdict } from "../model/verdict.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import type { SettleFrom } from "../store/history.ts";
import { stepActivate } from "./activate.ts";
import { stepApply } from "./apply.ts";
import type { TaskDependencies } from "./contracts.ts";
import { deferAfter } from "./defer.ts";
import { stepDelete } from "./delete.ts";
import { startFastPath } from "./fast-path.ts";
import { judge, reasonOf } from "./judge.ts";
import { pollChange, stepPoll } from "./poll.ts";
import type { Ended, Recorder } from "./recorder.ts";
import { releaseRun, stepRun } from "./run.ts";
import { askAgain, lostWithRedis } from "./send-start.ts";
import { type Claim, end, endUnsent, leaseMs, type TaskEnding, type TaskStep } from "./step.ts";
import { isAnswerLost } from "./verify.ts";

/** The most sync jobs that a policy with `fromMasks` starts at once. */
const syncJobsMax = 1_000;

/** The most masks that a fan-out reads. */
const masksMax = 20_000;

/**
 * The pause while Redis is out of reach, and while this replica does not know the policy or
 * service.
 */
const redisPauseMs = 2_000;
const unknownPolicyPauseMs = 2_000;
/** The pause after a superseded ending: another worker is or was at work on the task. */
const supersededPauseMs = 1_000;
/** How often the end of an abandoned task is tried anew after it was superseded. */
const abandonRoundsMax = 5;
/** Between the attempts of a task. Full jitter spreads tasks that failed together. */
const attemptBackoff = { baseMs: 2_000, capMs: 60_000 };

/**
 * Makes the processor of all tasks. While Redis is out of reach a task sleeps and spends no
 * attempt.
 */
export function createProcessTask(parts: TaskDependencies, recorder: Recorder): ProcessTask {
  return async (task, attempt) => {
    try {
      const step = await takeStep(task, parts, attempt).catch((error: unknown) => onBug(task, parts.log, error));
      return await toVerdict(task, step, { parts, recorder, attempt });
    } catch (error) {
      if (error instanceof NewerVersionError) throw error;
      if (isRedisOutage(error)) {
        parts.log.warn("task.redis-out-of-reach", { taskId: task.id });
        return snooze(systemClock.nowMs() + redisPauseMs);
      }
      return await endFaulty(task, error, { parts, recorder, attempts: attempt.attempt });
    }
  };
}

/** Records the outcome alone, where its other writes fail for good (a key of the wrong type). */
async function endFaulty(task: Task, error: unknown, { parts, recorder, attempts }: FinishContext): Promise<Verdict> {
  logBug(task, parts.log, error);
  const finishedAtMs = await parts.nowMs();
  await recorder.recordAlone(toOutcome(task, buggy, { finishedAtMs, attempts, changed: undefined }));
  return giveUp;
}

/**
 * Ends a task after too many worker crashes: sent → unknown, only claimed → not-started. A claimed
 * fan-out ends as unknown, since its tasks may be queued. Returns false while the ending is
 * superseded or another worker may still publish it.
 */
export async function endAbandoned(
  task: Task,
  parts: TaskDependencies,
  { recorder, why }: { recorder: Recorder; why: string },
): Promise<boolean> {
  const unknown = { status: "unknown", evidence: "none", reason: "crashed", detail: why } as const;
  for (let round = 1; round <= abandonRoundsMax; round += 1) {
    const entry = task.kind === "poll" || task.kind === "apply" ? undefined : await parts.journal.entry(task.id);
    const state = entry?.state === "settled" ? undefined : entry?.state;
    const isUnsent = state === "claimed" && !isFromMasks(task);
    const ending: TaskEnding = isUnsent
      ? { ...unknown, status: "not-started", evidence: "direct" }
      : { ...unknown, startedAtMs: entry?.sentAtMs, sends: entry?.sends, answerLost: entry && isAnswerLost(entry) };
    const ended = await finish(task, { ending, from: state && { state } }, { parts, recorder, attempts: 0 });
    // The worker that recorded the outcome may have died before it published it.
    if (ended !== "superseded") return ended !== "already-recorded" || (await recorder.republish(task)) === undefined;
  }
  return false;
}

/**
 * Takes the next step: on the fast path if possible, else a claim in the journal and the step of
 * the task's kind.
 */
async function takeStep(task: Task, parts: TaskDependencies, attempt: Attempt): Promise<TaskStep> {
  const hasPolicy = task.guard !== undefined || parts.policy(task.policy) !== undefined;
  if (!hasPolicy || parts.service(task.service) === undefined) {
    // Replicas reload policies at different times: an unknown policy may be new here instead of
    // removed.
    const nowMs = await parts.nowMs();
    if (nowMs < task.slotMs + parts.timing.unknownPolicyForMs)
      return { step: "snooze", untilMs: nowMs + unknownPolicyPauseMs };
  }
  switch (task.kind) {
    case "run":
    case "activate": {
      const owner = randomUUID();
      const started = isFromMasks(task) ? undefined : await startFastPath(task, parts, owner);
      if (started !== undefined) return started;
      // One script claims and renews the lease: a run that ended meanwhile must not take it again.
      const holdsJob = task.kind === "run" && !isFromMasks(task);
      const entry = await parts.journal.claim(task.id, owner, holdsJob ? { ...task, leaseMs } : undefined);
      if (entry.state === "settled") return { step: "settled" };
      if (task.kind === "activate") return stepActivate(task, parts, { owner, entry });
      if (isFromMasks(task)) return fanOut(task, parts, { owner, entry, attempt });
      return stepRun(task, parts, { owner, entry });
    }
    case "poll":
      return stepPoll(task, parts, attempt);
    case "delete": {
      const owner = randomUUID();
      return stepDelete(task, parts, { owner, entry: await parts.journal.claim(task.id, owner, { ...task, leaseMs }) });
    }
    case "apply":
      return stepApply(task, parts, attempt);
  }
}

interface VerdictContext {
  readonly parts: TaskDependencies;
  readonly recorder: Recorder;
  readonly attempt: Attempt;
}

/** Turns a step into a verdict for the queue, and records the outcome if the step ends the task. */
async function toVerdict(task: Task, step: TaskStep, { parts, recorder, attempt }: VerdictContext): Promise<Verdict> {
  const context = { parts, recorder, attempts: attempt.attempt };
  switch (step.step) {
    case "settled": {
      // The worker that settled it may have died before it published the outcome or released the
      // lease.
      await releaseRun(task, parts);
      await releaseFollowers(task, parts);
      return oncePublished(task, done, recorder);
    }
    case "fanned-out":
      await releaseFollowers(task, parts);
      return done;
    case "snooze":
      return snooze(step.untilMs);
    case "retry": {
      const afterMs = Math.max(step.afterMs, backoffMs(attemptBackoff, attempt.attempt));
      if (attempt.attempt < attempt.attemptsMax && (await parts.nowMs()) + afterMs <= task.startByMs) {
        const { reason, detail } = step.ending;
        parts.log.warn("task.retried", {
          policy: task.policy,
          taskId: task.id,
          attempt: attempt.attempt,
          afterMs,
          reason,
          detail,
        });
        return retry(afterMs, reason);
      }
      return conclude(task, { step, verdict: giveUp }, context);
    }
    case "end": {
      const isUnsent = step.ending.status === "skipped" || step.ending.status === "missed";
      return conclude(task, { step, verdict: isUnsent ? skipped : done }, context);
    }
  }
}

/** Ends the task with this verdict, or lets it step again when its ending is superseded. */
async function conclude(
  task: Task,
  { step, verdict }: { readonly step: Extract<TaskStep, { step: "end" | "retry" }>; readonly verdict: Verdict },
  context: FinishContext,
): Promise<Verdict> {
  const ended = await finish(task, step, context);
  if (ended === "superseded") return snooze((await context.parts.nowMs()) + supersededPauseMs);
  // The write may be a repeat after Redis died before its answer: then the outcome may be
  // unpublished.
  return ended === "already-recorded" ? oncePublished(task, verdict, context.recorder) : verdict;
}

/** The verdict, or a sleep while another worker may still publish the outcome. */
async function oncePublished(task: Task, verdict: Verdict, recorder: Recorder): Promise<Verdict> {
  const publisherUntilMs = await recorder.republish(task);
  return publisherUntilMs === undefined ? verdict : snooze(publisherUntilMs);
}

interface FinishContext {
  readonly parts: TaskDependencies;
  readonly recorder: Recorder;
  readonly attempts: number;
}

/**
 * Records the outcome. Returns `superseded` when the ending may not be true any more: then the task
 * takes its next step.
 */
async function finish(
  task: Task,
  { ending, from }: { readonly ending: TaskEnding; readonly from?: SettleFrom | undefined },
  { parts, recorder, attempts }: FinishContext,
): Promise<Ended> {
  // "Nothing was sent" is read from the journal: it is true only if Redis has lost nothing of it.
  const fence = from?.state === "claimed" && ending.status !== "unknown" ? await parts.checkFence(task) : undefined;
  if (fence === "hold") return "superseded";
  const final = fence === "loss" ? lostWithRedis : ending;
  const finishedAtMs = Math.max(await parts.nowMs(), final.startedAtMs ?? 0);
  const poll = await pollChange(task, final, parts);
  const outcome = toOutcome(task, final, { finishedAtMs, attempts, changed: poll?.changed });
  const ended = await recorder.record(outcome, from, poll?.note);
  if (ended === "superseded") return ended;
  if (ended !== "ended-no-followers") await releaseFollowers(task, parts);
  return ended;
}

/**
 * Lets waiting followers go on. A failure does not touch the outcome: the scheduler's sweep repeats
 * it.
 */
async function releaseFollowers(task: Task, { chains, log }: TaskDependencies): Promise<void> {
  await chains.released(task).catch((error: unknown) => {
    log.warn("chain.delayed", { taskId: task.id, message: errorText(error) });
  });
}

function toOutcome(
  task: Task,
  ending: TaskEnding,
  { finishedAtMs, attempts, changed }: { finishedAtMs: number; attempts: number; changed: boolean | undefined },
): Outcome {
  const { startedAtMs } = ending;
  return {
    v: 1,
    taskId: task.id,
    policy: task.policy,
    service: task.service,
    repository: task.repository,
    kind: task.kind,
    target: task.target,
    origin: task.origin,
    slot: new Date(task.slotMs).toISOString(),
    covers: task.covers.length,
    ...(task.covers.length === 0 ? {} : { coveredSlots: task.covers.slice(-coveredSlotsMax).map(toIso) }),
    status: ending.status,
    evidence: ending.evidence,
    reason: ending.reason,
    detail: ending.detail,
    startedAt: startedAtMs === undefined ? null : new Date(startedAtMs).toISOString(),
    finishedAt: new Date(finishedAtMs).toISOString(),
    durationMs: startedAtMs === undefined ? null : Math.max(0, finishedAtMs - startedAtMs),
    attempts,
    answerLost: ending.answerLost ?? false,
    ...(ending.sends !== undefined && ending.sends > 1 ? { sends: ending.sends } : {}),
    ...(ending.confidence === undefined ? {} : { confidence: ending.confidence }),
    newConflicts: ending.newConflicts ?? null,
    ...(ending.goneConflicts === undefined ? {} : { goneConflicts: ending.goneConflicts }),
    ...(ending.stillConflicts === undefined ? {} : { stillConflicts: ending.stillConflicts }),
    count: ending.count ?? null,
    ...(changed === undefined ? {} : { changed }),
    ...(ending.offending === undefined ? {} : { offending: ending.offending }),
    ...(ending.offendingItems === undefined ? {} : { offendingItems: [...ending.offendingItems] }),
  };
}

function toIso(instantMs: number): string {
  return new Date(instantMs).toISOString();
}

function onBug(task: Task, log: EventLog, error: unknown): TaskStep {
  if (isRedisOutage(error) || error instanceof NewerVersionError) throw error;
  logBug(task, log, error);
  return end(buggy);
}

const buggy: TaskEnding = {
  status: "unknown",
  evidence: "none",
  reason: "bug",
  detail: "Syncline failed here; see the event bug.caught",
};

function logBug(task: Task, log: EventLog, error: unknown): void {
  log.error("bug.caught", { policy: task.policy, taskId: task.id, stack: stackOf(error) });
}

/**
 * Reads the masks, unless the journal has their sync jobs, and enqueues a task for each. A repeat
 * enqueues the same ids.
 */
async function fanOut(
  task: Task,
  parts: TaskDependencies,
  { owner, entry, attempt }: Claim & { readonly attempt: Attempt },
): Promise<TaskStep> {
  if (entry.targets !== undefined) return enqueueAll(task, parts, entry.targets);
  const action = parts.policy(task.policy)?.action;
  const service = parts.service(task.service);
  if (action?.kind !== "run" || !("fromMasks" in action) || service === undefined) {
    const detail = `policy ${task.policy} does not start what masks name any more`;
    return endUnsent(owner, "skipped", { reason: "policy-removed", detail });
  }
  const found = new Set<string>();
  try {
    const query = inRepository(task);
    for await (const page of service.pages("GetJobMasks", query, { signal: attempt.signal, itemsMax: masksMax })) {
      for (const mask of page.items) {
        if (mask.syncJobId === undefined || mask.syncJobId === null) continue;
        if (matchesMask(action.fromMasks, mask)) found.add(String(mask.syncJobId));
      }
    }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const ending = {
      status: "not-started",
      evidence: "direct",
      reason: reasonOf[error.kind],
      detail: `the masks cannot be read: ${error.message}`,
    } as const;
    const from = { state: "claimed", owner } as const;
    switch (judge(error, "poll")) {
      case "give-up":
        return end(ending, from);
      case "defer":
        return deferAfter(task, error, { nowMs: await parts.nowMs(), owner });
      case "resume":
        return { step: "snooze", untilMs: await parts.nowMs() };
      case "retry":
      case "verify":
        return { step: "retry", from, afterMs: error.retryAfterMs ?? 0, ending };
    }
  }
  if (found.size === 0) return noTarget(owner, "no mask matches, so there is no sync job to start");
  if (found.size > syncJobsMax)
    return noTarget(owner, `${found.size} sync jobs match; at most ${syncJobsMax} are started`);
  const targets = [...found];
  const claim = { owner, isNotified: isNotified(parts.policy(task.policy)) };
  if (await parts.journal.planFanOut(task, claim, targets)) return enqueueAll(task, parts, targets);
  return askAgain(await parts.nowMs());
}

async function enqueueAll(task: Task, parts: TaskDependencies, targets: readonly string[]): Promise<TaskStep> {
  const tasks = targets.map((syncJobId) => withTarget(task, syncJobId));
  await parts.enqueue(tasks);
  await parts.chains.fannedOut(task, targets);
  await parts.journal.fannedOut(
    task.id,
    tasks.map(({ id }) => id),
  );
  return { step: "fanned-out" };
}

function noTarget(owner: string, detail: string): TaskStep {
  return endUnsent(owner, "not-started", { reason: "no-target", detail });
}

function withTarget(task: Task, target: string): Task {
  return { ...task, target, id: taskId({ ...task, target }) };
}
