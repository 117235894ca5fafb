// Takes tasks out of one queue and turns each verdict into what the queue understands. Decides nothing itself.
import { DelayedError, type Job, UnrecoverableError, Worker } from "bullmq";
import { systemClock } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { NewerVersionError } from "../core/newer-version.ts";
import { withoutSecrets } from "../core/secrets.ts";
import { createSparingLog } from "../core/sparing-log.ts";
import type { RedisTarget } from "../store/connect.ts";
import type { Attempt } from "../tasks/seams.ts";
import { done, snooze, type Verdict } from "../tasks/verdict.ts";
import { queueConnection } from "./queues.ts";
import { stopWorker } from "./stop-worker.ts";

/** What a consumer needs. */
export interface ConsumerOptions {
  readonly target: RedisTarget;
  readonly queue: string;
  /** How many items are worked on at once in this process. */
  readonly concurrency: number;
  /** How long a worker may stay silent before another one takes its items. */
  readonly takeOverAfterMs: number;
  /** How long stopping may wait for items in work. */
  readonly drainMs: number;
  readonly log: EventLog;
  /** Does one step of an item. */
  readonly process: (item: unknown, attempt: Attempt) => Promise<Verdict>;
  /** Ends an item over which too many workers died, or all of its attempts, without working on it. False: it could not be ended yet. */
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

/** Ends an item whose outcome stands. */
class GivenUp extends UnrecoverableError {}

/** How often a worker may die over one item before it is given up. */
const deathsMax = 3;
/** When the queue gives it up by itself, since workers die over giving it up, too. It would be out of the queue before it has its outcome. */
const maxStalledCount = 20;
const abandonedAgainMs = 1_000;
const newerAgainMs = 10_000;

/** The consumer of one queue. */
export interface Consumer extends Component {
  /** How many items are worked on at once from now on; what is in work goes on. */
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
  const log = createSparingLog(options.log, systemClock, "queue");
  // Three parameters: only then BullMQ passes the signal.
  const processor = async (job: Job<unknown>, token: string | undefined, signal: AbortSignal | undefined) => {
    // A worker that is told to stop may still get what it was already asking for: it goes back untouched.
    if (stopping.aborted) return obey(snooze(systemClock.nowMs()), job, token);
    const working =
      job.stalledCounter > deathsMax
        ? giveUp(job, { ...options, log })
        : options.process(job.data, toAttempt(job, signal));
    const verdict = await working.catch((error: unknown) => onFailure(error, log));
    return obey(verdict, job, token);
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
    // The queue reports every failed attempt; only the last one ends a task, and not one that was given up with its outcome.
    if (job?.finishedOn === undefined || error instanceof GivenUp) return;
    const failed = (reason: unknown) => log.error("task.abandoned", { queue, message: String(reason) });
    options
      .abandoned(job.data, error.message)
      .then((hasEnded) => hasEnded || failed("it moves on all the time"), failed);
  });
  return worker;
}

/** Ends what too many workers died over. Until that is done it stays in the queue. */
async function giveUp(job: Job<unknown>, { abandoned, queue, log }: ConsumerOptions): Promise<Verdict> {
  const again = (reason: unknown) => {
    if (reason instanceof NewerVersionError) throw reason;
    log.error("task.abandoned", { queue, taskId: job.id, message: String(reason) });
    return false;
  };
  const hasEnded = await abandoned(job.data, `${job.stalledCounter} workers died over it`).catch(again);
  return hasEnded ? done : snooze(systemClock.nowMs() + abandonedAgainMs);
}

/**
 * What a newer version wrote is put back: its replicas take it, or this one after it was replaced. What any other failure says stays
 * in Redis, with its stack: without what hangs on it, and through the net for secrets.
 */
function onFailure(error: unknown, log: EventLog): Verdict {
  if (error instanceof NewerVersionError) {
    log.warn("task.newer-version", { message: error.message });
    return snooze(systemClock.nowMs() + newerAgainMs);
  }
  const plain = new Error(withoutSecrets(errorText(error)));
  if (error instanceof Error) plain.stack = withoutSecrets(error.stack ?? "");
  throw plain;
}

async function obey(verdict: Verdict, job: Job<unknown>, token: string | undefined): Promise<string> {
  switch (verdict.verdict) {
    case "done":
    case "skipped":
      return verdict.verdict;
    case "give-up":
      throw new GivenUp("given up");
    case "retry":
      throw new RetryLater(verdict.reason, verdict.afterMs);
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
