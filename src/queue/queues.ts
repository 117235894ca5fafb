// The names and connections of the queues: one per service and urgency, so that a service's limits and outages are its own.
// The single place that says how BullMQ talks to Redis.
import type { ConnectionOptions, DefaultJobOptions } from "bullmq";
import { type ConnectionUse, createRedisClient, type RedisTarget, redisOptionsOf } from "../store/connect.ts";
import type { Urgency } from "../tasks/seams.ts";
import type { TaskKind } from "../tasks/task.ts";

/** `main-actions`, `main-polls`. */
export function queueName(service: string, urgency: Urgency): string {
  return `${service}-${urgency}`;
}

/** `sink.ops`. No service's queue is called so, since names hold no dot. */
export function sinkQueueName(sink: string): string {
  return `sink.${sink}`;
}

/** Which of the two queues a task of this kind waits in. */
export function urgencyOf(kind: TaskKind): Urgency {
  return kind === "poll" ? "polls" : "actions";
}

/** How one queue or worker gets to Redis. `release` lets go of what the library does not close by itself, once it is closed. */
export interface QueueConnection {
  readonly connection: ConnectionOptions;
  readonly release: () => void;
}

/**
 * The connection of a queue (`commands`: a frozen or absent Redis is an error soon, not a wait without end) or of a worker
 * (`worker`: its blocking read has no such deadline).
 * @throws UsageError when the target is none.
 */
export function queueConnection(target: RedisTarget, use: ConnectionUse): QueueConnection {
  const options = use === "commands" ? redisOptionsOf(target) : undefined;
  if (options !== undefined) {
    const plain: Record<string, unknown> = { ...options, lazyConnect: false };
    return { connection: plain, release: () => {} };
  }
  // This very client is used and left open; of a worker's there is a copy, for its blocking read, which the worker closes.
  const client = createRedisClient(target, use);
  // The queue must find it on its way: one that waits for a first command is given up for good when that one fails.
  if (use === "commands") client.connect().catch(() => {});
  return { connection: client, release: () => client.disconnect() };
}

/**
 * How tasks are kept. Finished ones stay longer than any replica may be late: their id is what drops a task enqueued twice.
 * Eight attempts, each with the wait that the verdict names.
 */
export const taskOptions = {
  attempts: 8,
  backoff: { type: "verdict" },
  removeOnComplete: { age: 2 * 86_400, count: 50_000 },
  removeOnFail: { age: 7 * 86_400, count: 50_000 },
  stackTraceLimit: 1,
  sizeLimit: 64 * 1_024,
} as const satisfies DefaultJobOptions;

/** The walk of a feed leaves nothing behind: its name must be free for the next one who waits. */
export const feedWalkOptions = {
  ...taskOptions,
  removeOnComplete: true,
  removeOnFail: true,
} as const satisfies DefaultJobOptions;

/**
 * How deliveries are kept. One attempt in the queue's own sense: a try that failed puts the delivery back to the head and is none.
 * Delivered ones stay for a while: their id is what drops a notice that is handed over twice. Failed ones are the failed list.
 */
export const deliveryOptions = {
  attempts: 1,
  removeOnComplete: { age: 86_400, count: 10_000 },
  removeOnFail: { age: 31 * 86_400, count: 10_000 },
  stackTraceLimit: 0,
  sizeLimit: 64 * 1_024,
} as const satisfies DefaultJobOptions;
