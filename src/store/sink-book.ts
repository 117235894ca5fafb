// What is known of sinks beside their queues: which there were and when a worker last had them configured, and how many notices each
// had no room for. Written by app/running-sinks.ts, read by the command line and the metrics.
import { redisTimeMs, type Store } from "./redis.ts";

/** A sink that some worker had. */
export interface KnownSink {
  readonly name: string;
  readonly seenMs: number;
  /** Since the sink is known. */
  readonly dropped: number;
}

/** The book of sinks in Redis. */
export class SinkBook {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** These sinks are configured now. */
  async seen(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const nowMs = await redisTimeMs(this.#store);
    await this.#store.redis.hset(this.#seenKey(), Object.fromEntries(names.map((name) => [name, nowMs])));
  }

  /** All sinks that were seen and not forgotten, by name. */
  async all(): Promise<readonly KnownSink[]> {
    const [seen, dropped] = await Promise.all([
      this.#store.redis.hgetall(this.#seenKey()),
      this.#store.redis.hgetall(this.#droppedKey()),
    ]);
    return Object.entries(seen)
      .map(([name, seenMs]) => ({ name, seenMs: Number(seenMs), dropped: Number(dropped[name] ?? 0) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The sinks that no worker has had for so long. */
  async unseenFor(durationMs: number): Promise<readonly string[]> {
    const untilMs = (await redisTimeMs(this.#store)) - durationMs;
    return (await this.all()).filter(({ seenMs }) => seenMs < untilMs).map(({ name }) => name);
  }

  /** So many notices had no room. */
  async countDropped(sink: string, count: number): Promise<void> {
    await this.#store.redis.hincrby(this.#droppedKey(), sink, count);
  }

  /** Nothing is known of this sink any more. */
  async forget(sink: string): Promise<void> {
    await Promise.all([
      this.#store.redis.hdel(this.#seenKey(), sink),
      this.#store.redis.hdel(this.#droppedKey(), sink),
    ]);
  }

  #seenKey(): string {
    return this.#store.key("sinks-seen");
  }

  #droppedKey(): string {
    return this.#store.key("sinks-dropped");
  }
}
