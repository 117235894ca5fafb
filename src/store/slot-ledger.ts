// The slot ledger: which slots were due, and what became of each. Written by the scheduler; read by `audit` and `explain`.
// Recording slots and moving the policy's mark is one atomic step, so any number of replicas may plan at once:
// whoever comes second finds the mark moved and does nothing. Tasks that were recorded but not yet put into the
// queue stand in the outbox, and the sweep repairs a crash in between.
import { isJsonObject } from "../core/json.ts";
import { readSlotRecord, type SlotRecord } from "../tasks/slot-record.ts";
import type { ScheduledPolicy, SlotStep } from "../tasks/slot-step.ts";
import { parseTask, type Task } from "../tasks/task.ts";
import { forgetScript, keepScript, marksScript, recordScript, startSkippedScript } from "./ledger-scripts.ts";
import { redisTimeMs, type Store } from "./redis.ts";
import { tellingStreamKey } from "./telling-book.ts";

/** How many slot records a policy keeps; older ones are dropped. docs/day-to-day.md says what they cost. */
export const slotRecordsMax = 1_000;

/** How long a record is kept, counted back from the policy's newest slot; also how long those of a removed policy are. */
export const slotRecordsForMs = 31 * 86_400_000;

/** What is in the ledger of one policy. Instants are milliseconds UTC. */
export interface LedgerHoldings {
  /** Up to where slots are recorded; undefined when no scheduler plans the policy here. */
  readonly markMs: number | undefined;
  /** Every slot after this instant, up to the mark, has a record: since the policy (or its schedule) began here, or since older records were dropped. */
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

  /**
   * The marks of these policies: up to where slots are recorded. A policy seen for the first time gets `nowMs`: its past is not
   * made up for. Nor is it under another schedule than Redis remembers, also when the change came with a restart.
   */
  async marks(policies: readonly ScheduledPolicy[], nowMs: number): Promise<Map<string, number>> {
    const { key } = this.#store;
    const marks = new Map<string, number>();
    for (const portion of portionsOf(policies)) {
      const args = [nowMs, ...portion.flatMap(({ policy, schedule }) => [policy, schedule])];
      const keys = [key("marks"), key("schedules"), key("kept-since"), ...this.#recordKeys(portion)];
      const answer = toTexts(await marksScript(this.#store, keys, args));
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
      const shared = [key("marks"), key("outbox"), key("kept-since"), key("waiting"), tellingStreamKey(this.#store)];
      const keys = [...shared, ...portion.flatMap(this.#stepKeys)];
      const args = [slotRecordsMax, slotRecordsForMs, ...portion.flatMap(stepArguments)];
      const answer = toTexts(await recordScript(this.#store, keys, args));
      answers.push(...portion.map((step, index) => toAnswer(answer[index] ?? "", step)));
    }
    return answers;
  }

  /** Takes the tasks of steps out of the outbox: they are in the queue. */
  async confirmQueued(steps: readonly Pick<SlotStep, "policy" | "newMarkMs">[]): Promise<void> {
    const fields = steps.map(outboxField);
    for (const portion of portionsOf(fields)) await this.#store.redis.hdel(this.#store.key("outbox"), ...portion);
  }

  /** Forgets the marks and schedules of policies, and since when they are whole; their slot records stay for `slotRecordsForMs`. */
  drop(policies: readonly string[]): Promise<void> {
    return this.#forget(policies, "+inf");
  }

  /**
   * Lets go of policies that nobody plans any more, though nobody saw them being removed: of their records after
   * `slotRecordsForMs`, and then of their marks. One that comes back before goes on where it was.
   */
  async tidy(known: ReadonlySet<string>, nowMs: number): Promise<void> {
    const unknown = (await this.policies()).filter((policy) => !known.has(policy));
    await this.#forget(unknown, nowMs - slotRecordsForMs);
    for (const portion of portionsOf([...known]))
      await keepScript(this.#store, this.#recordKeys(portion.map((policy) => ({ policy }))), []);
  }

  /** Steps whose tasks were recorded before `olderThanMs` and never confirmed: their scheduler died in between. At most 1,000. */
  async unqueued(olderThanMs: number): Promise<{ policy: string; newMarkMs: number; tasks: Task[] }[]> {
    const { redis, key } = this.#store;
    const [, entries] = await redis.hscan(key("outbox"), "0", "COUNT", 1_000);
    const steps = [];
    for (let index = 0; index + 1 < entries.length; index += 2) {
      const [policy = "", mark = ""] = (entries[index] ?? "").split("/");
      if (Number(mark) >= olderThanMs) continue;
      const tasks = readTasks(entries[index + 1] ?? "[]");
      if (tasks !== undefined) steps.push({ policy, newMarkMs: Number(mark), tasks });
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

  /** Since when the records of each of these policies are whole, as `keptSinceMs` of `holdings`. At most 1,000 policies. */
  async keptSince(policies: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const { redis, key } = this.#store;
    const found = policies.length === 0 ? [] : await redis.hmget(key("kept-since"), ...policies);
    return new Map(
      policies.flatMap((policy, index) => (found[index] ? [[policy, Number(found[index])] as const] : [])),
    );
  }

  /** The names of all policies that schedulers plan here, by the latest policies that they have read. */
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
      [slotMs, JSON.stringify({ v: 1, ...rest }), field, JSON.stringify(step.tasks)],
    );
    return answer === 1;
  }

  async #forget(policies: readonly string[], oldBeforeMs: number | "+inf"): Promise<void> {
    const { key } = this.#store;
    for (const portion of portionsOf(policies)) {
      const recordKeys = this.#recordKeys(portion.map((policy) => ({ policy })));
      const keys = [key("marks"), key("schedules"), key("kept-since"), ...recordKeys];
      await forgetScript(this.#store, keys, [slotRecordsForMs, oldBeforeMs, ...portion]);
    }
  }

  #recordKeys(policies: readonly { readonly policy: string }[]): string[] {
    const { key } = this.#store;
    return policies.flatMap(({ policy }) => [key("slots", policy), key("slot-index", policy)]);
  }

  readonly #stepKeys = ({ policy, records, followers = [] }: SlotStep): string[] => {
    const tallies = followers.length === 0 ? [] : records.map(({ slotMs }) => tallyKey(this.#store, policy, slotMs));
    return [...this.#recordKeys([{ policy }]), ...tallies];
  };
}

function toRecord(slot: string, text: string | null): SlotRecord[] {
  const fields: unknown = JSON.parse(text ?? "null");
  const record = isJsonObject(fields) ? readSlotRecord({ ...fields, slotMs: Number(slot) }) : undefined;
  return record === undefined ? [] : [record];
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

function stepArguments(step: SlotStep): (string | number)[] {
  const { policy, expectedMarkMs, newMarkMs, tasks, records, followers = [], plannedAtMs = newMarkMs } = step;
  const slots = records.flatMap(({ slotMs, ...record }) => [slotMs, JSON.stringify({ v: 1, ...record })]);
  const waiting = followers.flatMap(({ policy: name, ...rest }) => [
    name,
    JSON.stringify({ v: 1, ...rest, openedMs: plannedAtMs }),
  ]);
  const counts = [records.length, followers.length, step.isTold === true ? 1 : 0];
  return [policy, expectedMarkMs, newMarkMs, JSON.stringify(tasks), ...counts, ...slots, ...waiting];
}

/** Where the tasks of one slot are counted while another policy waits for them. */
export function tallyKey({ key }: Store, policy: string, slotMs: number): string {
  return key("tally", policy, String(slotMs));
}

function outboxField({ policy, newMarkMs }: Pick<SlotStep, "policy" | "newMarkMs">): string {
  return `${policy}/${newMarkMs}`;
}

function toAnswer(text: string, step: SlotStep): RecordAnswer {
  if (text === "ok") return { recorded: true, markMs: step.newMarkMs };
  return { recorded: false, markMs: text === "" ? undefined : Number(text) };
}

/** Undefined for what this version cannot read: it stays in the outbox for one that can. */
function readTasks(text: string): Task[] | undefined {
  try {
    const tasks: unknown = JSON.parse(text);
    return Array.isArray(tasks) ? tasks.map(parseTask) : undefined;
  } catch {
    return undefined;
  }
}

function toTexts(answer: unknown): string[] {
  return Array.isArray(answer) ? answer.map(String) : [];
}
