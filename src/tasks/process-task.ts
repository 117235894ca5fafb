// What a worker does with a task that the queue hands out: it takes the next step, records the
// outcome if that ends the task, and gives the queue the verdict.
//
//   task ─▶ takeStep (run.ts, activate.ts, delete.ts, poll.ts, apply.ts) ─▶ snooze or retry ─▶ handed out again
//                                                                        └▶ complete ─▶ finish.ts: the one outcome
import { randomUUID } from "node:crypto";
import { type Policy, targetsOf } from "../config/policy-set.ts";
import { backoffMs, systemClock } from "../core/clock.ts";
import { stackOf } from "../core/errors.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import { NewerVersionError } from "../core/newer-version.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { isGood, type Outcome } from "../model/outcome.ts";
import { activationId, isFromMasks, type Task } from "../model/task.ts";
import type { Attempt, ProcessTask } from "../model/task-processing.ts";
import { complete, done, fail, retry, snooze, snoozeFor, type Verdict } from "../model/verdict.ts";
import type { RecordResult } from "../store/history.ts";
import type { KeptWrites } from "../store/kept-writes.ts";
import { stepActivate } from "./activate.ts";
import { stepApply } from "./apply.ts";
import { stepDelete } from "./delete.ts";
import { fanOut } from "./fan-out.ts";
import { advanceChains, endCancelled, endCancelledStart, finish, releaseTask, toOutcome } from "./finish.ts";
import { stepPoll } from "./poll.ts";
import type { Recorder } from "./recorder.ts";
import { stepRun } from "./run.ts";
import { startFastPath } from "./send-start.ts";
import { type Claim, endLostStart, type StepResult, stepAgainSoon, type TaskEnding, withoutOutcome } from "./step.ts";
import type {
  ApplyTaskDependencies,
  FanOutDependencies,
  FinishDependencies,
  PollDependencies,
  RunDependencies,
} from "./step-dependencies.ts";

/** What the steps of all kinds of tasks need together; each takes its part. */
export interface ProcessDependencies
  extends RunDependencies,
    PollDependencies,
    ApplyTaskDependencies,
    FanOutDependencies,
    FinishDependencies {
  readonly journal: RunDependencies["journal"];
  readonly leases: RunDependencies["leases"];
  readonly keptWrites: KeptWrites;
  /** The outcome of a task; undefined when it has none. */
  readonly outcomeOf: (task: Task) => Promise<Outcome | undefined>;
  /** How far this machine's clock is ahead of Redis's, as far as that is known. */
  readonly clockAheadMs: () => number;
}

/** The snooze while Redis is out of reach. */
const redisSnoozeMs = 2_000;
/** The shortest and the longest snooze while this replica has not loaded the policy or service. */
const notLoadedSnoozesMs = [2_000, 15_000] as const;
/** After a superseded ending: another worker is or was at work, or the fence is undecided. */
const supersededSnoozeMs = 1_000;
/** Between the attempts of a task. Full jitter spreads tasks that failed together. */
const attemptBackoff = { baseMs: 2_000, capMs: 60_000 };

/**
 * A slot may be planned once more after a Redis loss. So a start claimed later than this after its
 * slot asks the fence first.
 */
const punctualMs = 3_000;

interface Work {
  readonly deps: ProcessDependencies;
  readonly recorder: Recorder;
  readonly attempt: Attempt;
  /** Warns at most once a minute and policy. */
  readonly limitedLog: EventLog;
}

/** Makes the processor of all tasks. A task that meets a Redis outage sleeps without an attempt. */
export function createProcessTask(deps: ProcessDependencies, recorder: Recorder): ProcessTask {
  const limitedLog = createRateLimitedLog(deps.log, systemClock, "policy");
  return async (task, attempt) => {
    const work = { deps, recorder, attempt, limitedLog };
    try {
      const result = await takeStep(task, work).catch((error: unknown) => onBug(task, deps.log, error));
      return await toVerdict(task, result, work);
    } catch (error) {
      if (error instanceof NewerVersionError) throw error;
      if (!isRedisOutage(error)) return await endFaulty(task, error, work);
      deps.log.warn("task.redis-out-of-reach", { taskId: task.id });
      // Redis cannot be asked for its time now.
      return snoozeFor(redisSnoozeMs, deps.clockAheadMs());
    }
  };
}

/** Takes the next step: on the fast path if possible, else by the task's kind. */
async function takeStep(task: Task, { deps, attempt, limitedLog }: Work): Promise<StepResult> {
  // This process knows what Redis lacks of a request: nothing may be decided before it is written.
  const isWriteKept = [task.id, activationId(task.id)].some((id) => deps.keptWrites.keeps(id));
  if (isWriteKept) return stepAgainSoon(await deps.nowMs());
  const notLoaded = await snoozeUntilLoaded(task, deps, limitedLog);
  if (notLoaded !== undefined) return notLoaded;
  const claimant = randomUUID();
  switch (task.kind) {
    case "run":
    case "activate":
    case "delete":
      return (
        (await startFastPath(task, deps, claimant)) ??
        stepStart(task, deps, { claim: await claimStart(task, deps, claimant), signal: attempt.signal })
      );
    case "poll":
      return (await endCancelled(task, deps)) ?? stepPoll(task, deps, attempt);
    case "apply":
      return stepApply(task, deps, attempt);
  }
}

/**
 * One script claims, and takes or prolongs the lease of a start under way: a run that ended
 * meanwhile must not take it again.
 */
async function claimStart(task: Task, deps: ProcessDependencies, claimant: string): Promise<Claim> {
  const hasLease = task.kind !== "activate" && !isFromMasks(task);
  return { claimant, entry: await deps.journal.claim(task.id, claimant, hasLease ? task : undefined) };
}

async function stepStart(
  task: Task,
  deps: ProcessDependencies,
  { claim, signal }: { readonly claim: Claim; readonly signal: AbortSignal },
): Promise<StepResult> {
  const cancelled = await endCancelledStart(task, claim, deps);
  if (cancelled !== undefined) return cancelled;
  const { state, claimedAtMs } = claim.entry;
  if (state === "claimed" && claimedAtMs - task.slotMs > punctualMs && !isFromMasks(task)) {
    // Also before the lease: what is never sent must not keep other tasks from this sync job.
    const fence = await deps.checkFence(task);
    if (fence === "undecided") return stepAgainSoon(await deps.nowMs());
    if (fence === "loss") return endLostStart(claim.claimant);
  }
  if (task.kind === "activate") return stepActivate(task, deps, claim);
  if (task.kind === "delete") return stepDelete(task, deps, claim);
  if (!isFromMasks(task)) return stepRun(task, deps, claim);
  return claim.entry.state === "settled" ? withoutOutcome : fanOut(task, deps, { ...claim, signal });
}

/**
 * Replicas reload policies at different times: what no policy here asks for may be new instead of
 * removed, and a file may be away for a moment. It is left to workers with newer policies as long
 * as one lives, and a minute longer.
 */
async function snoozeUntilLoaded(
  task: Task,
  deps: ProcessDependencies,
  limitedLog: EventLog,
): Promise<StepResult | undefined> {
  const policy = deps.policy(task.policy);
  const isAsked = task.guard !== undefined || (policy !== undefined && asksFor(policy, task));
  if (isAsked && deps.service(task.service) !== undefined) return undefined;
  const nowMs = await deps.nowMs();
  const youngMs = Math.min(nowMs - task.slotMs, deps.unchangedForMs?.(task.policy) ?? Number.POSITIVE_INFINITY);
  const isYoung = youngMs < deps.timing.unknownPolicyForMs;
  // To end it here would lose its slot, or free the sync job of a run that goes on.
  const isLeft = isYoung || (await deps.hasNewerWorker?.()) === true;
  // A cancelled one needs no policy to end.
  if (!isLeft || (await deps.journal.readCancelled(task.id)) !== undefined) return undefined;
  limitedLog.warn("task.not-loaded", { policy: task.policy, taskId: task.id, service: task.service });
  const [shortestMs, longestMs] = notLoadedSnoozesMs;
  return snooze(nowMs + Math.max(shortestMs, Math.min(Math.ceil(youngMs / 20), longestMs)));
}

/** Whether a policy asks for a task. A named sync job is started also when it has left the file. */
function asksFor({ action }: Policy, task: Task): boolean {
  if (isFromMasks(task)) return action.kind === "run" && targetsOf(action) === undefined;
  if (task.kind === "run" || task.kind === "activate") return true;
  return action.kind === task.kind && targetsOf(action)?.includes(task.target) === true;
}

async function toVerdict(task: Task, result: StepResult, work: Work): Promise<Verdict> {
  switch (result.verdict) {
    case "snooze":
      return result;
    case "retry":
      return retryOrFail(task, result, work);
    // No step says `fail`: only the last attempt does, and endFaulty.
    default:
      return result.ending === undefined
        ? endWithoutOutcome(task, work)
        : finishAndAnswer(task, result.ending, work, complete);
  }
}

async function retryOrFail(
  task: Task,
  result: Extract<StepResult, { readonly verdict: "retry" }>,
  work: Work,
): Promise<Verdict> {
  const {
    deps,
    attempt: { attempt, attemptsMax },
  } = work;
  const afterMs = Math.max(result.afterMs, backoffMs(attemptBackoff, attempt));
  const isLast = attempt >= attemptsMax || (await deps.nowMs()) + afterMs > task.startByMs;
  if (isLast) return finishAndAnswer(task, result.ending, work, fail);
  const { reason, detail } = result.ending;
  deps.log.warn("task.retried", { policy: task.policy, taskId: task.id, attempt, afterMs, reason, detail });
  return retry(afterMs, reason);
}

/** Releases what the task holds: the worker that settled it may have died before it did so. */
async function endWithoutOutcome(task: Task, { deps, recorder }: Work): Promise<Verdict> {
  await releaseTask(task, deps);
  await advanceChains(task, deps);
  return oncePublished(task, done, recorder);
}

/** Ends the task with this verdict, or lets it step again when its ending is superseded. */
async function finishAndAnswer(
  task: Task,
  ending: TaskEnding,
  { deps, recorder, attempt: { attempt: attempts } }: Work,
  end: (status: string) => Verdict,
): Promise<Verdict> {
  const record = () => finish(task, ending, { deps, recorder, attempts });
  // Only this process has the answer: it keeps it through an outage of Redis.
  const recorded = await (isByAnswer(ending)
    ? deps.keptWrites.write({ taskId: task.id, what: "answer" }, record, (late) => whyUntaken(task, ending, late, deps))
    : record());
  if (recorded === "superseded") {
    // Another request may be under way; that the service took this one is known all the same.
    const isAccepted = ending.from?.isAnswer === true && isGood[ending.status];
    if (isAccepted) await deps.journal.noteConfirmed(task, "answer", ending.atMs);
    return snooze((await deps.nowMs()) + supersededSnoozeMs);
  }
  const verdict = end(ending.status);
  // An earlier try may have written it without publishing it: Redis died before its answer.
  return recorded === "already-recorded" ? oncePublished(task, verdict, recorder) : verdict;
}

/** Whether it is the service that says how the task ended: by a good answer, or a refusal. */
function isByAnswer({ from, status, evidence }: TaskEnding): boolean {
  return from?.isAnswer === true || (from?.state === "sending" && status === "not-started" && evidence === "direct");
}

/** Why an answer that came late changed nothing; undefined when the outcome is by this answer. */
async function whyUntaken(
  task: Task,
  { status, evidence, reason, detail }: TaskEnding,
  recorded: RecordResult,
  { outcomeOf }: ProcessDependencies,
): Promise<string | undefined> {
  const answer = `${status} (${detail})`;
  if (recorded === "superseded") return `${answer}, and the start had gone further`;
  if (recorded !== "already-recorded") return undefined;
  const is = await outcomeOf(task);
  if (is?.status === status && is.evidence === evidence && is.reason === reason) return undefined;
  return `${answer}, and the start had ended${is === undefined ? "" : ` as ${is.status} (${is.detail})`}`;
}

/** The verdict, or a sleep while another worker may still publish the outcome. */
async function oncePublished(task: Task, verdict: Verdict, recorder: Recorder): Promise<Verdict> {
  const publisherUntilMs = await recorder.republish(task);
  return publisherUntilMs === undefined ? verdict : snooze(publisherUntilMs);
}

/** Records the outcome alone, where its other writes fail each time (a key of the wrong type). */
async function endFaulty(task: Task, error: unknown, { deps, recorder, attempt }: Work): Promise<Verdict> {
  logBug(task, deps.log, error);
  const facts = { finishedAtMs: await deps.nowMs(), attempts: attempt.attempt, changed: undefined };
  await recorder.recordAlone(toOutcome(task, buggy, facts));
  await advanceChains(task, deps);
  // The script may have failed after it had written the outcome: then that is published.
  const verdict = fail(buggy.reason);
  return oncePublished(task, verdict, recorder).catch((failure: unknown) => {
    if (isRedisOutage(failure)) throw failure;
    logBug(task, deps.log, failure);
    return verdict;
  });
}

function onBug(task: Task, log: EventLog, error: unknown): StepResult {
  if (isRedisOutage(error) || error instanceof NewerVersionError) throw error;
  logBug(task, log, error);
  return complete(buggy);
}

const buggy: TaskEnding = {
  ...{ status: "unknown", evidence: "none", reason: "bug" },
  detail: "Syncline failed here; see the event bug.caught",
};

function logBug(task: Task, log: EventLog, error: unknown): void {
  log.error("bug.caught", { policy: task.policy, taskId: task.id, stack: stackOf(error) });
}
