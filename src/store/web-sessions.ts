// Sessions of people who signed in to the dashboard: a random id in their cookie, and in Redis,
// under its hash, the hash of the token that they showed. Ends by itself. Used by web/access.ts.
import { createHash, randomBytes } from "node:crypto";
import type { Store } from "./redis.ts";

/** The sessions in Redis. */
export class WebSessions {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Begins a session of a token; answers its id, which only the cookie may hold. */
  async begin(tokenHash: string, forMs: number): Promise<string> {
    const id = randomBytes(32).toString("base64url");
    await this.#store.redis.set(this.#key(id), tokenHash, "PX", forMs);
    return id;
  }

  /** The hash of the token behind a session; undefined when it is over. */
  async tokenHash(id: string): Promise<string | undefined> {
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
