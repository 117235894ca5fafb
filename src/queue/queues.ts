// The names and connections of the queues. Each service has two, so that its limits and outages are
// its own. The single place that says how BullMQ talks to Redis.
import type { ConnectionOptions, DefaultJobOptions } from "bullmq";
import type { Urgency } from "../model/contracts.ts";
import type { TaskKind } from "../model/task.ts";
import { type ConnectionUse, createRedisClient, type RedisTarget, redisOptionsOf } from "../store/connect.ts";

/** The queue of a service: `main-actions`, `main-polls`. */
export function queueName(service: string, urgency: Urgency): string {
  return `${service}-${urgency}`;
}

/** The queue of a sink: `sink.ops`. No service has such a name, since names hold no dot. */
export function sinkQueueName(sink: string): string {
  return `sink.${sink}`;
}

/** Which of the two queues holds tasks of this kind. */
export function urgencyOf(kind: TaskKind): Urgency {
  return kind === "poll" ? "polls" : "actions";
}

/**
 * The connection of one queue or worker. Call `release` after closing it: BullMQ leaves a client
 * open.
 */
export interface QueueConnection {
  readonly connection: ConnectionOptions;
  readonly release: () => void;
}

/**
 * Makes a connection: `commands` for a queue, which fails soon when Redis is frozen or absent;
 * `worker` for a worker, whose blocking read has no deadline.
 * @throws UsageError when the target is none.
 */
export function queueConnection(target: RedisTarget, use: ConnectionUse): QueueConnection {
  const options = use === "commands" ? redisOptionsOf(target) : undefined;
  if (options !== undefined) {
    const plain: Record<string, unknown> = { ...options, lazyConnect: false };
    return { connection: plain, release: () => {} };
  }
  // BullMQ uses this client and leaves it open. A worker copies it for its blocking read, and
  // closes the copy.
  const client = createRedisClient(target, use);
  // Connect now: BullMQ gives a client up for good when its first command fails.
  if (use === "commands") client.connect().catch(() => {});
  return { connection: client, release: () => client.disconnect() };
}

/**
 * How tasks are kept. Finished ones stay longer than a replica may be late: their id drops a task
 * that is enqueued twice. Eight attempts; each verdict names its wait.
 */
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

/**
 * How deliveries are kept. One BullMQ attempt: a failed try returns the delivery to the head
 * instead. Delivered ones stay for a day: their id drops a notice that is added twice. Failed ones
 * are the failed list.
 */
export const deliveryOptions = {
  attempts: 1,
  removeOnComplete: { age: 86_400, count: 10_000 },
  removeOnFail: { age: 31 * 86_400, count: 10_000 },
  stackTraceLimit: 0,
  sizeLimit: 64 * 1_024,
} as const satisfies DefaultJobOptions;
