// Sessions of people who signed in to the dashboard: a random id in their cookie, and in Redis,
// under its hash, whose it is (web/access.ts: the hash of a token, or claims). Ends by itself.
import { createHash, randomBytes } from "node:crypto";
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
