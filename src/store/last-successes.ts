// When each policy last succeeded: for metrics, which must say it after a restart and on every replica. Noted in the step that
// writes an outcome (history.ts); decides nothing. One small key a policy, which goes by itself after 400 days.
import type { Store } from "./redis.ts";

/** How long the last success of a policy is known, in milliseconds. */
export const successKeptMs = 400 * 86_400_000;
const portionMax = 500;

/** Lua: notes a success at an instant. An older one never takes the place of a newer one. */
export const noteSuccessLua = `
local function noteSuccess(success, at, retention)
  if at > tonumber(redis.call('GET', success) or '0') then redis.call('SET', success, at, 'PX', retention) end
end`;

/** The last successes in Redis. */
export class LastSuccesses {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** When each of these policies last succeeded, as far as any did. */
  async of(policies: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (let start = 0; start < policies.length; start += portionMax) {
      const portion = policies.slice(start, start + portionMax);
      const answers = await this.#store.redis.mget(portion.map((policy) => lastSuccessKey(this.#store, policy)));
      for (const [index, policy] of portion.entries()) {
        const atMs = Number(answers[index] ?? Number.NaN);
        if (Number.isFinite(atMs)) found.set(policy, atMs);
      }
    }
    return found;
  }
}

/** Where the last success of a policy stands. */
export function lastSuccessKey({ key }: Pick<Store, "key">, policy: string): string {
  return key("last-success", policy);
}
