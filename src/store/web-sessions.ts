// What the role `web` asks of Redis. A session of a person who signed in: a random id in a cookie,
// and under its hash whose it is (web/access.ts: the hash of a token, or claims); it ends by
// itself. And whether there is something new to show.
import { createHash, randomBytes } from "node:crypto";
import { changedPoliciesKey } from "./policy-states.ts";
import type { Store } from "./redis.ts";

/** The sessions in Redis. */
export class WebSessions {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Begins a session; answers its id, which only the cookie may hold. */
  async begin(owner: string, forMs: number): Promise<string> {
    const id = randomBytes(32).toString("base64url");
    await this.#store.redis.set(this.#key(id), owner, "PX", forMs);
    return id;
  }

  /** Whose a session is; undefined when it is over. */
  async owner(id: string): Promise<string | undefined> {
    return (await this.#store.redis.get(this.#key(id))) ?? undefined;
  }

  /** Ends a session. */
  async end(id: string): Promise<void> {
    await this.#store.redis.del(this.#key(id));
  }

  #key(id: string): string {
    return this.#store.key("web-session", createHash("sha256").update(id).digest("hex"));
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
  return createHash("sha256")
    .update(JSON.stringify([newest, pauses, quarantines]))
    .digest("hex");
}
