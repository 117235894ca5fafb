// The slot ledger: which slots were due, and what became of each. Called by the scheduler alone.
// Recording slots and moving the policy's mark is one atomic step, so any number of replicas may plan at once:
// whoever comes second finds the mark moved and does nothing. Tasks that were recorded but not yet put into the
// queue stand in the outbox, and the sweep repairs a crash in between.
import { parseTask, type Task } from "../tasks/task.ts";
import { createScript, redisTimeMs, type Store } from "./redis.ts";

/** What became of one slot. `detail` is the reason of a miss, or the slot that stands for this one. */
export interface SlotRecord {
  readonly slotMs: number;
  readonly state: "started" | "missed" | "coalesced";
  readonly detail: string;
}

/** One step of planning: from the mark that was expected to the new one, with everything in between. */
export interface SlotStep {
  readonly policy: string;
  readonly expectedMarkMs: number;
  readonly newMarkMs: number;
  readonly records: readonly SlotRecord[];
  readonly tasks: readonly Task[];
}

/** How many slot records a policy keeps; older ones are dropped. About 150 bytes each. */
export const slotRecordsMax = 1_000;

const recordLua = `
local mark = redis.call('HGET', KEYS[1], ARGV[1])
if mark ~= ARGV[2] then return mark or '' end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
for i = 7, #ARGV, 2 do
  redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1])
  redis.call('ZADD', KEYS[3], ARGV[i], ARGV[i])
end
if ARGV[5] ~= '[]' then redis.call('HSET', KEYS[4], ARGV[4], ARGV[5]) end
local extra = redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[6])
if extra > 0 then
  local old = redis.call("ZPOPMIN", KEYS[3], extra)
  for i = 1, #old, 2 do redis.call("HDEL", KEYS[2], old[i]) end
end
return 'ok'`;
const recordScript = createScript(recordLua);

/** The slot ledger in Redis. */
export class SlotLedger {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The time that decides what is due: Redis's. */
  nowMs(): Promise<number> {
    return redisTimeMs(this.#store);
  }

  /** The marks of these policies: up to where slots are recorded. A policy seen for the first time gets `nowMs`: its past is not made up for. */
  async marks(policies: readonly string[], nowMs: number): Promise<Map<string, number>> {
    if (policies.length === 0) return new Map();
    const { redis, key } = this.#store;
    const pipeline = redis.pipeline();
    for (const policy of policies) pipeline.hsetnx(key("marks"), policy, String(nowMs));
    await pipeline.exec();
    const marks = await redis.hmget(key("marks"), ...policies);
    return new Map(policies.map((policy, index) => [policy, Number(marks[index] ?? nowMs)]));
  }

  /** Records a step. Answers the mark that stands now: `newMarkMs` when this call moved it, another one when some replica was faster, undefined when the policy has none. */
  async record(step: SlotStep): Promise<{ readonly recorded: boolean; readonly markMs: number | undefined }> {
    const { key } = this.#store;
    const answer = await recordScript(
      this.#store,
      [key("marks"), key("slots", step.policy), key("slot-index", step.policy), key("outbox")],
      [
        step.policy,
        step.expectedMarkMs,
        step.newMarkMs,
        outboxField(step),
        JSON.stringify(step.tasks),
        slotRecordsMax,
        ...step.records.flatMap(({ slotMs, state, detail }) => [slotMs, JSON.stringify({ state, detail })]),
      ],
    );
    if (answer === "ok") return { recorded: true, markMs: step.newMarkMs };
    return { recorded: false, markMs: answer === "" ? undefined : Number(answer) };
  }

  /** Takes a step's tasks out of the outbox: they are in the queue. */
  async confirmQueued(step: Pick<SlotStep, "policy" | "newMarkMs">): Promise<void> {
    await this.#store.redis.hdel(this.#store.key("outbox"), outboxField(step));
  }

  /** Steps whose tasks were recorded before `olderThanMs` and never confirmed: their scheduler died in between. At most 1,000. */
  async unqueued(olderThanMs: number): Promise<{ policy: string; newMarkMs: number; tasks: Task[] }[]> {
    const { redis, key } = this.#store;
    const [, entries] = await redis.hscan(key("outbox"), "0", "COUNT", 1_000);
    const steps = [];
    for (let index = 0; index + 1 < entries.length; index += 2) {
      const [policy = "", mark = ""] = (entries[index] ?? "").split("/");
      if (Number(mark) >= olderThanMs) continue;
      const tasks: unknown = JSON.parse(entries[index + 1] ?? "[]");
      steps.push({ policy, newMarkMs: Number(mark), tasks: Array.isArray(tasks) ? tasks.map(parseTask) : [] });
    }
    return steps;
  }

  /** The newest slot records of a policy, newest first. */
  async slots(policy: string, count: number): Promise<SlotRecord[]> {
    const { redis, key } = this.#store;
    const slots = await redis.zrevrange(key("slot-index", policy), 0, count - 1);
    if (slots.length === 0) return [];
    const texts = await redis.hmget(key("slots", policy), ...slots);
    return slots.map((slot, index) => ({ slotMs: Number(slot), ...JSON.parse(texts[index] ?? "{}") }));
  }
}

function outboxField({ policy, newMarkMs }: Pick<SlotStep, "policy" | "newMarkMs">): string {
  return `${policy}/${newMarkMs}`;
}
