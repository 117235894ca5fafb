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

/** A policy and the text of its schedule: another text is another schedule. */
export interface ScheduledPolicy {
  readonly policy: string;
  readonly schedule: string;
}

/** How many slot records a policy keeps; older ones are dropped. About 150 bytes each. */
export const slotRecordsMax = 1_000;

/** Each step on its own: its mark is where it was expected, or nothing of it is written. Answers 'ok', the other mark, or '' for none. */
const recordScript = createScript(`
local answers = {}
local at = 2
for step = 1, (#KEYS - 2) / 2 do
  local slots, index = KEYS[2 * step + 1], KEYS[2 * step + 2]
  local policy, expected, new, tasks, count = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], tonumber(ARGV[at + 4])
  at = at + 5
  local mark = redis.call('HGET', KEYS[1], policy)
  if mark ~= expected then
    answers[step] = mark or ''
  else
    redis.call('HSET', KEYS[1], policy, new)
    for i = at, at + 2 * count - 1, 2 do
      redis.call('HSETNX', slots, ARGV[i], ARGV[i + 1])
      redis.call('ZADD', index, ARGV[i], ARGV[i])
    end
    if tasks ~= '[]' then redis.call('HSET', KEYS[2], policy .. '/' .. new, tasks) end
    local extra = redis.call('ZCARD', index) - tonumber(ARGV[1])
    if extra > 0 then
      local old = redis.call('ZPOPMIN', index, extra)
      for i = 1, #old, 2 do redis.call('HDEL', slots, old[i]) end
    end
    answers[step] = 'ok'
  end
  at = at + 2 * count
end
return answers`);

/** A new policy begins now; one with another schedule than is known begins now at the earliest; the others keep their marks. */
const marksScript = createScript(`
local marks = {}
for i = 2, #ARGV, 2 do
  local policy, schedule = ARGV[i], ARGV[i + 1]
  local mark = redis.call('HGET', KEYS[1], policy)
  local known = redis.call('HGET', KEYS[2], policy)
  local changed = known and known ~= schedule
  if not mark or (changed and tonumber(mark) < tonumber(ARGV[1])) then
    mark = ARGV[1]
    redis.call('HSET', KEYS[1], policy, mark)
  end
  if known ~= schedule then redis.call('HSET', KEYS[2], policy, schedule) end
  marks[i / 2] = mark
end
return marks`);

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

  /**
   * The marks of these policies: up to where slots are recorded. A policy seen for the first time gets `nowMs`: its past is not
   * made up for. Nor is it under another schedule than Redis remembers, also when the change came with a restart.
   */
  async marks(policies: readonly ScheduledPolicy[], nowMs: number): Promise<Map<string, number>> {
    const { key } = this.#store;
    const marks = new Map<string, number>();
    for (const portion of portionsOf(policies)) {
      const args = [nowMs, ...portion.flatMap(({ policy, schedule }) => [policy, schedule])];
      const answer = toTexts(await marksScript(this.#store, [key("marks"), key("schedules")], args));
      for (const [index, { policy }] of portion.entries()) marks.set(policy, Number(answer[index]));
    }
    return marks;
  }

  /**
   * Records steps, each on its own. Answers the mark that stands now: `newMarkMs` when this call moved it, another one when some
   * replica was faster, undefined when the policy has none.
   */
  async record(steps: readonly SlotStep[]): Promise<RecordAnswer[]> {
    const { key } = this.#store;
    const answers: RecordAnswer[] = [];
    for (const portion of portionsOf(steps)) {
      const keys = portion.flatMap(({ policy }) => [key("slots", policy), key("slot-index", policy)]);
      const args = [slotRecordsMax, ...portion.flatMap(stepArguments)];
      const answer = toTexts(await recordScript(this.#store, [key("marks"), key("outbox"), ...keys], args));
      answers.push(...portion.map((step, index) => toAnswer(answer[index] ?? "", step)));
    }
    return answers;
  }

  /** Takes the tasks of steps out of the outbox: they are in the queue. */
  async confirmQueued(steps: readonly Pick<SlotStep, "policy" | "newMarkMs">[]): Promise<void> {
    const fields = steps.map(({ policy, newMarkMs }) => `${policy}/${newMarkMs}`);
    for (const portion of portionsOf(fields)) await this.#store.redis.hdel(this.#store.key("outbox"), ...portion);
  }

  /** Forgets the marks and schedules of policies; their slot records stay. */
  async drop(policies: readonly string[]): Promise<void> {
    const { redis, key } = this.#store;
    for (const portion of portionsOf(policies)) {
      await redis.hdel(key("marks"), ...portion);
      await redis.hdel(key("schedules"), ...portion);
    }
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

interface RecordAnswer {
  readonly recorded: boolean;
  readonly markMs: number | undefined;
}

/** What one call to Redis handles, so that it never holds others up for more than some milliseconds. */
const portionMax = 200;

function* portionsOf<Item>(items: readonly Item[]): Generator<readonly Item[], void, void> {
  for (let start = 0; start < items.length; start += portionMax) yield items.slice(start, start + portionMax);
}

function stepArguments({ policy, expectedMarkMs, newMarkMs, tasks, records }: SlotStep): (string | number)[] {
  const slots = records.flatMap(({ slotMs, state, detail }) => [slotMs, JSON.stringify({ state, detail })]);
  return [policy, expectedMarkMs, newMarkMs, JSON.stringify(tasks), records.length, ...slots];
}

function toAnswer(text: string, step: SlotStep): RecordAnswer {
  if (text === "ok") return { recorded: true, markMs: step.newMarkMs };
  return { recorded: false, markMs: text === "" ? undefined : Number(text) };
}

function toTexts(answer: unknown): string[] {
  return Array.isArray(answer) ? answer.map(String) : [];
}
