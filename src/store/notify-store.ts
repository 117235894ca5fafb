// The notifier's events, alert states and waiting notices, which are plain texts to this file. One
// replica at a time works on them: the one with the lease.
import * as z from "zod";
import { isJsonObject } from "../core/json.ts";
import {
  leftToNewerMs,
  type MustWait,
  type NotifyBatch,
  type NotifyChanges,
  type NotifyEvent,
  type NotifyPart,
  notifyParts,
} from "../model/notify-event.ts";
import { parseOutcome } from "../model/outcome.ts";
import { readSlotRecord } from "../model/slot-record.ts";
import { redisTimeMs, type Store, scanPairs } from "./redis.ts";
import { asFlag, asList, asNothing, asNumber, asText, asTexts, batchesOf, createScript, pairsOf } from "./script.ts";

const takeScript = createScript("lease/acquire", asText);
const releaseScript = createScript("lease/release", asNothing);
const readScript = createScript("notify/read", (answer) => {
  const [events, lost, nowMs] = asList(answer);
  const pairs = asList(events).map((event) => {
    const [id, fields] = asList(event);
    return [asText(id), asTexts(fields)] as const;
  });
  return { pairs, lost: asNumber(lost), nowMs: asNumber(nowMs) };
});
const saveScript = createScript("notify/save", asFlag);
const sentScript = createScript("notify/heartbeat-sent", asNothing);

/** Key of the event stream: outcomes, missed slots, read masks, long runs. */
export function notifyStreamKey({ key }: Pick<Store, "key">): string {
  return key("outcome-events");
}

/** The place of the first part among the keys of `notify/save`; the others follow in order. */
const firstPartKey = 4;

const longRunSchema = z.object({
  taskId: z.string(),
  target: z.string(),
  sentAtMs: z.int(),
  atMs: z.int(),
  usualMs: z.number(),
});

/** The notifier's events and states in Redis. */
export class NotifyStore {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The time of Redis. */
  nowMs(): Promise<number> {
    return redisTimeMs(this.#store);
  }

  /** Takes or prolongs the lease. `taken`: another may have had it since this owner had it. */
  async take(owner: string, durationMs: number): Promise<"prolonged" | "taken" | "refused"> {
    const before = await takeScript(this.#store, [this.#lease], [owner, durationMs]);
    return before === "" ? "taken" : before === owner ? "prolonged" : "refused";
  }

  /** Releases the lease, if this owner has it. */
  async leave(owner: string): Promise<void> {
    await releaseScript(this.#store, [this.#lease], [owner]);
  }

  /**
   * Reads the next events up to one that must wait, or that cannot be read: a newer notifier has
   * ten minutes for it. Throws when the first one cannot be read for less than ten minutes; after
   * that it is counted and passed.
   */
  async read(count: number, mustWait: MustWait = () => false): Promise<NotifyBatch> {
    const { pairs, lost, nowMs } = await readScript(this.#store, [notifyStreamKey(this.#store), this.#state], [count]);
    return { ...readEvents(pairs, nowMs, mustWait), lost };
  }

  /** Reads these fields of a part, or all of it (at most 20,000). */
  async texts(part: NotifyPart, fields?: readonly string[]): Promise<Map<string, string>> {
    const key = this.#part(part);
    const found = new Map<string, string>();
    if (fields === undefined) {
      const read = (cursor: string) => this.#store.redis.hscan(key, cursor, "COUNT", 1_000);
      for await (const page of scanPairs(read)) {
        for (const [field, text] of page) found.set(field, text);
        if (found.size >= 20_000) return found;
      }
      return found;
    }
    for (const batch of batchesOf(fields)) {
      const texts = await this.#store.redis.hmget(key, ...batch);
      for (const [index, text] of texts.entries()) if (text !== null) found.set(batch[index] ?? "", text);
    }
    return found;
  }

  /** Saves changes and passes events in one step; false, with no change: another has the lease. */
  async save(owner: string, batch: Pick<NotifyBatch, "cursor" | "passed">, changes: NotifyChanges): Promise<boolean> {
    const triples = notifyParts.flatMap((part, index) =>
      [...(changes[part] ?? [])].flatMap(([field, text]) => [index + firstPartKey, field, text ?? ""]),
    );
    const keys = [
      this.#lease,
      this.#state,
      notifyStreamKey(this.#store),
      ...notifyParts.map((part) => this.#part(part)),
    ];
    return saveScript(this.#store, keys, [owner, batch.cursor, batch.passed, ...triples]);
  }

  /** Removes fields of a part; false, with no change: another has the lease. */
  remove(owner: string, part: NotifyPart, fields: readonly string[]): Promise<boolean> {
    const gone = new Map(fields.map((field) => [field, undefined]));
    return this.save(owner, { cursor: "", passed: 0 }, { [part]: gone });
  }

  /** Adds lost events to the handled ones, so that the next read does not count them again. */
  async noteLost(count: number): Promise<void> {
    await this.#store.redis.hincrby(this.#state, "handled", count);
  }

  /** Removes a heartbeat that was sent or given up, unless a newer one is due. */
  async sent(policy: string, text: string): Promise<void> {
    await sentScript(this.#store, [this.#part("heartbeats")], [policy, text]);
  }

  #part(part: NotifyPart): string {
    return this.#store.key("notifications", part);
  }

  get #lease(): string {
    return this.#store.key("notifications", "lease");
  }

  get #state(): string {
    return this.#store.key("notifications", "state");
  }
}

function readEvents(
  pairs: readonly (readonly [string, readonly string[]])[],
  nowMs: number,
  mustWait: MustWait,
): Omit<NotifyBatch, "lost"> {
  const events: NotifyEvent[] = [];
  let [cursor, passed, unreadable] = ["", 0, 0];
  for (const [id, fields] of pairs) {
    const ageMs = nowMs - Number(id.split("-")[0]);
    try {
      const event = toEvent(id, fields);
      if (mustWait(event, ageMs)) return { events, cursor, passed, unreadable, isNextWaiting: true };
      events.push(event);
    } catch (error) {
      const isLeft = ageMs < leftToNewerMs;
      if (isLeft && passed === 0) throw error;
      if (isLeft) break;
      unreadable += 1;
    }
    cursor = id;
    passed += 1;
  }
  return { events, cursor, passed, unreadable, isNextWaiting: false };
}

function toEvent(id: string, flat: readonly string[]): NotifyEvent {
  const fields = new Map(pairsOf(flat));
  const outcome = fields.get("o");
  if (outcome !== undefined) return { id, kind: "outcome", outcome: parseOutcome(JSON.parse(outcome)) };
  const policy = fields.get("p") ?? "";
  const slotMs = Number(fields.get("s"));
  const masks = fields.get("m");
  if (masks !== undefined)
    return { id, kind: "masks-read", policy, slotMs, syncJobs: z.array(z.string()).parse(JSON.parse(masks)) };
  const long = fields.get("l");
  if (long !== undefined) return { id, kind: "run-long", policy, slotMs, ...longRunSchema.parse(JSON.parse(long)) };
  const record: unknown = JSON.parse(fields.get("r") ?? "null");
  const read = isJsonObject(record) ? readSlotRecord({ ...record, slotMs }) : undefined;
  if (read === undefined) throw new TypeError("a missed slot that cannot be read");
  return { id, kind: "slot-missed", policy, slotMs, detail: read.detail };
}
