// The history: one outcome per task, newest first. Written by outcome/recorder.ts, read by the command line.
import { type Outcome, parseOutcome } from "../tasks/outcome.ts";
import { createScript, type Store } from "./redis.ts";

/** How many outcomes are kept; older ones are dropped. About 800 bytes each. */
const outcomesMax = 20_000;

const recordScript = createScript(`
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
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
    const written = await recordScript(
      this.#store,
      [key("outcomes"), key("outcome-index")],
      [outcome.taskId, JSON.stringify(outcome), Date.parse(outcome.finishedAt), outcomesMax],
    );
    return written === 1;
  }

  /** The outcome of a task, if it has one. */
  async outcome(taskId: string): Promise<Outcome | undefined> {
    const text = await this.#store.redis.hget(this.#store.key("outcomes"), taskId);
    return text === null ? undefined : parseOutcome(JSON.parse(text));
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
