// The slot ledger: which slots were due, and what became of each. Written by the scheduler; read by `audit` and `explain`.
// Recording slots and moving the policy's mark is one atomic step, so any number of replicas may plan at once:
// whoever comes second finds the mark moved and does nothing. Tasks that were recorded but not yet put into the
// queue stand in the outbox, and the sweep repairs a crash in between.
import { isJsonObject } from "../core/json.ts";
import { readSlotRecord, type SlotRecord } from "../tasks/slot-record.ts";
import { parseTask, type Task } from "../tasks/task.ts";
import { createScript, redisTimeMs, type Store } from "./redis.ts";

/** One step of planning: from the mark that was expected to the new one, with everything in between. */
export interface SlotStep {
  readonly policy: string;
  readonly expectedMarkMs: number;
  readonly newMarkMs: number;
  readonly records: readonly SlotRecord[];
  readonly tasks: readonly Task[];
}

/** How many slot records a policy keeps; older ones are dropped. About 150 bytes each, and 6 more for each sync job of a started slot. */
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
  redis.call('HSET', KEYS[5], ARGV[1], old[#old - 1])
end
return 'ok'`;
const recordScript = createScript(recordLua);

const startSkippedScript = createScript(`
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text then return 0 end
local record = cjson.decode(text)
if record.state ~= 'skipped' or record.detail ~= 'paused' then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
return 1`);

/** What is in the ledger of one policy. Instants are milliseconds UTC. */
export interface LedgerHoldings {
  /** Up to where slots are recorded; undefined when no scheduler has ever seen the policy. */
  readonly markMs: number | undefined;
  /** Every slot after this instant, up to the mark, has a record: since a scheduler first saw the policy, or since older records were dropped. */
  readonly keptSinceMs: number | undefined;
  readonly records: readonly SlotRecord[];
}

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
    for (const policy of policies) {
      pipeline.hsetnx(key("marks"), policy, String(nowMs));
      pipeline.hsetnx(key("kept-since"), policy, String(nowMs));
    }
    await pipeline.exec();
    const marks = await redis.hmget(key("marks"), ...policies);
    return new Map(policies.map((policy, index) => [policy, Number(marks[index] ?? nowMs)]));
  }

  /** Records a step. Answers the mark that stands now: `newMarkMs` when this call moved it, another one when some replica was faster, undefined when the policy has none. */
  async record(step: SlotStep): Promise<{ readonly recorded: boolean; readonly markMs: number | undefined }> {
    const { key } = this.#store;
    const answer = await recordScript(
      this.#store,
      [key("marks"), key("slots", step.policy), key("slot-index", step.policy), key("outbox"), key("kept-since")],
      [
        step.policy,
        step.expectedMarkMs,
        step.newMarkMs,
        outboxField(step),
        JSON.stringify(step.tasks),
        slotRecordsMax,
        ...step.records.flatMap(({ slotMs, ...record }) => [slotMs, JSON.stringify(record)]),
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
    return slots.flatMap((slot, index) => toRecord(slot, texts[index] ?? null));
  }

  /** What the ledger holds of a policy: its marks, and every record, oldest first. */
  async holdings(policy: string): Promise<LedgerHoldings> {
    const { redis, key } = this.#store;
    const [mark, keptSince, slots] = await Promise.all([
      redis.hget(key("marks"), policy),
      redis.hget(key("kept-since"), policy),
      redis.hgetall(key("slots", policy)),
    ]);
    const records = Object.entries(slots).flatMap(([slot, text]) => toRecord(slot, text));
    return {
      markMs: mark === null ? undefined : Number(mark),
      keptSinceMs: keptSince === null ? undefined : Number(keptSince),
      records: records.sort((a, b) => a.slotMs - b.slotMs),
    };
  }

  /** The names of all policies that a scheduler has ever seen here. */
  policies(): Promise<string[]> {
    return this.#store.redis.hkeys(this.#store.key("marks"));
  }

  /**
   * Lets a slot start after all that a pause had skipped: its record changes and its tasks go to the outbox in one step.
   * Answers false, and changes nothing, when the record does not say so any more. Enqueue the tasks and confirm with `newMarkMs`: the time of Redis.
   */
  async startSkipped(
    policy: string,
    record: SlotRecord,
    step: Pick<SlotStep, "newMarkMs" | "tasks">,
  ): Promise<boolean> {
    const { key } = this.#store;
    const { slotMs, ...rest } = record;
    const field = outboxField({ policy, newMarkMs: step.newMarkMs });
    const answer = await startSkippedScript(
      this.#store,
      [key("slots", policy), key("outbox")],
      [slotMs, JSON.stringify(rest), field, JSON.stringify(step.tasks)],
    );
    return answer === 1;
  }
}

function toRecord(slot: string, text: string | null): SlotRecord[] {
  const fields: unknown = JSON.parse(text ?? "null");
  const record = isJsonObject(fields) ? readSlotRecord({ ...fields, slotMs: Number(slot) }) : undefined;
  return record === undefined ? [] : [record];
}

function outboxField({ policy, newMarkMs }: Pick<SlotStep, "policy" | "newMarkMs">): string {
  return `${policy}/${newMarkMs}`;
}
