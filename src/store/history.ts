// The history: one outcome per task, newest first. Written by outcome/recorder.ts, read by the command line.
import { type Outcome, parseOutcome } from "../tasks/outcome.ts";
import { tallyOutcomeLua } from "./chain-scripts.ts";
import { createScript, type Store } from "./redis.ts";
import { tallyKey } from "./slot-ledger.ts";

/** How many outcomes are kept; older ones are dropped. About 800 bytes each. */
const outcomesMax = 20_000;

/** KEYS: outcomes, outcome-index, the tally of its slot. ARGV: task, outcome, end, the most that are kept, target, status. */
const recordScript = createScript(`${tallyOutcomeLua}
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
if redis.call('EXISTS', KEYS[3]) == 1 then note(KEYS[3], ARGV[5], ARGV[6], ARGV[3]) end
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
local extra = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[4])
if extra > 0 then
  local old = redis.call('ZPOPMIN', KEYS[2], extra)
  for i = 1, #old, 2 do redis.call('HDEL', KEYS[1], old[i]) end
end
return 1`);

/** The history in Redis. */
export class History {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Writes an outcome unless the task has one already. Answers whether this call wrote it. */
  async record(outcome: Outcome): Promise<boolean> {
    const { key } = this.#store;
    const { taskId, policy, target, status, origin } = outcome;
    // No chain follows what somebody runs by hand, even at the very instant of a slot.
    const slotMs = origin === "schedule" ? Date.parse(outcome.slot) : -1;
    const written = await recordScript(
      this.#store,
      [key("outcomes"), key("outcome-index"), tallyKey(this.#store, policy, slotMs)],
      [taskId, JSON.stringify(outcome), Date.parse(outcome.finishedAt), outcomesMax, target, status],
    );
    return written === 1;
  }

  /** The outcome of a task, if it has one. */
  async outcome(taskId: string): Promise<Outcome | undefined> {
    const text = await this.#store.redis.hget(this.#store.key("outcomes"), taskId);
    return text === null ? undefined : parseOutcome(JSON.parse(text));
  }

  /** The outcomes that these tasks have, by task id. */
  async outcomes(taskIds: readonly string[]): Promise<Map<string, Outcome>> {
    const found = new Map<string, Outcome>();
    const step = 500;
    for (let from = 0; from < taskIds.length; from += step) {
      const texts = await this.#store.redis.hmget(this.#store.key("outcomes"), ...taskIds.slice(from, from + step));
      for (const text of texts) {
        if (text === null) continue;
        const outcome = parseOutcome(JSON.parse(text));
        found.set(outcome.taskId, outcome);
      }
    }
    return found;
  }

  /** Since when (milliseconds UTC) every outcome is here; undefined when none was ever dropped. */
  async keptSinceMs(): Promise<number | undefined> {
    const { redis, key } = this.#store;
    if ((await redis.zcard(key("outcome-index"))) < outcomesMax) return undefined;
    const [, score] = await redis.zrange(key("outcome-index"), "0", "0", "WITHSCORES");
    return score === undefined ? undefined : Number(score);
  }

  /** The newest outcomes, newest first, of all policies or one; at most `count`. */
  async newest(count: number, policy?: string): Promise<Outcome[]> {
    const found: Outcome[] = [];
    const step = 500;
    for (let from = 0; from < outcomesMax && found.length < count; from += step) {
      const page = await this.#page(from, step);
      found.push(...page.filter((outcome) => policy === undefined || outcome.policy === policy));
      if (page.length < step) break;
    }
    return found.slice(0, count);
  }

  async #page(from: number, size: number): Promise<Outcome[]> {
    const { redis, key } = this.#store;
    const ids = await redis.zrevrange(key("outcome-index"), from, from + size - 1);
    if (ids.length === 0) return [];
    const texts = await redis.hmget(key("outcomes"), ...ids);
    return texts.filter((text) => text !== null).map((text) => parseOutcome(JSON.parse(text)));
  }
}
