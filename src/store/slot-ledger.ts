// The slot ledger: which slots were due, and what became of each. One atomic step records slots and
// moves the policy's watermark: a slower replica finds it moved and does nothing. Recorded tasks
// stand in the outbox until they are queued; the sweep repairs a crash in between.
import type { Interval } from "../core/instant.ts";
import { isJsonObject } from "../core/json.ts";
import { isOutageReply } from "../core/redis-outage.ts";
import {
  type OutboxPlace,
  type PlannedSlots,
  type RecordAnswer,
  readSlotRecord,
  type ScheduledPolicy,
  type SlotRecord,
  type UnqueuedSlots,
  type Watermark,
} from "../model/slot-record.ts";
import { parseTask, type Task } from "../model/task.ts";
import { slotDay, unskippedDay } from "./day-summaries.ts";
import { notifyStreamKey } from "./notify-store.ts";
import { changedPoliciesKey } from "./policy-states.ts";
import { redisTimeMs, type Store, scanPairs } from "./redis.ts";
import { asFlag, asList, asNothing, asTexts, asWord, batchesOf, createScript, pairsOf } from "./script.ts";
import { troublesKey } from "./troubles.ts";

/** Slot records that a policy keeps; docs/running.md says what they cost. */
export const slotRecordsMax = 1_000;

/** How long a record is kept, counted back from the policy's newest slot. */
export const slotRecordsForMs = 31 * 86_400_000;

/** Items of one call, so that it blocks Redis for a few milliseconds at most. */
const batchMax = 200;

const recordScript = createScript("slots/record", (answer) => asList(answer).map(toRecordAnswer));
const watermarksScript = createScript("slots/watermarks", (answer) => pairsOf(asTexts(answer)));
const newestScript = createScript("slots/newest", (answer) => pairsOf(asTexts(answer)));
const forgetScript = createScript("slots/forget", asNothing);
const startSkippedScript = createScript("slots/start-skipped", asFlag);

/** The ledger of one policy. Instants are milliseconds UTC. */
export interface LedgerHoldings {
  /** Up to where slots are recorded; undefined when no scheduler plans the policy. */
  readonly watermarkMs: number | undefined;
  /** Every slot after this instant, up to the watermark, has a record. */
  readonly keptSinceMs: number | undefined;
  readonly records: readonly SlotRecord[];
}

/** The slot ledger in Redis. */
export class SlotLedger {
  readonly #store: Store;
  /** Where the next sweep of the outbox goes on. */
  #outboxCursor = "0";

  constructor(store: Store) {
    this.#store = store;
  }

  /** The time of Redis: it decides what is due. */
  nowMs(): Promise<number> {
    return redisTimeMs(this.#store);
  }

  /**
   * Returns the watermarks. A new policy begins at `nowMs` or its `beginsMs`; a changed schedule
   * (`from`) at `nowMs` at the earliest.
   */
  async openWatermarks(policies: readonly ScheduledPolicy[], nowMs: number): Promise<Map<string, Watermark>> {
    const watermarks = new Map<string, Watermark>();
    for (const batch of batchesOf(policies, batchMax)) {
      const args = batch.flatMap((one) => [one.policy, one.schedule, one.from ?? "", one.beginsMs ?? nowMs]);
      const keys = [...this.#policyHashes, ...this.#recordKeys(batch)];
      const answers = await watermarksScript(this.#store, keys, args);
      for (const [index, [watermark, schedule]] of answers.entries())
        watermarks.set(batch[index]?.policy ?? "", { watermarkMs: Number(watermark), schedule });
    }
    return watermarks;
  }

  /** Records the slots of each policy on their own; answers the watermark that stands for each. */
  async record(planned: readonly PlannedSlots[]): Promise<RecordAnswer[]> {
    const { key } = this.#store;
    const answers: RecordAnswer[] = [];
    for (const batch of batchesOf(planned, batchMax)) {
      const shared = [key("watermarks"), key("schedules"), key("outbox"), key("kept-since"), key("waiting")];
      const noted = [notifyStreamKey(this.#store), troublesKey(this.#store), changedPoliciesKey(this.#store)];
      const keys = [...shared, ...noted, key("begun")];
      const args: (string | number)[] = [slotRecordsMax, slotRecordsForMs];
      for (const one of batch) this.#addPlan(one, keys, args);
      answers.push(...(await recordScript(this.#store, keys, args)));
    }
    return answers;
  }

  /** Takes the tasks of queued slots out of the outbox. */
  async confirmQueued(planned: readonly OutboxPlace[]): Promise<void> {
    const fields = planned.map(outboxField);
    for (const batch of batchesOf(fields, batchMax)) await this.#store.redis.hdel(this.#store.key("outbox"), ...batch);
  }

  /** Forgets watermarks and schedules; their records expire after `slotRecordsForMs`. */
  async drop(policies: readonly string[]): Promise<void> {
    for (const batch of batchesOf(policies, batchMax)) {
      const recordKeys = this.#recordKeys(batch.map((policy) => ({ policy })));
      await forgetScript(this.#store, [...this.#policyHashes, ...recordKeys], [slotRecordsForMs, ...batch]);
    }
  }

  /** Drops all policies but these: one that comes back begins anew. */
  async tidy(known: ReadonlySet<string>): Promise<void> {
    await this.drop((await this.policies()).filter((policy) => !known.has(policy)));
  }

  /**
   * Returns all of the outbox that can be read, of one policy or of all: slots whose tasks are
   * perhaps not queued.
   */
  async outbox(policy = "*"): Promise<UnqueuedSlots[]> {
    const found: UnqueuedSlots[] = [];
    const read = (cursor: string) => this.#scanOutbox(cursor, `${policy}/*`);
    for await (const page of scanPairs(read)) found.push(...toUnqueued(page));
    return found;
  }

  /**
   * Returns, of the next 1,000 or so places in the outbox, those older than this. Each call goes on
   * where the last one ended, so that no place hides those behind it: one whose tasks could not be
   * queued comes back after all others.
   */
  async unqueued(olderThanMs: number): Promise<UnqueuedSlots[]> {
    const [cursor, entries] = await this.#scanOutbox(this.#outboxCursor);
    this.#outboxCursor = cursor;
    return toUnqueued(pairsOf(entries), olderThanMs);
  }

  #scanOutbox(cursor: string, match = "*"): Promise<[string, string[]]> {
    return this.#store.redis.hscan(this.#store.key("outbox"), cursor, "MATCH", match, "COUNT", 1_000);
  }

  /** The newest slot records of a policy, of slots from and up to an instant, newest first. */
  async slots(policy: string, count: number, span: Partial<Interval> = {}): Promise<SlotRecord[]> {
    const { redis, key } = this.#store;
    const { fromMs = "-inf", toMs = "+inf" } = span;
    return this.#read(policy, await redis.zrevrangebyscore(key("slot-index", policy), toMs, fromMs, "LIMIT", 0, count));
  }

  /** How many slot records of a policy there are, of slots from and up to an instant. */
  async countSlots(policy: string, { fromMs, toMs }: Interval): Promise<number> {
    const { redis, key } = this.#store;
    return redis.zcount(key("slot-index", policy), fromMs, toMs);
  }

  /** The oldest slot records of a policy, of slots from and up to an instant, oldest first. */
  async oldestSlots(policy: string, count: number, { fromMs, toMs }: Interval): Promise<SlotRecord[]> {
    const { redis, key } = this.#store;
    return this.#read(policy, await redis.zrangebyscore(key("slot-index", policy), fromMs, toMs, "LIMIT", 0, count));
  }

  async #read(policy: string, slots: readonly string[]): Promise<SlotRecord[]> {
    const { redis, key } = this.#store;
    if (slots.length === 0) return [];
    const texts = await redis.hmget(key("slots", policy), ...slots);
    return slots.flatMap((slot, index) => toRecord(slot, texts[index] ?? null));
  }

  /** Returns the watermarks of a policy and every record, oldest first. */
  async holdings(policy: string): Promise<LedgerHoldings> {
    const [only = { watermarkMs: undefined, keptSinceMs: undefined, records: [] }] = await this.holdingsOf([policy]);
    return only;
  }

  /** Returns the same of a few policies, in their order. */
  async holdingsOf(policies: readonly string[]): Promise<readonly LedgerHoldings[]> {
    const { redis, key } = this.#store;
    // Kept-since last: a record that is dropped in between is not missed then.
    const [plannedUpTo, ledgers, keptSince] = await Promise.all([
      this.plannedUpTo(policies),
      Promise.all(policies.map(async (policy) => redis.hgetall(key("slots", policy)))),
      this.keptSince(policies),
    ]);
    return policies.map((policy, index) => {
      const parsed = new Map<string, SlotRecord | undefined>();
      const records = Object.entries(ledgers[index] ?? {}).flatMap(([slot, text]) => toRecord(slot, text, parsed));
      return {
        watermarkMs: plannedUpTo.get(policy),
        keptSinceMs: keptSince.get(policy),
        records: records.sort((a, b) => a.slotMs - b.slotMs),
      };
    });
  }

  /** Returns `keptSinceMs` of each of these policies, as in `holdings`. */
  keptSince(policies: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.#instantsOf("kept-since", policies);
  }

  /** Returns the newest slot of each of these policies whose record was dropped, if any was. */
  async dropped(policies: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const found = await this.#instantsOf(
      "kept-since",
      policies.map((policy) => `${policy}/dropped`),
    );
    return new Map([...found].map(([field, atMs]) => [field.slice(0, -"/dropped".length), atMs]));
  }

  /** Returns where these policies began, or their schedule in force; older ones are left out. */
  begun(policies: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.#instantsOf("begun", policies);
  }

  /** Returns up to where slots of these policies are recorded; changes nothing. */
  plannedUpTo(policies: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.#instantsOf("watermarks", policies);
  }

  /** Returns the newest record of each of these policies, of slots up to an instant. */
  async newestRecords(policies: readonly string[], untilMs: number): Promise<ReadonlyMap<string, SlotRecord>> {
    const records = new Map<string, SlotRecord>();
    for (const batch of batchesOf(policies, batchMax)) {
      const keys = this.#recordKeys(batch.map((policy) => ({ policy })));
      for (const [index, [slot, text]] of (await newestScript(this.#store, keys, [untilMs])).entries())
        if (text !== "") for (const record of toRecord(slot, text)) records.set(batch[index] ?? "", record);
    }
    return records;
  }

  async #instantsOf(hash: "begun" | "kept-since" | "watermarks", policies: readonly string[]) {
    const { redis, key } = this.#store;
    const instants = new Map<string, number>();
    for (const batch of batchesOf(policies, batchMax)) {
      const found = await redis.hmget(key(hash), ...batch);
      for (const [index, policy] of batch.entries()) if (found[index]) instants.set(policy, Number(found[index]));
    }
    return instants;
  }

  /** The hashes that have a field for each policy, as `slots/watermarks` names them. */
  get #policyHashes(): string[] {
    return ["watermarks", "schedules", "kept-since", "begun"].map((hash) => this.#store.key(hash));
  }

  /** Returns the names of all policies that schedulers plan. */
  policies(): Promise<string[]> {
    return this.#store.redis.hkeys(this.#store.key("watermarks"));
  }

  /**
   * Starts a slot that a pause had skipped; false, with no change: the record is another by now.
   * The same again is true, with no change: ioredis repeats a command whose answer was lost.
   */
  async startSkipped(
    policy: string,
    record: SlotRecord,
    { newWatermarkMs, tasks, timezone }: Pick<PlannedSlots, "newWatermarkMs" | "tasks" | "timezone">,
  ): Promise<boolean> {
    const { key } = this.#store;
    const { slotMs, ...rest } = record;
    const day = unskippedDay(this.#store, { policy, slotMs, timezone });
    const field = outboxField({ policy, newWatermarkMs });
    const args = [slotMs, JSON.stringify({ v: 1, ...rest }), field, JSON.stringify(tasks), day.change];
    return startSkippedScript(this.#store, [key("slots", policy), key("outbox"), day.key], args);
  }

  #recordKeys(policies: readonly { readonly policy: string }[]): string[] {
    const { key } = this.#store;
    return policies.flatMap(({ policy }) => [key("slots", policy), key("slot-index", policy)]);
  }

  /** Adds the keys and arguments of one policy, in the order of lua/slots/record.lua. */
  #addPlan(planned: PlannedSlots, keys: string[], args: (string | number)[]): void {
    const { policy, timezone, schedule = "", newWatermarkMs, tasks, records, followers = [] } = planned;
    const openedMs = planned.plannedAtMs ?? newWatermarkMs;
    args.push(policy, schedule, planned.expectedWatermarkMs, newWatermarkMs, outboxField(planned));
    args.push(tasks.length === 0 ? "" : JSON.stringify(tasks));
    args.push(records.length, followers.length, planned.isNotified === true ? 1 : 0, openedMs);
    keys.push(...this.#recordKeys([planned]));
    if (followers.length > 0) for (const { slotMs } of records) keys.push(joinCounterKey(this.#store, policy, slotMs));
    for (const { slotMs, ...record } of records) {
      const day = slotDay(this.#store, { policy, timezone, slotMs, state: record.state });
      args.push(slotMs, JSON.stringify({ v: 1, ...record }), day?.change ?? "");
      if (day !== undefined) keys.push(day.key);
    }
    for (const { policy: name, schedule: followerSchedule, ...rest } of followers)
      args.push(name, followerSchedule, JSON.stringify({ v: 1, ...rest, openedMs }));
  }
}

/** Most records of a policy are the same text: `parsed` remembers them. */
function toRecord(slot: string, text: string | null, parsed = new Map<string, SlotRecord | undefined>()): SlotRecord[] {
  if (text === null) return [];
  const slotMs = Number(slot);
  if (!parsed.has(text)) {
    const fields: unknown = JSON.parse(text);
    parsed.set(text, isJsonObject(fields) ? readSlotRecord({ ...fields, slotMs }) : undefined);
  }
  const record = parsed.get(text);
  return record === undefined ? [] : [{ ...record, slotMs }];
}

/** Key of the join counter of one slot: its tasks, while another policy waits for them. */
export function joinCounterKey({ key }: Store, policy: string, slotMs: number): string {
  return key("join-counter", policy, String(slotMs));
}

function outboxField({ policy, newWatermarkMs, plannedAtMs }: OutboxPlace): string {
  return [policy, newWatermarkMs, ...(plannedAtMs === undefined ? [] : [plannedAtMs])].join("/");
}

function outboxPlace(field: string): OutboxPlace {
  const [policy = "", newWatermark, plannedAt] = field.split("/");
  const planned = plannedAt === undefined ? {} : { plannedAtMs: Number(plannedAt) };
  return { policy, newWatermarkMs: Number(newWatermark), ...planned };
}

/** Reads a page of the outbox; leaves out what cannot be read. */
function toUnqueued(
  page: readonly (readonly [string, string])[],
  olderThanMs = Number.POSITIVE_INFINITY,
): UnqueuedSlots[] {
  return page.flatMap(([field, text]) => {
    const place = outboxPlace(field);
    if ((place.plannedAtMs ?? place.newWatermarkMs) >= olderThanMs) return [];
    const tasks = readTasks(text);
    return tasks === undefined ? [] : [{ ...place, tasks }];
  });
}

/** Reads the answer for one policy's slots. */
function toRecordAnswer(answer: unknown): RecordAnswer {
  const [word, watermark = "", fault = "", ...supersededFollowers] = asTexts(answer);
  const state = asWord("recorded", "moved", "superseded", "fault")(word);
  const watermarkMs = watermark === "" ? undefined : Number(watermark);
  if (state === "superseded") return { recorded: false, watermarkMs, isSuperseded: true };
  const superseded = supersededFollowers.length === 0 ? {} : { supersededFollowers };
  if (state !== "fault") return { recorded: state === "recorded", watermarkMs, ...superseded };
  // A full Redis, or a Redis replica, refuses all of them: the whole call fails.
  if (isOutageReply(fault)) throw Object.assign(new Error(fault), { name: "ReplyError" });
  return { recorded: false, watermarkMs, fault };
}

/** Undefined for tasks that cannot be read: they stay for a newer replica, and stop no others. */
function readTasks(text: string): Task[] | undefined {
  try {
    const tasks: unknown = JSON.parse(text);
    return Array.isArray(tasks) ? tasks.map(parseTask) : undefined;
  } catch {
    return undefined;
  }
}
