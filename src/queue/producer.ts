// The queues of tasks and walks, from outside: adds, wakes, finds, measures, tidies. Job ids are
// deterministic, so a second add changes nothing.
import type { Job, Queue } from "bullmq";
import { systemClock } from "../core/clock.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { type FeedWalk, feedId } from "../model/feed.ts";
import type { Task } from "../model/task.ts";
import { type JobStatus, type QueueKind, queueKinds } from "../model/task-processing.ts";
import type { RedisTarget } from "../store/connect.ts";
import { batchesOf } from "../store/script.ts";
import { feedWalkOptions, OpenQueues, queueKindOf, queueName, taskOptions } from "./queues.ts";
import { WalkDebouncer } from "./walk-debouncer.ts";

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
  /** Since when the oldest new task waits, if it is among the first 1,000 in line; UTC. */
  readonly oldestMs: number | undefined;
}

/**
 * Where the oldest new task is looked for, first near, then far: returned tasks stand before new
 * ones, few as a rule, hundreds where many runs wake.
 */
const oldestSearchedIn = [
  [0, 19],
  [20, 999],
] as const;

/** Tasks woken at a time. */
const wokenAtOnce = 100;
/** Ended items dropped at a time. */
const tidiedAtOnce = 100;

/** The producing side of the queues of tasks and walks. */
export class Producer {
  readonly #queues: OpenQueues;
  readonly #walks: WalkDebouncer;

  constructor(target: RedisTarget, log: EventLog) {
    this.#queues = new OpenQueues(target, log);
    const failures = createRateLimitedLog(log, systemClock, "queue");
    this.#walks = new WalkDebouncer({
      ask: (walk, options) => this.#ask(walk, options),
      clock: systemClock,
      onFailure: (error) => failures.warn("queue.unreachable", { queue: "polls", message: String(error) }),
    });
  }

  /** Adds tasks: each queue in one step, all queues at once. */
  async enqueue(tasks: readonly Task[]): Promise<void> {
    const byQueue = Map.groupBy(tasks, (task) => queueName(task.service, queueKindOf(task.kind)));
    const added = [...byQueue].map(([name, group]) => {
      const jobs = group.map((task) => ({ name: task.kind, data: task, opts: { ...taskOptions, jobId: task.id } }));
      return this.#queues.call(name, (queue) => queue.addBulk(jobs));
    });
    await Promise.all(added);
  }

  /** Adds the walk of a feed unless it is there; `hurry` wakes a delayed one. */
  walk(walk: FeedWalk, options: { readonly hurry: boolean }): Promise<void> {
    return this.#walks.walk(walk, options);
  }

  /** Wakes delayed tasks among a service's actions; leaves others alone. */
  async wake(service: string, taskIds: readonly string[]): Promise<void> {
    for (const batch of batchesOf(taskIds, wokenAtOnce)) {
      await this.#queues.call(queueName(service, "actions"), async (queue) => {
        const jobs = await Promise.all(batch.map((id) => queue.getJob(id)));
        // BullMQ rejects it for a task that is not delayed any more: that one is on its way.
        await Promise.all(jobs.map((job) => job?.promote().catch(throwOutage)));
      });
    }
  }

  /** Lets the next free worker take a step of this task, before all others. */
  async expedite({ service, kind, id }: Pick<Task, "service" | "kind" | "id">): Promise<void> {
    await this.#job(queueName(service, queueKindOf(kind)), id, async (job) => {
      // BullMQ rejects both for a task that a worker has: that one steps again by itself.
      await job?.promote().catch(throwOutage);
      await job?.changePriority({ priority: 0, lifo: true }).catch(throwOutage);
    });
  }

  /** Finds a task in its queue; undefined when it is not there. */
  find({ service, kind, id }: Pick<Task, "service" | "kind" | "id">): Promise<QueuedTask | undefined> {
    return this.#job(queueName(service, queueKindOf(kind)), id, async (job) => {
      if (job === undefined) return undefined;
      const state = await job.getState();
      const isOver = state === "completed" || state === "failed" || state === "unknown";
      return { state, isInFlight: !isOver, queuedAtMs: job.timestamp };
    });
  }

  /** Returns the status of a task among a service's actions. */
  jobStatus(service: string, taskId: string): Promise<JobStatus> {
    return this.#job(queueName(service, "actions"), taskId, async (job) => {
      if (job === undefined) return "missing";
      if (job.finishedOn === undefined) return "pending";
      return (await job.isCompleted()) ? "completed" : "missing";
    });
  }

  /** Measures a queue. */
  backlog(service: string, kind: QueueKind): Promise<Backlog> {
    return this.#queues.call(queueName(service, kind), async (queue) => {
      const counts = await queue.getJobCounts("waiting", "prioritized", "active", "delayed");
      const { waiting = 0, prioritized = 0, active = 0, delayed = 0 } = counts;
      return {
        waiting: waiting + prioritized,
        active,
        delayed,
        oldestMs: await findOldestNew(queue, waiting),
      };
    });
  }

  /** Counts the unfinished items of a service in both queues. */
  async pending(service: string): Promise<number> {
    const counts = await Promise.all(
      queueKinds.map((kind) =>
        this.#queues.call(queueName(service, kind), (queue) =>
          queue.getJobCountByTypes("waiting", "delayed", "prioritized", "active"),
        ),
      ),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /**
   * Drops ended items of a service that are kept long enough; answers how many are left. BullMQ
   * looks at their age only when another item of the queue ends.
   */
  async tidy(service: string): Promise<number> {
    const left = queueKinds.map((kind) =>
      this.#queues.call(queueName(service, kind), async (queue) => {
        await queue.clean(taskOptions.removeOnComplete.age * 1_000, tidiedAtOnce, "completed");
        await queue.clean(taskOptions.removeOnFail.age * 1_000, tidiedAtOnce, "failed");
        // Each of both adds an event, and BullMQ drops old ones only when an item is added.
        await queue.trimEvents(0);
        return queue.getJobCountByTypes("completed", "failed");
      }),
    );
    return (await Promise.all(left)).reduce((sum, count) => sum + count, 0);
  }

  /** Drops the merged requests and closes the connections. */
  async close(): Promise<void> {
    this.#walks.close();
    await this.#queues.close();
  }

  #job<T>(queue: string, id: string, use: (job: Job | undefined) => Promise<T>): Promise<T> {
    return this.#queues.call(queue, async (opened) => use(await opened.getJob(id)));
  }

  #ask(walk: FeedWalk, { hurry }: { readonly hurry: boolean }): Promise<void> {
    const jobId = feedId(walk);
    return this.#queues.call(queueName(walk.service, "polls"), async (queue) => {
      await queue.add(walk.kind, walk, { ...feedWalkOptions, jobId });
      const job = hurry ? await queue.getJob(jobId) : undefined;
      if (job === undefined || !(await job.isDelayed())) return;
      // BullMQ rejects it for a walk that was woken in between.
      await job.promote().catch(throwOutage);
    });
  }
}

async function findOldestNew(queue: Queue, waiting: number): Promise<number | undefined> {
  for (const [first, last] of oldestSearchedIn) {
    if (waiting <= first) return undefined;
    const line = await queue.getWaiting(first, last);
    const queuedAtMs = line.flatMap((job) => (job.processedOn === undefined ? [job.timestamp] : []));
    if (queuedAtMs.length > 0) return Math.min(...queuedAtMs);
  }
  return undefined;
}

function throwOutage(error: unknown): void {
  if (isRedisOutage(error)) throw error;
}
