// Puts tasks and feed walks into their queues. Job ids are deterministic, so a second add changes
// nothing.
import { Queue } from "bullmq";
import { type Clock, systemClock, withDeadline } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { createRateLimitedLog } from "../core/rate-limited-log.ts";
import type { JobStatus, Urgency } from "../model/contracts.ts";
import { type FeedWalk, feedId } from "../model/feed.ts";
import type { Task } from "../model/task.ts";
import type { RedisTarget } from "../store/connect.ts";
import { feedWalkOptions, queueConnection, queueName, taskOptions, urgencyOf } from "./queues.ts";

const debounceMs = 250;

/**
 * Merges the requests of this process for walks: the first one goes out, later ones within 250 ms
 * together.
 */
export class WalkDebouncer {
  readonly #options: WalkDebouncerOptions;
  readonly #pending = new Map<string, PendingWalk>();
  readonly #closed = new AbortController();

  constructor(options: WalkDebouncerOptions) {
    this.#options = options;
  }

  /**
   * Makes sure that the feed is walked. Resolves when the request is in the queue, or sure to go
   * soon.
   */
  async walk(walk: FeedWalk, { hurry }: { readonly hurry: boolean }): Promise<void> {
    const pending = this.#pending.get(feedId(walk));
    if (pending !== undefined) {
      pending.asked = true;
      pending.hurry ||= hurry;
      return;
    }
    this.#debounce(walk);
    await this.#options.ask(walk, { hurry });
  }

  /** Drops the merged requests. */
  close(): void {
    this.#closed.abort();
  }

  #debounce(walk: FeedWalk): void {
    const pending: PendingWalk = { asked: false, hurry: false };
    this.#pending.set(feedId(walk), pending);
    const flush = async () => {
      await this.#options.clock.sleep(debounceMs, this.#closed.signal);
      this.#pending.delete(feedId(walk));
      if (pending.asked && !this.#closed.signal.aborted) await this.walk(walk, pending);
    };
    flush().catch(this.#options.onFailure);
  }
}

/** A task in its queue. `state`: BullMQ's word, such as waiting, delayed, active, completed. */
export interface QueuedTask {
  readonly state: string;
  /** Whether a worker works on it, or will. */
  readonly isInFlight: boolean;
  readonly queuedAtMs: number;
}

/** The backlog of one queue. */
export interface Backlog {
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  /**
   * Since when the oldest untouched task waits, if it is among the first in line; milliseconds UTC.
   */
  readonly oldestMs: number | undefined;
}

/** Returned tasks stand between new ones: so many are read to find the oldest new one. */
const oldestLookedAt = 20;

const closeWithinMs = 2_000;

/** Tasks woken at a time. */
const wokenAtOnce = 100;

/** Deadline of one call, with all that BullMQ does for it. */
const callWithinMs = 8_000;

/**
 * The producing side of all queues. Every call ends within eight seconds, even when Redis is frozen
 * or was never reachable.
 */
export class Producer {
  readonly #queues = new Map<string, { readonly queue: Queue; readonly release: () => void }>();
  readonly #target: RedisTarget;
  readonly #log: EventLog;
  readonly #walks: WalkDebouncer;

  constructor(target: RedisTarget, log: EventLog) {
    this.#target = target;
    this.#log = createRateLimitedLog(log, systemClock, "queue");
    this.#walks = new WalkDebouncer({
      ask: (walk, options) => this.#ask(walk, options),
      clock: systemClock,
      onFailure: (error) => this.#log.warn("queue.unreachable", { queue: "polls", message: String(error) }),
    });
  }

  /** Adds tasks: each queue in one step, all queues at once. */
  async enqueue(tasks: readonly Task[]): Promise<void> {
    const byQueue = Map.groupBy(tasks, (task) => queueName(task.service, urgencyOf(task.kind)));
    const added = [...byQueue].map(([name, group]) => {
      const jobs = group.map((task) => ({ name: task.kind, data: task, opts: { ...taskOptions, jobId: task.id } }));
      return this.#call(name, (queue) => queue.addBulk(jobs));
    });
    await Promise.all(added);
  }

  /**
   * Makes sure that a feed is walked: adds its walk unless it is there. `hurry` wakes a delayed
   * one.
   */
  walk(walk: FeedWalk, options: { readonly hurry: boolean }): Promise<void> {
    return this.#walks.walk(walk, options);
  }

  /** Wakes delayed tasks among a service's actions; leaves others alone. */
  async wake(service: string, taskIds: readonly string[]): Promise<void> {
    for (let from = 0; from < taskIds.length; from += wokenAtOnce) {
      const batch = taskIds.slice(from, from + wokenAtOnce);
      await this.#call(queueName(service, "actions"), async (queue) => {
        const jobs = await Promise.all(batch.map((id) => queue.getJob(id)));
        // BullMQ rejects a task that is not delayed any more. It is on its way already.
        await Promise.allSettled(jobs.map((job) => job?.promote()));
      });
    }
  }

  /** Counts the workers of this queue, over all processes. */
  workers(service: string, urgency: Urgency): Promise<number> {
    return this.#call(queueName(service, urgency), (queue) => queue.getWorkersCount());
  }

  /** Finds a task in its queue; undefined when it is not there. */
  find({ service, kind, id }: Pick<Task, "service" | "kind" | "id">): Promise<QueuedTask | undefined> {
    return this.#call(queueName(service, urgencyOf(kind)), async (queue) => {
      const job = await queue.getJob(id);
      if (job === undefined) return undefined;
      const state = await job.getState();
      const isOver = state === "completed" || state === "failed" || state === "unknown";
      return { state, isInFlight: !isOver, queuedAtMs: job.timestamp };
    });
  }

  /** Returns the status of a task among a service's actions. */
  fate(service: string, taskId: string): Promise<JobStatus> {
    return this.#call(queueName(service, "actions"), async (queue) => {
      const job = await queue.getJob(taskId);
      if (job === undefined) return "gone";
      if (job.finishedOn === undefined) return "open";
      return (await job.isCompleted()) ? "over" : "gone";
    });
  }

  /** Measures a queue. */
  backlog(service: string, urgency: Urgency): Promise<Backlog> {
    return this.#call(queueName(service, urgency), async (queue) => {
      const counts = await queue.getJobCounts("waiting", "prioritized", "active", "delayed");
      const { waiting = 0, prioritized = 0, active = 0, delayed = 0 } = counts;
      const oldest = waiting === 0 ? [] : await queue.getWaiting(0, oldestLookedAt - 1);
      const untouched = oldest.filter((job) => job?.processedOn === undefined).map((job) => job.timestamp);
      return {
        waiting: waiting + prioritized,
        active,
        delayed,
        oldestMs: untouched.length === 0 ? undefined : Math.min(...untouched),
      };
    });
  }

  /** Counts the unfinished items of a service in both queues. */
  async pending(service: string): Promise<number> {
    const counts = await Promise.all(
      (["actions", "polls"] as const).map((urgency) =>
        this.#call(queueName(service, urgency), (queue) =>
          queue.getJobCountByTypes("waiting", "delayed", "prioritized", "active"),
        ),
      ),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Closes the connections without waiting for a Redis that does not answer. */
  async close(): Promise<void> {
    this.#walks.close();
    const open = [...this.#queues.values()];
    const closing = Promise.all(open.map(({ queue }) => queue.close()));
    this.#queues.clear();
    await withDeadline(closing, closeWithinMs, () => new Error("no answer")).catch((error: unknown) => {
      closing.catch(() => {});
      this.#log.warn("queue.close-incomplete", { message: errorText(error) });
    });
    for (const { release } of open) release();
  }

  /**
   * A call past its deadline may still take effect. That is harmless, since every job has its own
   * id.
   */
  #call<T>(name: string, call: (queue: Queue) => Promise<T>): Promise<T> {
    return withDeadline(call(this.#queue(name)), callWithinMs, () => new Error(`Command timed out: queue ${name}`));
  }

  #ask(walk: FeedWalk, { hurry }: { readonly hurry: boolean }): Promise<void> {
    const jobId = feedId(walk);
    return this.#call(queueName(walk.service, "polls"), async (queue) => {
      await queue.add(walk.kind, walk, { ...feedWalkOptions, jobId });
      const job = hurry ? await queue.getJob(jobId) : undefined;
      if (job === undefined || !(await job.isDelayed())) return;
      await job.promote().catch(() => {
        // The walk was woken in between, as wanted.
      });
    });
  }

  #queue(name: string): Queue {
    const known = this.#queues.get(name);
    if (known !== undefined) return known.queue;
    const { connection, release } = queueConnection(this.#target, "commands");
    const queue = new Queue(name, { connection, prefix: this.#target.prefix });
    queue.on("error", (error) => this.#log.warn("queue.unreachable", { queue: name, message: error.message }));
    this.#queues.set(name, { queue, release });
    return queue;
  }
}

/** Asks the queue for one walk. */
type AskForWalk = (walk: FeedWalk, options: { readonly hurry: boolean }) => Promise<void>;

/**
 * What a debouncer needs. `onFailure`: a merged request failed; its tasks ask again at their next
 * step.
 */
interface WalkDebouncerOptions {
  readonly ask: AskForWalk;
  readonly clock: Pick<Clock, "sleep">;
  readonly onFailure: (error: unknown) => void;
}

interface PendingWalk {
  asked: boolean;
  hurry: boolean;
}
