// The audit record of changes by hand, newest first. The command line writes it after each change.
import { type Change, parseChange } from "../model/change.ts";
import { redisTimeMs, type Store } from "./redis.ts";
import { asNothing, createScript } from "./script.ts";

/** Changes kept, about 500 bytes each. */
export const changesMax = 5_000;

const addScript = createScript("add-change", asNothing);

/** The record of changes. */
export class Changes {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Adds a change, with the time of Redis. */
  async add(change: Omit<Change, "v" | "at">): Promise<Change> {
    const full: Change = { v: 1, at: new Date(await redisTimeMs(this.#store)).toISOString(), ...change };
    await addScript(this.#store, [this.#store.key("changes")], [JSON.stringify(full), changesMax - 1]);
    return full;
  }

  /** Returns at most `count` changes, newest first. */
  async newest(count: number): Promise<Change[]> {
    const texts = await this.#store.redis.lrange(this.#store.key("changes"), 0, count - 1);
    return texts.map((text) => parseChange(JSON.parse(text)));
  }
}
