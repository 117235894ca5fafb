// The names and connections of the queues. Each service has two, so that its limits and outages are
// its own. The single place that says how BullMQ talks to Redis.
import type { ConnectionOptions, DefaultJobOptions } from "bullmq";
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
