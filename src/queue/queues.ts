// The names, connections and options of the queues, and those that a process has opened. Each
// service has two, so that its limits and outages are its own. The single place that says how
// BullMQ talks to Redis.

import { type ConnectionOptions, type DefaultJobOptions, Queue } from "bullmq";
import { systemClock, withDeadline } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import type { QueueKind } from "../model/contracts.ts";
import type { TaskKind } from "../model/task.ts";
import { type ConnectionUse, createRedisClient, type RedisTarget, redisOptionsOf } from "../store/connect.ts";

/** The queue of a service: `main-actions`, `main-polls`. */
export function queueName(service: string, queueKind: QueueKind): string {
  return `${service}-${queueKind}`;
}

/** The queue of a sink: `sink.ops`. No service has such a name, since names hold no dot. */
export function sinkQueueName(sink: string): string {
  return `sink.${sink}`;
}

/** Which of the two queues holds tasks of this kind. */
export function queueKindOf(kind: TaskKind): QueueKind {
  return kind === "poll" ? "polls" : "actions";
}

/** The connection of one queue or worker. BullMQ leaves a client open: `release` it afterwards. */
export interface QueueConnection {
  readonly connection: ConnectionOptions;
  readonly release: () => void;
}

/** Makes a connection: `commands` fails soon, `worker` blocks. @throws UsageError for no target. */
export function queueConnection(target: RedisTarget, use: ConnectionUse): QueueConnection {
  const options = use === "commands" ? redisOptionsOf(target) : undefined;
  if (options !== undefined) {
    const plain: Record<string, unknown> = { ...options, lazyConnect: false };
    return { connection: plain, release: () => {} };
  }
  const client = createRedisClient(target, use);
  // Connect now: BullMQ gives a client up for good when its first command fails.
  if (use === "commands") client.connect().catch(() => {});
  return { connection: client, release: () => client.disconnect() };
}

/** How tasks are kept: longer than a replica may be late, since their id drops a second enqueue. */
export const taskOptions = {
  attempts: 8,
  backoff: { type: "verdict" },
  removeOnComplete: { age: 2 * 86_400, count: 50_000 },
  removeOnFail: { age: 7 * 86_400, count: 50_000 },
  stackTraceLimit: 1,
  sizeLimit: 64 * 1_024,
} as const satisfies DefaultJobOptions;

/** A finished walk leaves nothing behind: its job id must be free for the next one. */
export const feedWalkOptions = {
  ...taskOptions,
  removeOnComplete: true,
  removeOnFail: true,
} as const satisfies DefaultJobOptions;

/** How long a delivered notice is known. */
export const deliveriesKeptMs = 86_400_000;

/**
 * How deliveries are kept. A failed try goes back to the head, without a BullMQ attempt. Delivered
 * ones stay for a day: their id drops a second add. Failed ones are the failed list.
 */
export const deliveryOptions = {
  attempts: 1,
  removeOnComplete: { age: deliveriesKeptMs / 1_000, count: 10_000 },
  removeOnFail: { age: 31 * 86_400, count: 10_000 },
  stackTraceLimit: 0,
  sizeLimit: 64 * 1_024,
} as const satisfies DefaultJobOptions;

/** Deadline of one call, with all that BullMQ does for it. */
const callWithinMs = 8_000;
const closeWithinMs = 1_000;

/** Opens each queue at its first call. */
export class OpenQueues {
  readonly #queues = new Map<string, { readonly queue: Queue; readonly release: () => void }>();
  readonly #target: RedisTarget;
  readonly #log: EventLog;

  constructor(target: RedisTarget, log: EventLog) {
    this.#target = target;
    this.#log = createRateLimitedLog(log, systemClock, "queue");
  }

  /** Calls a queue. Past its deadline a call may still take effect, so it must be repeatable. */
  call<T>(name: string, call: (queue: Queue) => Promise<T>): Promise<T> {
    return withDeadline(call(this.#queue(name)), callWithinMs, () => new Error(`Command timed out: queue ${name}`));
  }

  /** Closes the connections without waiting for a Redis that does not answer. */
  async close(): Promise<void> {
    const open = [...this.#queues.values()];
    this.#queues.clear();
    const closing = Promise.all(open.map(({ queue }) => queue.close()));
    await withDeadline(closing, closeWithinMs, () => new Error("no answer")).catch((error: unknown) => {
      closing.catch(() => {});
      this.#log.warn("queue.close-incomplete", { message: errorText(error) });
    });
    for (const { release } of open) release();
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
