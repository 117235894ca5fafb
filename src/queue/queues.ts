// The names and options of the queues, and those that a process has opened, on one connection. Each
// service has two, so that its limits and outages are its own.

import {
  type DefaultJobOptions,
  Queue,
  type QueueBaseOptions,
  QueueKeys,
  RedisConnection,
  RedisQueueBackend,
} from "bullmq";
import { systemClock, withTimeLimit } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import type { TaskKind } from "../model/task.ts";
import type { QueueKind } from "../model/task-processing.ts";
import { createRedisClient, type RedisClient, type RedisTarget } from "../store/connect.ts";

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

/** One connection for many queues. Any Redis that Syncline takes has what 6.2 has. */
export class SharedConnection extends RedisConnection {
  /** @param onError hears that the connection was lost; the client comes back by itself. */
  constructor(client: RedisClient, onError: (error: Error) => void) {
    // BullMQ gives a client up for ever when its first command fails: it must not ask the version.
    super(client, { shared: true, blocking: false, skipVersionCheck: true });
    this.on("error", onError);
  }

  override get redisVersion(): string {
    return "6.2.0";
  }
}

/** What BullMQ's backend of one queue is made of, on a connection that it leaves open. */
export function backendParts(
  connection: SharedConnection,
  name: string,
  options: QueueBaseOptions & { readonly prefix?: string },
): ConstructorParameters<typeof RedisQueueBackend> {
  const keys = new QueueKeys(options.prefix);
  return [connection, name, keys.getKeys(name), (type) => keys.toKey(name, type), options, undefined, false];
}

/** How tasks are kept: longer than a replica may be late, since their id drops a second enqueue. */
export const taskOptions = {
  attempts: 8,
  // The wait of a `retry` verdict (consumer.ts).
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

/** Opens each queue at its first call, and the connection with the first of them. */
export class OpenQueues {
  readonly #queues = new Map<string, Queue>();
  readonly #target: RedisTarget;
  readonly #log: EventLog;
  #client: RedisClient | undefined;
  #connection: SharedConnection | undefined;
  #isClosed = false;

  constructor(target: RedisTarget, log: EventLog) {
    this.#target = target;
    this.#log = createRateLimitedLog(log, systemClock, "queue");
  }

  /** Calls a queue. Past its deadline a call may still take effect, so it must be repeatable. */
  call<T>(name: string, call: (queue: Queue) => Promise<T>): Promise<T> {
    return withTimeLimit(call(this.#queue(name)), callWithinMs, () => new Error(`Command timed out: queue ${name}`));
  }

  /** Closes the connection without waiting for a Redis that does not answer. */
  async close(): Promise<void> {
    const client = this.#client;
    if (client === undefined) return;
    this.#isClosed = true;
    await withTimeLimit(client.quit(), closeWithinMs, () => new Error("no answer")).catch((error: unknown) => {
      this.#log.warn("queue.close-incomplete", { message: errorText(error) });
    });
    client.disconnect();
  }

  #queue(name: string): Queue {
    const known = this.#queues.get(name);
    if (known !== undefined) return known;
    this.#client ??= this.#connect();
    this.#connection ??= new SharedConnection(this.#client, (error) => this.#onError(error));
    const [client, connection] = [this.#client, this.#connection];
    const queue = new Queue(
      name,
      { connection: client, prefix: this.#target.prefix },
      (queueName, options) => new RedisQueueBackend(...backendParts(connection, queueName, options)),
    );
    queue.on("error", (error) => this.#onError(error));
    this.#queues.set(name, queue);
    return queue;
  }

  #connect(): RedisClient {
    const client = createRedisClient(this.#target, "commands");
    // Connect now: BullMQ gives a client up for ever when its first command fails.
    client.connect().catch(() => {});
    return client;
  }

  #onError({ message }: Error): void {
    if (!this.#isClosed) this.#log.warn("queue.unreachable", { queue: "all", message });
  }
}
