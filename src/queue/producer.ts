// Puts tasks and feed walks into their queues. Ids are deterministic, so adding the same thing twice changes nothing.
import { Queue } from "bullmq";
import { systemClock, withDeadline } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import { createSparingLog } from "../core/sparing-log.ts";
import { type FeedWalk, feedId } from "../tasks/feed.ts";
import type { Urgency } from "../tasks/seams.ts";
import type { Task } from "../tasks/task.ts";
import { feedWalkOptions, producerConnection, type QueueTarget, queueName, taskOptions, urgencyOf } from "./queues.ts";
import { WalkRequests } from "./walk-requests.ts";

/** A task in its queue. `state`: the queue's own word, such as waiting, delayed, active, completed. */
export interface QueuedTask {
  readonly state: string;
  /** Whether it will be worked on, or is being. */
  readonly isInFlight: boolean;
  readonly queuedAtMs: number;
}

const closeWithinMs = 2_000;

/** The producing side of all queues. */
export class Producer {
  readonly #queues = new Map<string, Queue>();
  readonly #target: QueueTarget;
  readonly #log: EventLog;
  readonly #walks: WalkRequests;

  constructor(target: QueueTarget, log: EventLog) {
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
      return this.#queue(name).addBulk(jobs);
    });
    await Promise.all(added);
  }

  /** Makes sure that a feed is walked: adds its walk unless it is there; with `hurry`, wakes the one that sleeps. */
  walk(walk: FeedWalk, options: { readonly hurry: boolean }): Promise<void> {
    return this.#walks.walk(walk, options);
  }

  /** How many workers read this queue, over all processes. */
  async workers(service: string, urgency: Urgency): Promise<number> {
    return this.#queue(queueName(service, urgency)).getWorkersCount();
  }

  /** What the queue knows of a task; undefined when it is not there, or not any more. */
  async find({ service, kind, id }: Pick<Task, "service" | "kind" | "id">): Promise<QueuedTask | undefined> {
    const job = await this.#queue(queueName(service, urgencyOf(kind))).getJob(id);
    if (job === undefined) return undefined;
    const state = await job.getState();
    const isOver = state === "completed" || state === "failed" || state === "unknown";
    return { state, isInFlight: !isOver, queuedAtMs: job.timestamp };
  }

  /** How many items of a service wait, sleep or are in work, in both queues. */
  async pending(service: string): Promise<number> {
    const queues = (["actions", "polls"] as const).map((urgency) => this.#queue(queueName(service, urgency)));
    const counts = await Promise.all(
      queues.map((queue) => queue.getJobCountByTypes("waiting", "delayed", "prioritized", "active")),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** Closes the connections; does not wait for a Redis that does not answer. */
  async close(): Promise<void> {
    this.#walks.close();
    const closing = Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    this.#queues.clear();
    await withDeadline(closing, closeWithinMs, () => new Error("no answer")).catch((error: unknown) => {
      closing.catch(() => {});
      this.#log.warn("queue.close-incomplete", { message: error instanceof Error ? error.message : String(error) });
    });
  }

  async #ask(walk: FeedWalk, { hurry }: { readonly hurry: boolean }): Promise<void> {
    const queue = this.#queue(queueName(walk.service, "polls"));
    const jobId = feedId(walk);
    await queue.add(walk.kind, walk, { ...feedWalkOptions, jobId });
    const job = hurry ? await queue.getJob(jobId) : undefined;
    if (job === undefined || !(await job.isDelayed())) return;
    await job.promote().catch(() => {
      // Its reader woke up in between, which is what was wanted.
    });
  }

  #queue(name: string): Queue {
    const known = this.#queues.get(name);
    if (known !== undefined) return known;
    const queue = new Queue(name, { connection: producerConnection(this.#target), prefix: this.#target.prefix });
    queue.on("error", (error) => this.#log.warn("queue.unreachable", { queue: name, message: error.message }));
    this.#queues.set(name, queue);
    return queue;
  }
}
