// The queues that a process has opened, by name. Used by producer.ts and notice-queues.ts. Each
// call ends within eight seconds, even when Redis is frozen or was never reachable.
import { Queue } from "bullmq";
import { systemClock, withDeadline } from "../core/clock.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { createRateLimitedLog } from "../core/rate-limited-log.ts";
import type { RedisTarget } from "../store/connect.ts";
import { queueConnection } from "./queues.ts";

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
