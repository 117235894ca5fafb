// What only the role `web` needs of Redis. A session of a person who signed in: a random id in a
// cookie, and under its hash whose it is (web/access.ts: the hash of a token, or claims); it ends
// by itself. And whether there is something new to show.
import { hash, randomBytes } from "node:crypto";
import { shared } from "../core/batcher.ts";
import { type Clock, createDeadline, systemClock } from "../core/clock.ts";
import { changedPoliciesKey } from "./policy-states.ts";
import type { Store } from "./redis.ts";

/** For so long a session is known: one that another process ended is over here by then. */
const knownForMs = 5_000;

/** The sessions in Redis. Those that were asked for within five seconds are looked up together. */
export class WebSessions {
  readonly #store: Store;
  readonly #clock: Pick<Clock, "nowMs" | "monotonicMs">;
  /** Whose they are, by key: those of the last look-up, and those that were asked for since. */
  readonly #owners = new Map<string, string>();
  /** Those that were asked for since the last look-up: the next one is about these. */
  readonly #asked = new Set<string>();
  #isOld: () => boolean = () => true;
  readonly #lookUpOnce = shared(() => this.#lookUp());

  constructor(store: Store, clock: Pick<Clock, "nowMs" | "monotonicMs"> = systemClock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Begins a session; answers its id, which only the cookie may hold. */
  async begin(owner: string, forMs: number): Promise<string> {
    const id = randomBytes(32).toString("base64url");
    await this.#store.redis.set(this.#key(id), owner, "PX", forMs);
    return id;
  }

  /** Whose a session is; undefined when it is over. */
  async owner(id: string): Promise<string | undefined> {
    const key = this.#key(id);
    if (this.#isOld()) await this.#lookUpOnce();
    const owner = this.#owners.get(key) ?? (await this.#store.redis.get(key)) ?? undefined;
    if (owner === undefined) return undefined;
    this.#owners.set(key, owner);
    this.#asked.add(key);
    return owner;
  }

  /** Ends a session. */
  async end(id: string): Promise<void> {
    const key = this.#key(id);
    await this.#store.redis.del(key);
    // Redis answers in order: what was read before stands there by now.
    this.#owners.delete(key);
  }

  async #lookUp(): Promise<void> {
    const isOld = createDeadline(knownForMs, this.#clock);
    const keys = [...this.#asked];
    this.#asked.clear();
    const owners = keys.length === 0 ? [] : await this.#store.redis.mget(keys);
    this.#owners.clear();
    for (const [index, key] of keys.entries()) {
      const owner = owners[index];
      if (owner) this.#owners.set(key, owner);
    }
    this.#isOld = isOld;
  }

  #key(id: string): string {
    return this.#store.key("web-session", hash("sha256", id));
  }
}

/** A text that differs after an outcome, a recorded slot, a pause or a quarantine. */
export async function readLiveVersion(store: Store): Promise<string> {
  const { redis, key } = store;
  const [newest, pauses, quarantines] = await Promise.all([
    redis.zscore(changedPoliciesKey(store), ""),
    redis.hvals(key("pauses")),
    redis.hvals(key("quarantines")),
  ]);
  return hash("sha256", JSON.stringify([newest, pauses, quarantines]));
}
