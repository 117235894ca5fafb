// What a worker does with a task: one step, then a verdict for the queue, and at the end exactly one outcome. Called by the consumers.
import { systemClock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import type { RecordOutcome } from "../outcome/recorder.ts";
import { isRedisOutage } from "../store/redis.ts";
import type { Outcome } from "../tasks/outcome.ts";
import type { Attempt, ProcessTask } from "../tasks/seams.ts";
import { type Task, targetFromMasks } from "../tasks/task.ts";
import { done, giveUp, retry, skipped, snooze, type Verdict } from "../tasks/verdict.ts";
import { stepActivate } from "./activate.ts";
import { expandMasks } from "./expand-masks.ts";
import type { WorkParts } from "./parts.ts";
import { stepPoll } from "./poll.ts";
import { releaseRun, stepRun } from "./run.ts";
import { type Ending, end, type Step } from "./step.ts";

const redisPauseMs = 2_000;
const unknownAgainMs = 2_000;

/** Makes the processor of all tasks. A Redis that cannot be reached is no failure of the task: it sleeps and goes on. */
export function createProcessTask(parts: WorkParts, record: RecordOutcome): ProcessTask {
  return async (task, attempt) => {
    try {
      const step = await takeStep(task, parts, attempt).catch((error: unknown) => onBug(task, parts.log, error));
      return await toVerdict(task, step, { parts, record, attempt });
    } catch (error) {
      if (!isRedisOutage(error)) throw error;
      parts.log.warn("task.redis-out-of-reach", { taskId: task.id });
      return snooze(systemClock.nowMs() + redisPauseMs);
    }
  };
}

/** Ends a task that the queue gave up because its workers died too often. */
export async function endAbandoned(
  task: Task,
  parts: WorkParts,
  context: { record: RecordOutcome; why: string },
): Promise<void> {
  const ending: Ending = { status: "unknown", evidence: "none", reason: "crashed", detail: context.why };
  await finish(task, ending, { parts, record: context.record, attempts: 0 });
}

async function takeStep(task: Task, parts: WorkParts, attempt: Attempt): Promise<Step> {
  if (parts.policy(task.policy) === undefined || parts.service(task.service) === undefined) {
    // Replicas read changed policies at different times: what this one does not know may be new instead of removed.
    const nowMs = await parts.nowMs();
    if (nowMs < task.slotMs + parts.timing.unknownPolicyForMs)
      return { step: "snooze", untilMs: nowMs + unknownAgainMs };
  }
  switch (task.kind) {
    case "run":
      return task.target === targetFromMasks ? expandMasks(task, parts, attempt) : stepRun(task, parts);
    case "activate":
      return stepActivate(task, parts);
    case "poll":
      return stepPoll(task, parts, attempt);
    case "apply":
    case "delete":
      throw new Error(`a task of kind ${task.kind} cannot come from this version's policies`);
  }
}

interface VerdictContext {
  readonly parts: WorkParts;
  readonly record: RecordOutcome;
  readonly attempt: Attempt;
}

async function toVerdict(task: Task, step: Step, { parts, record, attempt }: VerdictContext): Promise<Verdict> {
  switch (step.step) {
    case "settled":
      return done;
    case "expanded":
      await release(task, parts);
      return done;
    case "snooze":
      return snooze(step.untilMs);
    case "retry":
      if (attempt.attempt < attempt.attemptsMax && (await parts.nowMs()) + step.afterMs <= task.startByMs) {
        const { reason, detail } = step.ending;
        parts.log.warn("task.retried", {
          policy: task.policy,
          taskId: task.id,
          attempt: attempt.attempt,
          afterMs: step.afterMs,
          reason,
          detail,
        });
        return retry(step.afterMs, reason);
      }
      await finish(task, step.ending, { parts, record, attempts: attempt.attempt });
      return giveUp;
    case "end":
      await finish(task, step.ending, { parts, record, attempts: attempt.attempt });
      return step.ending.status === "skipped" || step.ending.status === "missed" ? skipped : done;
  }
}

interface FinishContext {
  readonly parts: WorkParts;
  readonly record: RecordOutcome;
  readonly attempts: number;
}

async function finish(task: Task, ending: Ending, { parts, record, attempts }: FinishContext): Promise<void> {
  const finishedAtMs = await parts.nowMs();
  await record(toOutcome(task, ending, { finishedAtMs, attempts }));
  if (task.kind !== "poll") {
    await parts.journal.settle(task.id);
    await releaseRun(task, parts);
  }
  await release(task, parts);
}

/** What waits for this task may go on. Its own ending stands: whatever fails here is made good by the scheduler's sweep. */
async function release(task: Task, { chains, log }: WorkParts): Promise<void> {
  await chains.released(task).catch((error: unknown) => {
    log.warn("chain.delayed", { taskId: task.id, message: error instanceof Error ? error.message : String(error) });
  });
}

function toOutcome(
  task: Task,
  ending: Ending,
  { finishedAtMs, attempts }: { finishedAtMs: number; attempts: number },
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
    status: ending.status,
    evidence: ending.evidence,
    reason: ending.reason,
    detail: ending.detail,
    startedAt: startedAtMs === undefined ? null : new Date(startedAtMs).toISOString(),
    finishedAt: new Date(finishedAtMs).toISOString(),
    durationMs: startedAtMs === undefined ? null : Math.max(0, finishedAtMs - startedAtMs),
    attempts,
    answerLost: ending.answerLost ?? false,
    newConflicts: ending.newConflicts ?? null,
    count: ending.count ?? null,
  };
}

function onBug(task: Task, log: EventLog, error: unknown): Step {
  if (isRedisOutage(error)) throw error;
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  log.error("bug.caught", { taskId: task.id, stack });
  return end({
    status: "unknown",
    evidence: "none",
    reason: "bug",
    detail: "Syncline failed here; see the event bug.caught",
  });
}
