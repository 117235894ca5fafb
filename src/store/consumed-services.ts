// The services whose queues workers consume, and when a worker last had each in its files: one that
// goes from the files while no worker runs may leave tasks behind. Used by app/running-services.ts.
import { redisTimeMs, type Store } from "./redis.ts";

/** Remembers services under the prefix. */
export class ConsumedServices {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Notes what this worker has in its files; answers what none has had for so long. */
  async note(services: readonly string[], silentForMs: number): Promise<string[]> {
    const { redis, key } = this.#store;
    const nowMs = await redisTimeMs(this.#store);
    if (services.length > 0) {
      await redis.zadd(key(name), ...services.flatMap((service) => [nowMs, service]));
      await redis.zrem(key(endedName), ...services);
    }
    return redis.zrangebyscore(key(name), "-inf", nowMs - silentForMs);
  }

  /** Forgets a service that has left no open task behind; its ended ones are kept for a while. */
  async forget(service: string): Promise<void> {
    const { redis, key } = this.#store;
    await redis.zadd(key(endedName), await redisTimeMs(this.#store), service);
    await redis.zrem(key(name), service);
  }

  /** Forgotten services whose ended tasks may still be there. */
  ended(): Promise<string[]> {
    return this.#store.redis.zrange(this.#store.key(endedName), "0", "-1");
  }

  /** The last ended task of a forgotten service is gone. */
  async forgetEnded(service: string): Promise<void> {
    await this.#store.redis.zrem(this.#store.key(endedName), service);
  }
}

const [name, endedName] = ["services-consumed", "services-ended"];
