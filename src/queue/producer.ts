// Puts tasks and feed walks into their queues. Ids are deterministic, so adding the same thing twice changes nothing.
import { Queue } from "bullmq";
import { systemClock, withDeadline } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { createSparingLog } from "../core/sparing-log.ts";
import type { RedisTarget } from "../store/connect.ts";
import { type FeedWalk, feedId } from "../tasks/feed.ts";
import type { Fate, Urgency } from "../tasks/seams.ts";
import type { Task } from "../tasks/task.ts";
import { feedWalkOptions, queueConnection, queueName, taskOptions, urgencyOf } from "./queues.ts";
import { WalkRequests } from "./walk-requests.ts";

/** A task in its queue. `state`: the queue's own word, such as waiting, delayed, active, completed. */
export interface QueuedTask {
  readonly state: string;
  /** Whether it will be worked on, or is being. */
  readonly isInFlight: boolean;
  readonly queuedAtMs: number;
}

/** What stands in one queue. */
export interface Backlog {
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  /** Since when the oldest waits that no worker has taken yet, as far as it is among the first that wait; milliseconds UTC. */
  readonly oldestMs: number | undefined;
}

/** Tasks that come back to the queue stand between the new ones: so many are looked at to find the oldest new one. */
const oldestLookedAt = 20;

const closeWithinMs = 2_000;

/** So many tasks are woken at a time. */
const wokenAtOnce = 100;

/** What one call may take, with all that the library does for it. */
const callWithinMs = 8_000;

/** The producing side of all queues. Every call ends within eight seconds, also when Redis is frozen or was never there. */
export class Producer {
  readonly #queues = new Map<string, { readonly queue: Queue; readonly release: () => void }>();
  readonly #target: RedisTarget;
  readonly #log: EventLog;
  readonly #walks: WalkRequests;

  constructor(target: RedisTarget, log: EventLog) {
    this.#target = target;
    this.#log = createSparingLog(log, systemClock, "queue");
    this.#walks = new WalkRequests({
      ask: (walk, options) => this.#ask(walk, options),
      clock: systemClock,
      onFailure: (error) => this.#log.warn("queue.unreachable", { queue: "polls", message: String(error) }),
    });
  }

  /** Adds tasks, each queue in one step and all queues at once. */
  async enqueue(tasks: readonly Task[]): Promise<void> {
    const byQueue = Map.groupBy(tasks, (task) => queueName(task.service, urgencyOf(task.kind)));
    const added = [...byQueue].map(([name, group]) => {
      const jobs = group.map((task) => ({ name: task.kind, data: task, opts: { ...taskOptions, jobId: task.id } }));
      return this.#call(name, (queue) => queue.addBulk(jobs));
    });
    await Promise.all(added);
  }

  /** Makes sure that a feed is walked: adds its walk unless it is there; with `hurry`, wakes the one that sleeps. */
  walk(walk: FeedWalk, options: { readonly hurry: boolean }): Promise<void> {
    return this.#walks.walk(walk, options);
  }

  /** Lets tasks of a service's actions that sleep go on at once; those that do not sleep are left alone. */
  async wake(service: string, taskIds: readonly string[]): Promise<void> {
    for (let from = 0; from < taskIds.length; from += wokenAtOnce) {
      const portion = taskIds.slice(from, from + wokenAtOnce);
      await this.#call(queueName(service, "actions"), async (queue) => {
        const jobs = await Promise.all(portion.map((id) => queue.getJob(id)));
        // One that does not sleep any more is an error to the library; it looks anyway.
        await Promise.allSettled(jobs.map((job) => job?.promote()));
      });
    }
  }

  /** How many workers read this queue, over all processes. */
  workers(service: string, urgency: Urgency): Promise<number> {
    return this.#call(queueName(service, urgency), (queue) => queue.getWorkersCount());
  }

  /** What the queue knows of a task; undefined when it is not there, or not any more. */
  find({ service, kind, id }: Pick<Task, "service" | "kind" | "id">): Promise<QueuedTask | undefined> {
    return this.#call(queueName(service, urgencyOf(kind)), async (queue) => {
      const job = await queue.getJob(id);
      if (job === undefined) return undefined;
      const state = await job.getState();
      const isOver = state === "completed" || state === "failed" || state === "unknown";
      return { state, isInFlight: !isOver, queuedAtMs: job.timestamp };
    });
  }

  /** What the queue of a service's actions will do with a task. */
  fate(service: string, taskId: string): Promise<Fate> {
    return this.#call(queueName(service, "actions"), async (queue) => {
      const job = await queue.getJob(taskId);
      if (job === undefined) return "gone";
      if (job.finishedOn === undefined) return "open";
      return (await job.isCompleted()) ? "over" : "gone";
    });
  }

  /** How much stands in a queue, and how long. */
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

  /** How many items of a service wait, sleep or are in work, in both queues. */
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

  /** Closes the connections; does not wait for a Redis that does not answer. */
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

  /** A call that came too late may still be carried out; that does no harm, since everything here has its own name. */
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
        // Its reader woke up in between, which is what was wanted.
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
