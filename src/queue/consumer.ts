// Consumes one queue: hands each job to the processor and applies its verdict. Decides nothing
// itself.
import { DelayedError, type Job, UnrecoverableError, Worker } from "bullmq";
import { systemClock } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { errorText, stackOf } from "../core/errors.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import { NewerVersionError } from "../core/newer-version.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { withoutSecrets } from "../core/secrets.ts";
import type { Attempt } from "../model/contracts.ts";
import { done, snooze, type Verdict } from "../model/verdict.ts";
import type { RedisTarget } from "../store/connect.ts";
import { queueConnection } from "./queues.ts";
import { stopWorker } from "./stop-worker.ts";

/** What a consumer needs. */
export interface ConsumerOptions {
  readonly target: RedisTarget;
  readonly queue: string;
  /** Items in work at once, in this process. */
  readonly concurrency: number;
  /** How long a worker may stay silent before another one takes its items. */
  readonly takeOverAfterMs: number;
  /** How long a stop may wait for items in work. */
  readonly drainMs: number;
  readonly log: EventLog;
  /** Does one step of an item. */
  readonly process: (item: unknown, attempt: Attempt) => Promise<Verdict>;
  /** Ends an item after too many worker crashes, or a bug. False: not possible yet. */
  readonly abandoned: (item: unknown, reason: string) => Promise<boolean>;
}

/** Carries the wait of a `retry` verdict to the backoff strategy. */
class RetryLater extends Error {
  override readonly name = "RetryLater";
  readonly afterMs: number;

  constructor(reason: string, afterMs: number) {
    super(reason);
    this.afterMs = afterMs;
  }
}

/** Ends an item whose outcome is recorded. */
class Cancelled extends UnrecoverableError {}

/** Worker crashes over one item before the worker gives it up. */
const deathsMax = 3;
/** Crashes before BullMQ drops an item: far more, since giving up may crash a worker, too. */
const maxStalledCount = 20;
const abandonedAgainMs = 1_000;
const newerAgainMs = 10_000;

/** The consumer of one queue. */
export interface Consumer extends Component {
  /** Changes how many items are worked on at once; items in work go on. */
  resize(concurrency: number): void;
}

/** Makes the consumer of one queue. */
export function createConsumer(options: ConsumerOptions): Consumer {
  const { queue, log } = options;
  let worker: Worker | undefined;
  const stopping = new AbortController();
  return {
    name: `consumer ${queue}`,
    start: async () => {
      worker = createWorker(options, stopping.signal);
      await worker.waitUntilReady();
    },
    resize: (concurrency) => {
      if (worker !== undefined) worker.concurrency = concurrency;
    },
    stop: async () => {
      const drained = worker;
      worker = undefined;
      stopping.abort();
      if (drained !== undefined) await stopWorker(drained, { queue, graceMs: 0, drainMs: options.drainMs, log });
    },
  };
}

function createWorker(options: ConsumerOptions, stopping: AbortSignal): Worker {
  const { target, queue, concurrency, takeOverAfterMs } = options;
  const log = createRateLimitedLog(options.log, systemClock, "queue");
  // Three parameters: only then BullMQ passes the signal.
  const processor = async (job: Job<unknown>, token: string | undefined, signal: AbortSignal | undefined) => {
    // A stopping worker may still receive a job that it had asked for. It goes back untouched.
    if (stopping.aborted) return applyVerdict(snooze(systemClock.nowMs()), job, token);
    const working =
      job.stalledCounter > deathsMax
        ? giveUp(job, { ...options, log })
        : options.process(job.data, toAttempt(job, signal));
    const verdict = await working.catch((error: unknown) => onFailure(error, job.id, log));
    return applyVerdict(verdict, job, token);
  };
  const { connection, release } = queueConnection(target, "worker");
  const worker = new Worker(queue, processor, {
    connection,
    prefix: target.prefix,
    concurrency,
    lockDuration: takeOverAfterMs,
    stalledInterval: Math.ceil(takeOverAfterMs / 2),
    maxStalledCount,
    settings: { backoffStrategy: (_attempts, _type, error) => (error instanceof RetryLater ? error.afterMs : 5_000) },
  });
  worker.once("closed", release);
  worker.on("error", (error) => log.warn("queue.unreachable", { queue, message: error.message }));
  worker.on("stalled", (id) => log.warn("task.stalled", { queue, taskId: id }));
  worker.on("failed", (job, error) => {
    // Every failed attempt comes here. Only the last one ends a task, unless it has its outcome.
    if (job?.finishedOn === undefined || error instanceof Cancelled) return;
    const failed = (reason: unknown) => log.error("task.abandoned", { queue, message: String(reason) });
    options
      .abandoned(job.data, error.message)
      .then((hasEnded) => hasEnded || failed("its start changes at every try"), failed);
  });
  return worker;
}

/** Ends an item after too many worker crashes. Until that works, the item stays in the queue. */
async function giveUp(job: Job<unknown>, { abandoned, queue, log }: ConsumerOptions): Promise<Verdict> {
  const again = (reason: unknown) => {
    if (reason instanceof NewerVersionError) throw reason;
    log.error("task.abandoned", { queue, taskId: job.id, message: String(reason) });
    return false;
  };
  const hasEnded = await abandoned(job.data, `${job.stalledCounter} workers crashed on it`).catch(again);
  return hasEnded ? done : snooze(systemClock.nowMs() + abandonedAgainMs);
}

/** A newer version's item waits for a replica that can read it. Other failures go to BullMQ. */
function onFailure(error: unknown, taskId: string | undefined, log: EventLog): Verdict {
  if (error instanceof NewerVersionError) {
    log.warn("task.newer-version", { message: error.message });
    return snooze(systemClock.nowMs() + newerAgainMs);
  }
  if (!isRedisOutage(error)) log.error("bug.caught", { taskId, stack: withoutSecrets(stackOf(error)) });
  const plain = new Error(withoutSecrets(errorText(error)));
  if (error instanceof Error) plain.stack = withoutSecrets(error.stack ?? "");
  throw plain;
}

async function applyVerdict(verdict: Verdict, job: Job<unknown>, token: string | undefined): Promise<string> {
  switch (verdict.verdict) {
    case "complete":
      return verdict.ending;
    case "cancel":
      throw new Cancelled(verdict.ending);
    case "retry":
      throw new RetryLater(verdict.ending, verdict.afterMs);
    case "snooze":
      await job.moveToDelayed(Math.max(verdict.untilMs, systemClock.nowMs() + 1), token);
      throw new DelayedError();
  }
}

function toAttempt(job: Job<unknown>, signal: AbortSignal | undefined): Attempt {
  return {
    attempt: job.attemptsMade + 1,
    attemptsMax: job.opts.attempts ?? 1,
    signal: signal ?? new AbortController().signal,
  };
}
