// When each policy last succeeded: for metrics, which must say it after a restart and on every replica. Noted by the recorder's
// followers at the end of each task; decides nothing. One small key a policy, which goes by itself after 400 days.
import { createScript, type Store } from "./redis.ts";

const keepForMs = 400 * 86_400_000;
const portionMax = 500;

// ARGV: instant, how long it is kept. An older success never takes the place of a newer one.
const noteScript = createScript(`
local before = tonumber(redis.call('GET', KEYS[1]) or '0')
redis.call('SET', KEYS[1], math.max(before, tonumber(ARGV[1])), 'PX', ARGV[2])
return 1`);

/** The last successes in Redis. */
export class LastSuccesses {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Notes a success at this instant, milliseconds UTC. Noting it twice changes nothing. */
  async note(policy: string, atMs: number): Promise<void> {
    await noteScript(this.#store, [this.#store.key("last-success", policy)], [atMs, keepForMs]);
  }

  /** When each of these policies last succeeded, as far as any did. */
  async of(policies: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    for (let start = 0; start < policies.length; start += portionMax) {
      const portion = policies.slice(start, start + portionMax);
      const answers = await this.#store.redis.mget(portion.map((policy) => this.#store.key("last-success", policy)));
      for (const [index, policy] of portion.entries()) {
        const atMs = Number(answers[index] ?? Number.NaN);
        if (Number.isFinite(atMs)) found.set(policy, atMs);
      }
    }
    return found;
  }
}
