// The names and connections of the queues: one per service and urgency, so that a service's limits and outages are its own.
// The single place that says how BullMQ talks to Redis.
import type { ConnectionOptions, DefaultJobOptions } from "bullmq";
import type { Urgency } from "../tasks/seams.ts";
import type { TaskKind } from "../tasks/task.ts";

/** Where the queues live. `prefix` starts every key, as in the store. */
export interface QueueTarget {
  readonly url: string;
  readonly prefix: string;
}

/** `main-actions`, `main-polls`. */
export function queueName(service: string, urgency: Urgency): string {
  return `${service}-${urgency}`;
}

/** Which of the two queues a task of this kind waits in. */
export function urgencyOf(kind: TaskKind): Urgency {
  return kind === "poll" ? "polls" : "actions";
}

/** For producers: a frozen or absent Redis must be an error soon, not a wait without end. */
export function producerConnection({ url }: QueueTarget): ConnectionOptions {
  return { url, maxRetriesPerRequest: 1, commandTimeout: 5_000, connectTimeout: 5_000 };
}

/** For workers: their blocking read must not have a command time-out. */
export function workerConnection({ url }: QueueTarget): ConnectionOptions {
  return { url, connectTimeout: 5_000 };
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
