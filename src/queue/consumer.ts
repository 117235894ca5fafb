// Consumes one queue: hands each job to the processor and applies its verdict. Decides only when
// too many crashes end an item.
import { DelayedError, type Job, UnrecoverableError } from "bullmq";
import { systemClock } from "../core/clock.ts";
import { errorText, stackOf } from "../core/errors.ts";
import { createRateLimitedLog } from "../core/event-log.ts";
import { NewerVersionError } from "../core/newer-version.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { withoutSecrets } from "../core/secrets.ts";
import type { Attempt } from "../model/task-processing.ts";
import { done, snoozeFor, type Verdict } from "../model/verdict.ts";
import { type Consumer, type ConsumerBase, createBaseConsumer, type JobContext } from "./base-consumer.ts";

/** What a consumer needs. */
export interface ConsumerOptions extends ConsumerBase {
  readonly queue: string;
  /** Items in work at once, in this process. */
  readonly concurrency: number;
  /**
   * How far this machine's clock is ahead of Redis's. Verdicts name instants of Redis's, and
   * BullMQ goes by the machine's.
   */
  readonly clockAheadMs: () => number;
  /** Does one step of an item. */
  readonly process: (item: unknown, attempt: Attempt) => Promise<Verdict>;
  /** Ends an item after too many worker crashes, or a bug. False: not possible now. */
  readonly endAbandoned: (item: unknown, reason: string) => Promise<boolean>;
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
class ItemFailed extends UnrecoverableError {}

/** After so many worker crashes in a row an item is still tried again; one more ends it. */
const crashesMax = 3;
/** After so many BullMQ drops an item: far more, since the last try may crash its worker, too. */
const maxStalledCount = 20;
const abandonedAgainMs = 1_000;
const notEnded =
  "it could not be ended: another worker is at it, Redis is undecided, or may be another owner's; nothing tries again";
const newerAgainMs = 10_000;

/** Makes the consumer of one queue. */
export function createConsumer(given: ConsumerOptions): Consumer {
  const log = createRateLimitedLog(given.log, systemClock, "queue");
  const options = { ...given, log };
  const { queue, concurrency, endAbandoned } = options;
  const process = async (job: Job<unknown>, { token, signal, isStopping }: JobContext) => {
    if (isStopping) return applyVerdict(snoozeFor(0, options.clockAheadMs()), job, { token, options });
    const isDoomed = job.stalledCounter > crashesMax;
    const working = isDoomed ? giveUp(job, options) : options.process(job.data, toAttempt(job, signal));
    const verdict = await working.catch((error: unknown) => onFailure(error, job.id, options));
    if (!isDoomed && job.stalledCounter > 0) forgetCrashes(job, options);
    return applyVerdict(verdict, job, { token, options });
  };
  return createBaseConsumer(options, {
    queue,
    graceMs: 0,
    options: {
      concurrency,
      maxStalledCount,
      settings: { backoffStrategy: (_attempts, _type, error) => (error instanceof RetryLater ? error.afterMs : 5_000) },
    },
    process,
    listen: (worker) => {
      worker.on("stalled", (id) => given.log.warn("task.stalled", { queue, taskId: id }));
      worker.on("failed", (job, error) => {
        // Every failed attempt comes here. After ItemFailed there is an outcome, after any other
        // last failure none.
        if (job?.finishedOn === undefined || error instanceof ItemFailed) return;
        const failed = (reason: unknown) =>
          log.error("task.abandoned", { queue, taskId: job.id, message: String(reason) });
        endAbandoned(job.data, error.message).then((hasEnded) => hasEnded || failed(notEnded), failed);
      });
    },
  });
}

/** Ends an item after too many worker crashes. Until that works, the item stays in the queue. */
async function giveUp(job: Job<unknown>, options: ConsumerOptions): Promise<Verdict> {
  const { endAbandoned, queue, log } = options;
  const again = (reason: unknown) => {
    if (reason instanceof NewerVersionError) throw reason;
    log.error("task.abandoned", { queue, taskId: job.id, message: String(reason) });
    return false;
  };
  const why = `${job.stalledCounter} times in a row a worker fell silent over it (died, hung, or lost Redis)`;
  const hasEnded = await endAbandoned(job.data, why).catch(again);
  return hasEnded ? done : snoozeFor(abandonedAgainMs, options.clockAheadMs());
}

/**
 * A step that ended forgives the crashes before it: BullMQ counts an outage of Redis, in which the
 * lock of a job expires, as a crash, and a run that lasts for days may meet several.
 */
function forgetCrashes({ queueQualifiedName, id }: Job<unknown>, { connections, log, queue }: ConsumerOptions): void {
  connections.commands.hdel(`${queueQualifiedName}:${id}`, "stc").catch((error: unknown) => {
    log.warn("queue.unreachable", { queue, message: errorText(error) });
  });
}

/** A newer version's item waits for a replica that can read it. Other failures go to BullMQ. */
function onFailure(error: unknown, taskId: string | undefined, options: ConsumerOptions): Verdict {
  const { log } = options;
  if (error instanceof NewerVersionError) {
    log.warn("task.newer-version", { message: error.message });
    return snoozeFor(newerAgainMs, options.clockAheadMs());
  }
  if (!isRedisOutage(error)) log.error("bug.caught", { taskId, stack: withoutSecrets(stackOf(error)) });
  const plain = new Error(withoutSecrets(errorText(error)));
  if (error instanceof Error) plain.stack = withoutSecrets(error.stack ?? "");
  throw plain;
}

interface Application {
  readonly token: string | undefined;
  readonly options: ConsumerOptions;
}

async function applyVerdict(verdict: Verdict, job: Job<unknown>, { token, options }: Application): Promise<string> {
  switch (verdict.verdict) {
    case "complete":
      return verdict.ending;
    case "fail":
      throw new ItemFailed(verdict.ending);
    case "retry":
      throw new RetryLater(verdict.ending, verdict.afterMs);
    case "snooze":
      await job.moveToDelayed(Math.max(verdict.untilMs + options.clockAheadMs(), systemClock.nowMs() + 1), token);
      throw new DelayedError();
  }
}

function toAttempt({ attemptsMade, opts }: Job<unknown>, signal: AbortSignal): Attempt {
  return { attempt: attemptsMade + 1, attemptsMax: opts.attempts ?? 1, signal };
}
