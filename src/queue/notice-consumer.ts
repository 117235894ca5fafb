// Consumes the queue of one sink: one delivery at a time over all replicas, in order. A failed try
// returns its delivery to the head and starts a cool-down of the queue, so nothing overtakes it and
// no worker is blocked. A killed process's delivery goes back to the head, too. Decides nothing
// itself.
import { type Job, RateLimitError, UnrecoverableError, Worker } from "bullmq";
import { systemClock } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import { NewerVersionError } from "../core/newer-version.ts";
import { withoutSecrets } from "../core/secrets.ts";
import { type Delivery, type DeliveryTry, type DeliveryVerdict, parseDelivery } from "../model/notice.ts";
import type { RedisTarget } from "../store/connect.ts";
import type { NoticeQueues } from "./notice-queues.ts";
import { queueConnection, sinkQueueName } from "./queues.ts";
import { stopWorker } from "./stop-worker.ts";

/** What a consumer needs. */
export interface NoticeConsumerOptions {
  readonly target: RedisTarget;
  readonly sink: string;
  readonly queues: Pick<NoticeQueues, "hold" | "inOneLine">;
  /** How long a worker may stay silent before another one takes its delivery. */
  readonly takeOverAfterMs: number;
  readonly drainMs: number;
  readonly log: EventLog;
  /** Makes one try. */
  readonly process: (delivery: Delivery, attempt: DeliveryTry) => Promise<DeliveryVerdict>;
  /** A delivery went to the failed list. */
  readonly gaveUp: (delivery: Delivery, reason: string) => void;
}

/** Far above what crashes explain: a delivery crashes no process. */
const maxStalledCount = 1_000;
/** BullMQ needs a limiter for a cool-down. This one never limits: `hold` sets the cool-down. */
const noLimit = { max: 1_000_000_000, duration: 1 };
/** How often a cooling queue is checked: a changed sink may end its cool-down. */
const coolDownCheckMs = 2_000;
const newerAgainMs = 2_000;
const bugAgainMs = 5_000;
/** How long a delivery under way may take to end when the process stops. */
const graceMs = 1_000;

/** Makes the consumer of one sink's queue. */
export function createNoticeConsumer(options: NoticeConsumerOptions): Component {
  const { sink, queues, log, drainMs } = options;
  const queue = sinkQueueName(sink);
  let worker: Worker | undefined;
  const stopping = new AbortController();
  return {
    name: `consumer ${queue}`,
    start: async () => {
      // First of all: without it two workers would deliver side by side.
      await queues.inOneLine(sink);
      if (stopping.signal.aborted) return;
      worker = createWorker(options, stopping.signal);
      await worker.waitUntilReady();
    },
    stop: async () => {
      const drained = worker;
      worker = undefined;
      stopping.abort();
      if (drained !== undefined) await stopWorker(drained, { queue, graceMs, drainMs, log });
    },
  };
}

function createWorker(options: NoticeConsumerOptions, stopping: AbortSignal): Worker {
  const { target, sink, takeOverAfterMs, gaveUp } = options;
  const queue = sinkQueueName(sink);
  const log = createRateLimitedLog(options.log, systemClock, "queue");
  // Three parameters: only then BullMQ passes the signal.
  const processor = async (job: Job<unknown>, _token: string | undefined, signal: AbortSignal | undefined) => {
    const cancel = signal ?? new AbortController().signal;
    const verdict: DeliveryVerdict = stopping.aborted
      ? { verdict: "back" }
      : await attempt(job, options, cancel).catch((error: unknown) => onBug(error, options));
    return applyVerdict(verdict, options);
  };
  const { connection, release } = queueConnection(target, "worker");
  const worker = new Worker(queue, processor, {
    connection,
    prefix: target.prefix,
    concurrency: 1,
    lockDuration: takeOverAfterMs,
    stalledInterval: Math.ceil(takeOverAfterMs / 2),
    maxStalledCount,
    limiter: noLimit,
    maximumRateLimitDelay: coolDownCheckMs,
  });
  worker.once("closed", release);
  worker.on("error", (error) => log.warn("queue.unreachable", { queue, message: error.message }));
  worker.on("failed", (job, error) => {
    if (job === undefined) return;
    try {
      gaveUp(parseDelivery(job.data), error.message);
    } catch {
      log.error("sink.unreadable", { queue, message: error.message });
    }
  });
  return worker;
}

async function attempt(
  job: Job<unknown>,
  { process, log, sink }: NoticeConsumerOptions,
  signal: AbortSignal,
): Promise<DeliveryVerdict> {
  let delivery: Delivery;
  try {
    delivery = parseDelivery(job.data);
  } catch (error) {
    if (!(error instanceof NewerVersionError)) return { verdict: "failed", reason: "this is no notice" };
    // A replica of the newer version takes it, or this one after its upgrade.
    log.warn("sink.newer-version", { sink, message: error.message });
    return { verdict: "later", reason: error.message, afterMs: newerAgainMs };
  }
  return process(delivery, { tries: Math.max(1, job.attemptsStarted), signal });
}

function onBug(error: unknown, { log, sink }: NoticeConsumerOptions): DeliveryVerdict {
  const reason = withoutSecrets(error instanceof Error ? (error.stack ?? error.message) : String(error));
  log.error("bug.caught", { sink, message: reason });
  return { verdict: "later", reason, afterMs: bugAgainMs };
}

async function applyVerdict(verdict: DeliveryVerdict, { queues, sink }: NoticeConsumerOptions): Promise<string> {
  switch (verdict.verdict) {
    case "delivered":
      return "delivered";
    case "failed":
      throw new UnrecoverableError(withoutSecrets(verdict.reason));
    case "later":
      // If Redis does not answer, the delivery stays the first, only its cool-down is lost.
      await queues.hold(sink, verdict.afterMs).catch(() => {});
      throw new RateLimitError();
    case "back":
      throw new RateLimitError();
  }
}
