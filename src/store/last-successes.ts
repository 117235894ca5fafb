// When each policy last succeeded, for metrics on every replica; history.ts writes it.
import type { Store } from "./redis.ts";

/** How long Redis keeps the last success of a policy, in milliseconds. */
export const successKeptMs = 400 * 86_400_000;
const batchMax = 500;

/** The last successes in Redis. */
export class LastSuccesses {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Returns when each of these policies last succeeded; those without a success are left out. */
  async of(policies: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (let start = 0; start < policies.length; start += batchMax) {
      const batch = policies.slice(start, start + batchMax);
      const answers = await this.#store.redis.mget(batch.map((policy) => lastSuccessKey(this.#store, policy)));
      for (const [index, policy] of batch.entries()) {
        const atMs = Number(answers[index] ?? Number.NaN);
        if (Number.isFinite(atMs)) found.set(policy, atMs);
      }
    }
    return found;
  }
}

/** Key of a policy's last success. */
export function lastSuccessKey({ key }: Pick<Store, "key">, policy: string): string {
  return key("last-success", policy);
}
