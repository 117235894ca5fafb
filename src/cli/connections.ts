// Connects commands to Redis, and closes what it opened. BullMQ is loaded only for the commands
// that ask its queues: it is a third of what a short command costs.
import { silentLog } from "../core/event-log.ts";
import type { Producer } from "../queue/producer.ts";
import { openStore, type RedisTarget, type Store } from "../store/redis.ts";

/** Runs `use` with a connected Redis. @throws OutOfReachError without one. */
export async function withStore<T>(target: RedisTarget, use: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(target);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}

/** Runs `use` with the task queues. */
export async function withProducer<T>(target: RedisTarget, use: (producer: Producer) => Promise<T>): Promise<T> {
  const queue = await import("../queue/producer.ts");
  const producer = new queue.Producer(target, silentLog);
  try {
    return await use(producer);
  } finally {
    await producer.close();
  }
}
