// What a worker does with a task: one step, then a verdict for the queue, and at the end exactly one outcome. Called by the consumers.
import { randomUUID } from "node:crypto";
import { backoffMs } from "../core/backoff.ts";
import { systemClock } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { NewerVersionError } from "../core/newer-version.ts";
import type { Ended, Recorder } from "../outcome/recorder.ts";
import type { SettleFrom } from "../store/history.ts";
import { isRedisOutage } from "../store/redis.ts";
import { coveredSlotsMax, type Outcome } from "../tasks/outcome.ts";
import type { Attempt, ProcessTask } from "../tasks/seams.ts";
import { isFromMasks, type Task } from "../tasks/task.ts";
import { done, giveUp, retry, skipped, snooze, type Verdict } from "../tasks/verdict.ts";
import { stepActivate } from "./activate.ts";
import { stepApply } from "./apply.ts";
import { stepDelete } from "./delete.ts";
import { expandMasks } from "./expand-masks.ts";
import type { WorkParts } from "./parts.ts";
import { stepPoll } from "./poll.ts";
import { pollChange } from "./poll-note.ts";
import { releaseRun, stepRun } from "./run.ts";
import { lostWithRedis } from "./send-start.ts";
import { startAtOnce } from "./start-at-once.ts";
import { type Ending, end, type Step } from "./step.ts";
import { leaseMs } from "./take-lease.ts";

const redisPauseMs = 2_000;
const unknownAgainMs = 2_000;
/** An ending that came too late: somebody else is at work on the task, or was just now. */
const movedOnMs = 1_000;
const abandonRoundsMax = 5;
/** Between the attempts of a task: full jitter, so that tasks that failed together do not come back together. */
const attemptBackoff = { baseMs: 2_000, capMs: 60_000 };

/** Makes the processor of all tasks. A Redis that cannot be reached is no failure of the task: it sleeps and goes on. */
export function createProcessTask(parts: WorkParts, recorder: Recorder): ProcessTask {
  return async (task, attempt) => {
    try {
      const step = await takeStep(task, parts, attempt).catch((error: unknown) => onBug(task, parts.log, error));
      return await toVerdict(task, step, { parts, recorder, attempt });
    } catch (error) {
      if (!isRedisOutage(error)) throw error;
      parts.log.warn("task.redis-out-of-reach", { taskId: task.id });
      return snooze(systemClock.nowMs() + redisPauseMs);
    }
  };
}

/** Ends a task whose workers died too often: what was sent is unknown, what was only claimed is not started, but sync jobs that masks name may be queued. False when that cannot be said yet, or somebody else may still be telling it. */
export async function endAbandoned(
  task: Task,
  parts: WorkParts,
  { recorder, why }: { recorder: Recorder; why: string },
): Promise<boolean> {
  const unknown = { status: "unknown", evidence: "none", reason: "crashed", detail: why } as const;
  for (let round = 1; round <= abandonRoundsMax; round += 1) {
    const entry = task.kind === "poll" || task.kind === "apply" ? undefined : await parts.journal.entry(task.id);
    const state = entry?.state === "settled" ? undefined : entry?.state;
    const isUnsent = state === "claimed" && !isFromMasks(task);
    const ending: Ending = isUnsent
      ? { ...unknown, status: "not-started", evidence: "direct" }
      : { ...unknown, startedAtMs: entry?.sentAtMs };
    const ended = await finish(task, { ending, from: state && { state } }, { parts, recorder, attempts: 0 });
    // Whoever wrote the outcome may have died before it was told.
    if (ended !== "moved-on") return ended !== "stands" || (await recorder.retell(task.id)) === undefined;
  }
  return false;
}

async function takeStep(task: Task, parts: WorkParts, attempt: Attempt): Promise<Step> {
  const hasPolicy = task.guard !== undefined || parts.policy(task.policy) !== undefined;
  if (!hasPolicy || parts.service(task.service) === undefined) {
    // Replicas read changed policies at different times: what this one does not know may be new instead of removed.
    const nowMs = await parts.nowMs();
    if (nowMs < task.slotMs + parts.timing.unknownPolicyForMs)
      return { step: "snooze", untilMs: nowMs + unknownAgainMs };
  }
  switch (task.kind) {
    case "run":
    case "activate": {
      const owner = randomUUID();
      const started = isFromMasks(task) ? undefined : await startAtOnce(task, parts, owner);
      if (started !== undefined) return started;
      const holdsJob = task.kind === "run" && !isFromMasks(task);
      const entry = await parts.journal.claim(task.id, owner, holdsJob ? { ...task, leaseMs } : undefined);
      if (entry.state === "settled") return { step: "settled" };
      if (task.kind === "activate") return stepActivate(task, parts, { owner, entry });
      if (isFromMasks(task)) return expandMasks(task, parts, { owner, entry, attempt });
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
  readonly parts: WorkParts;
  readonly recorder: Recorder;
  readonly attempt: Attempt;
}

async function toVerdict(task: Task, step: Step, { parts, recorder, attempt }: VerdictContext): Promise<Verdict> {
  const context = { parts, recorder, attempts: attempt.attempt };
  switch (step.step) {
    case "settled": {
      // Whoever settled it may have died before it told the outcome or gave everything back.
      await releaseRun(task, parts);
      await release(task, parts);
      return onceTold(task, done, recorder);
    }
    case "expanded":
      await release(task, parts);
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

async function conclude(
  task: Task,
  { step, verdict }: { readonly step: Extract<Step, { step: "end" | "retry" }>; readonly verdict: Verdict },
  context: FinishContext,
): Promise<Verdict> {
  const ended = await finish(task, step, context);
  if (ended === "moved-on") return snooze((await context.parts.nowMs()) + movedOnMs);
  // A Redis that died between writing and answering is asked again, and says that the outcome stands: nobody may have told it.
  return ended === "stands" ? onceTold(task, verdict, context.recorder) : verdict;
}

/** The verdict, or a sleep while somebody else may still tell the outcome. */
async function onceTold(task: Task, verdict: Verdict, recorder: Recorder): Promise<Verdict> {
  const tellerUntilMs = await recorder.retell(task.id);
  return tellerUntilMs === undefined ? verdict : snooze(tellerUntilMs);
}

interface FinishContext {
  readonly parts: WorkParts;
  readonly recorder: Recorder;
  readonly attempts: number;
}

/** Records the outcome. Answers `moved-on` when the task has, so that the ending is not true any more, or may not be true: it is looked at again. */
async function finish(
  task: Task,
  { ending, from }: { readonly ending: Ending; readonly from?: SettleFrom | undefined },
  { parts, recorder, attempts }: FinishContext,
): Promise<Ended> {
  // That nothing was sent is read from the journal: true only if Redis has not forgotten what stood there.
  const shut = from?.state === "claimed" && ending.status !== "unknown" ? await parts.shut(task) : undefined;
  if (shut === "hold") return "moved-on";
  const told = shut === "loss" ? lostWithRedis : ending;
  const finishedAtMs = Math.max(await parts.nowMs(), told.startedAtMs ?? 0);
  const poll = await pollChange(task, told, parts);
  const outcome = toOutcome(task, told, { finishedAtMs, attempts, changed: poll?.changed });
  const ended = await recorder.record(outcome, from, poll?.note);
  if (ended === "moved-on") return ended;
  if (ended !== "ended-unawaited") await release(task, parts);
  return ended;
}

/** What waits for this task may go on. Its own ending stands: whatever fails here is made good by the scheduler's sweep. */
async function release(task: Task, { chains, log }: WorkParts): Promise<void> {
  await chains.released(task).catch((error: unknown) => {
    log.warn("chain.delayed", { taskId: task.id, message: errorText(error) });
  });
}

function toOutcome(
  task: Task,
  ending: Ending,
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

function onBug(task: Task, log: EventLog, error: unknown): Step {
  if (isRedisOutage(error) || error instanceof NewerVersionError) throw error;
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  log.error("bug.caught", { taskId: task.id, stack });
  return end({
    status: "unknown",
    evidence: "none",
    reason: "bug",
    detail: "Syncline failed here; see the event bug.caught",
  });
}
