// What Redis knows of sinks beside their queues: when a worker last had them configured, and how
// many notices their queues had no room for.
import { redisTimeMs, type Store } from "./redis.ts";

/** A sink that a worker had configured. */
export interface KnownSink {
  readonly name: string;
  readonly seenMs: number;
  /** Notices dropped since the sink is known. */
  readonly dropped: number;
}

/** The sinks in Redis. */
export class SinkStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Notes that these sinks are configured now. */
  async noteSeen(names: readonly string[]): Promise<void> {
    if (names.length === 0) return;
    const nowMs = await redisTimeMs(this.#store);
    await this.#store.redis.hset(this.#seenKey(), Object.fromEntries(names.map((name) => [name, nowMs])));
  }

  /** Returns all known sinks, by name. */
  async all(): Promise<readonly KnownSink[]> {
    const [seen, dropped] = await Promise.all([
      this.#store.redis.hgetall(this.#seenKey()),
      this.#store.redis.hgetall(this.#droppedKey()),
    ]);
    return Object.entries(seen)
      .map(([name, seenMs]) => ({ name, seenMs: Number(seenMs), dropped: Number(dropped[name] ?? 0) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Returns the sinks that no worker has had configured for this long. */
  async unseenFor(durationMs: number): Promise<readonly string[]> {
    const untilMs = (await redisTimeMs(this.#store)) - durationMs;
    return (await this.all()).filter(({ seenMs }) => seenMs < untilMs).map(({ name }) => name);
  }

  /** Counts notices that the queue had no room for. */
  async countDropped(sink: string, count: number): Promise<void> {
    await this.#store.redis.hincrby(this.#droppedKey(), sink, count);
  }

  /** Forgets a sink. */
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
