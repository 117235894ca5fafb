// The queues of the sinks, one each: takes notices, pauses a queue, and keeps failed deliveries.
// Delivers nothing itself.
import type { Job, Queue } from "bullmq";
import { systemClock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { hashText } from "../core/stable-hash.ts";
import { type Delivery, type FailedDelivery, type Notice, parseDelivery } from "../model/notice.ts";
import type { RedisTarget } from "../store/connect.ts";
import { deliveryOptions, OpenQueues, sinkQueueName } from "./queues.ts";

/** The backlog of a sink's queue. */
export interface SinkBacklog {
  /** Notices not delivered yet, including the one in work. */
  readonly waiting: number;
  readonly failed: number;
  /** When the first waiting one was added or replayed, milliseconds UTC; undefined: none waits. */
  readonly oldestMs: number | undefined;
  /** Its newest failed delivery; undefined where a later one was delivered. */
  readonly refused: Refusal | undefined;
}

/** A delivery that ended in the failed list. */
interface Refusal {
  readonly atMs: number;
  readonly reason: string;
}

/** What became of one notice at one sink. */
export type DeliveryState = "delivered" | "waiting" | "failed";

/** Failed deliveries read at once. */
const failedPage = 500;

/** The queues of all sinks. */
export class NoticeQueues {
  readonly #queues: OpenQueues;

  constructor(target: RedisTarget, log: EventLog) {
    this.#queues = new OpenQueues(target, log);
  }

  /** Adds the notices that it does not know, in order. Answers the last ones, without room. */
  async add(sink: string, notices: readonly Notice[], queueMax: number): Promise<readonly Notice[]> {
    return this.#call(sink, async (queue) => {
      const room = queueMax - (await queue.getJobCountByTypes("waiting", "active", "prioritized", "delayed"));
      // Known notices need no room. That only matters when room is short.
      const fresh = room >= notices.length ? notices : await unknownOf(queue, notices);
      const taken = fresh.slice(0, Math.max(0, room));
      const sinceMs = systemClock.nowMs();
      const jobs = taken.map((notice) => ({
        name: notice.kind,
        data: { v: 1, notice, sinceMs } satisfies Delivery,
        opts: { ...deliveryOptions, jobId: jobIdOf(notice.id) },
      }));
      if (jobs.length > 0) {
        // An emptied Redis has forgotten it. So it is set before a notice is added.
        await queue.setGlobalConcurrency(1);
        await queue.addBulk(jobs);
      }
      return fresh.slice(taken.length);
    });
  }

  /** Allows one delivery at a time, over all replicas, as long as the queue exists. */
  async oneAtATime(sink: string): Promise<void> {
    await this.#call(sink, (queue) => queue.setGlobalConcurrency(1));
  }

  /** Stops all deliveries of this queue for this time. */
  async hold(sink: string, durationMs: number): Promise<void> {
    await this.#call(sink, (queue) => queue.rateLimit(durationMs));
  }

  /** Lets deliveries go on before that time is over. */
  async release(sink: string): Promise<void> {
    await this.#call(sink, (queue) => queue.removeRateLimitKey());
  }

  /** Measures a queue. */
  backlog(sink: string): Promise<SinkBacklog> {
    return this.#call(sink, async (queue) => {
      const counts = await queue.getJobCounts("waiting", "prioritized", "active", "delayed", "failed");
      const { waiting = 0, prioritized = 0, active = 0, delayed = 0, failed = 0 } = counts;
      const [first] = active > 0 ? await queue.getActive(0, 0) : waiting > 0 ? await queue.getWaiting(0, 0) : [];
      const refused = failed === 0 ? undefined : await refusalOf(queue);
      return { waiting: waiting + prioritized + active + delayed, failed, oldestMs: first && sinceOf(first), refused };
    });
  }

  /** What became of a notice, as long as its queue knows. */
  find(sink: string, noticeId: string): Promise<{ state: DeliveryState; reason?: string } | undefined> {
    return this.#call(sink, async (queue) => {
      const job = await queue.getJob(jobIdOf(noticeId));
      const state = await job?.getState();
      if (job === undefined || state === "unknown") return undefined;
      if (state === "failed") return { state, reason: job.failedReason };
      return { state: state === "completed" ? "delivered" : "waiting" };
    });
  }

  /** Returns at most `count` failed deliveries, newest first, without unreadable ones. */
  async failed(sink: string, count: number): Promise<readonly FailedDelivery[]> {
    const found: FailedDelivery[] = [];
    for (let from = 0; from < count; from += failedPage) {
      const until = Math.min(count, from + failedPage) - 1;
      const jobs = await this.#call(sink, (queue) => queue.getFailed(from, until));
      found.push(...jobs.flatMap((job) => toFailed(sink, job)));
      if (jobs.length <= until - from) break;
    }
    return found;
  }

  /** Puts a failed delivery at the end of its queue, as a new one. False when there is none. */
  replay(sink: string, noticeId: string): Promise<boolean> {
    return this.#failedJob(sink, noticeId, async (job) => {
      await job.updateData({ ...parseDelivery(job.data), sinceMs: systemClock.nowMs() });
      await job.retry("failed", { resetAttemptsMade: true, resetAttemptsStarted: true });
    });
  }

  /** Deletes a failed delivery. False when there is none. */
  discard(sink: string, noticeId: string): Promise<boolean> {
    return this.#failedJob(sink, noticeId, (job) => job.remove());
  }

  /** Deletes a queue with all its notices. */
  async forget(sink: string): Promise<void> {
    await this.#call(sink, (queue) => queue.obliterate({ force: true }));
  }

  /** Closes the connections. */
  close(): Promise<void> {
    return this.#queues.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #failedJob(sink: string, noticeId: string, change: (job: Job) => Promise<void>): Promise<boolean> {
    return this.#call(sink, async (queue) => {
      const job = await queue.getJob(jobIdOf(noticeId));
      if (job === undefined || !(await job.isFailed())) return false;
      try {
        await change(job);
      } catch (error) {
        // Another command may have been quicker.
        if (isRedisOutage(error) || (await job.isFailed())) throw error;
        return false;
      }
      return true;
    });
  }

  #call<T>(sink: string, call: (queue: Queue) => Promise<T>): Promise<T> {
    return this.#queues.call(sinkQueueName(sink), call);
  }
}

/** A notice's id may hold characters that a job id must not. */
function jobIdOf(noticeId: string): string {
  return `n-${hashText(noticeId, 40)}`;
}

/** Since when a delivery waits; of one that cannot be read, since it was added. */
export function sinceOf({ data, timestamp }: Job): number {
  try {
    return parseDelivery(data).sinceMs;
  } catch {
    return timestamp;
  }
}

async function refusalOf(queue: Queue): Promise<Refusal | undefined> {
  const [[failed], [delivered]] = await Promise.all([queue.getFailed(0, 0), queue.getCompleted(0, 0)]);
  const { finishedOn: atMs = 0, failedReason: reason = "" } = failed ?? {};
  return failed === undefined || (delivered?.finishedOn ?? 0) > atMs ? undefined : { atMs, reason };
}

async function unknownOf(queue: Queue, notices: readonly Notice[]): Promise<Notice[]> {
  const jobs = await Promise.all(notices.map(({ id }) => queue.getJob(jobIdOf(id))));
  const unknown = notices.filter((_, index) => jobs[index] === undefined);
  return [...new Map(unknown.map((notice) => [notice.id, notice])).values()];
}

function toFailed(sink: string, job: Job): FailedDelivery[] {
  try {
    const { notice } = parseDelivery(job.data);
    const { failedReason, finishedOn, attemptsStarted } = job;
    return [{ sink, notice, reason: failedReason ?? "", failedAtMs: finishedOn ?? 0, tries: attemptsStarted }];
  } catch {
    // A replica of the newer version that wrote it shows it.
    return [];
  }
}
