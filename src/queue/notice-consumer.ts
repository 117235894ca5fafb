// Consumes the queue of one sink: one delivery at a time over all replicas, in order. A failed try
// returns its delivery to the head and holds the queue, so nothing overtakes it and
// no worker is blocked. A killed process's delivery goes back to the head, too. Decides only when a
// delivery that blocks the queue is given up.
import { type Job, RateLimitError, UnrecoverableError } from "bullmq";
import { systemClock } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { errorText, stackOf } from "../core/errors.ts";
import { createRateLimitedLog } from "../core/event-log.ts";
import { NewerVersionError } from "../core/newer-version.ts";
import { withoutSecrets } from "../core/secrets.ts";
import { type Delivery, type DeliveryTry, type DeliveryVerdict, parseDelivery } from "../model/notice.ts";
import { type ConsumerBase, createBaseConsumer } from "./base-consumer.ts";
import { type NoticeQueues, sinceOf } from "./notice-queues.ts";
import { sinkQueueName } from "./queues.ts";

/** Why a delivery went to the failed list: its sink refused it, or it took too long. */
interface GivenUp {
  readonly result: "refused" | "given-up";
  readonly reason: string;
}

/** The sink will never take it. */
class DeliveryRefused extends UnrecoverableError {}

/** What a consumer needs. */
export interface NoticeConsumerOptions extends ConsumerBase {
  readonly sink: string;
  readonly queues: Pick<NoticeQueues, "hold" | "oneAtATime">;
  /** Makes one try. */
  readonly process: (delivery: Delivery, attempt: DeliveryTry) => Promise<DeliveryVerdict>;
  /** A delivery went to the failed list. */
  readonly gaveUp: (delivery: Delivery, ending: GivenUp) => void;
}

/** Far above what crashes explain: a delivery crashes no process. */
const maxStalledCount = 1_000;
/** BullMQ needs a limiter to hold a queue. This one never limits: `hold` does. */
const noLimit = { max: 1_000_000_000, duration: 1 };
/** How often a held queue is checked: a changed sink may end its hold. */
const holdCheckMs = 2_000;
const newerAgainMs = 2_000;
const bugAgainMs = 5_000;
/** After this a delivery that cannot be read or rendered goes to the failed list. */
const blockedMsMax = 86_400_000;
/** But not before so many tries, ten minutes: a day may be over at the first one. */
const blockedTriesMin = 300;
/** How long a delivery under way may take to end when the process stops. */
const graceMs = 1_000;

/** Makes the consumer of one sink's queue. */
export function createNoticeConsumer(given: NoticeConsumerOptions): Component {
  const log = createRateLimitedLog(given.log, systemClock, "queue");
  const options = { ...given, log };
  const { sink, queues, gaveUp } = options;
  const queue = sinkQueueName(sink);
  return createBaseConsumer(options, {
    queue,
    graceMs,
    options: { concurrency: 1, maxStalledCount, limiter: noLimit, maximumRateLimitDelay: holdCheckMs },
    // First of all: without it two workers would deliver side by side.
    before: () => queues.oneAtATime(sink),
    process: async (job, { signal, isStopping }) => {
      const verdict: DeliveryVerdict = isStopping
        ? { verdict: "back" }
        : await attempt(job, options, signal).catch((error: unknown) => onBug(job, error, options));
      return applyVerdict(verdict, options);
    },
    listen: (worker) => {
      worker.on("failed", (job, error) => {
        if (job === undefined) return;
        try {
          const result = error instanceof DeliveryRefused ? "refused" : "given-up";
          gaveUp(parseDelivery(job.data), { result, reason: error.message });
        } catch {
          log.error("sink.unreadable", { queue, message: error.message });
        }
      });
    },
  });
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
    return laterOrFailed(job, error.message, newerAgainMs);
  }
  return process(delivery, { tries: Math.max(1, job.attemptsStarted), signal });
}

function onBug(job: Job<unknown>, error: unknown, { log, sink }: NoticeConsumerOptions): DeliveryVerdict {
  const stack = withoutSecrets(stackOf(error));
  log.error("bug.caught", { sink, stack });
  return laterOrFailed(job, errorText(error), bugAgainMs);
}

function laterOrFailed(job: Job, reason: string, afterMs: number): DeliveryVerdict {
  const isOld = job.attemptsStarted >= blockedTriesMin && systemClock.nowMs() - sinceOf(job) >= blockedMsMax;
  return isOld ? { verdict: "failed", reason } : { verdict: "later", reason, afterMs };
}

async function applyVerdict(verdict: DeliveryVerdict, { queues, sink }: NoticeConsumerOptions): Promise<string> {
  switch (verdict.verdict) {
    case "delivered":
      return "delivered";
    case "failed":
      throw new (verdict.isRefused === true ? DeliveryRefused : UnrecoverableError)(withoutSecrets(verdict.reason));
    case "later":
      // If Redis does not answer, the delivery stays the first, only its hold is lost.
      await queues.hold(sink, verdict.afterMs).catch(() => {});
      throw new RateLimitError();
    case "back":
      throw new RateLimitError();
  }
}
