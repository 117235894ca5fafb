// The audit record of changes by hand, newest first. actions/ writes each before it is made, and
// its end after.
import { type Change, changesMax, parseChange } from "../model/change.ts";
import { redisTimeMs, type Store } from "./redis.ts";
import { asNothing, createScript } from "./script.ts";

/** How many of the newest changes are searched for one that is about something. */
export const changesReadMax = 1_000;

const recordScript = createScript("record-change", asNothing);

/** The record of changes. */
export class Changes {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Adds a change, with the time of Redis. */
  async add(change: Omit<Change, "v" | "at">): Promise<Change> {
    const full: Change = { v: 1, at: new Date(await redisTimeMs(this.#store)).toISOString(), ...change };
    await this.#record(JSON.stringify(full), "");
    return full;
  }

  /** Puts the ended change in the place of the begun one; undefined: nothing was changed. */
  async end(begun: Change, ended: Change | undefined): Promise<void> {
    await this.#record(ended === undefined ? "" : JSON.stringify(ended), JSON.stringify(begun));
  }

  /** Returns at most `count` changes, newest first. */
  async newest(count: number): Promise<Change[]> {
    const texts = await this.#store.redis.lrange(this.#store.key("changes"), 0, count - 1);
    return texts.map((text) => parseChange(JSON.parse(text)));
  }

  async #record(change: string, begun: string): Promise<void> {
    await recordScript(this.#store, [this.#store.key("changes")], [change, begun, changesMax - 1]);
  }
}
