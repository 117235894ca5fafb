// The telling book: what happened and is not told yet (a stream), and how far telling has come. Used by telling/teller.ts, of which one at a
// time works over all replicas: whoever has the lease. Standings are texts here: telling/ knows what they say.
import { isJsonObject } from "../core/json.ts";
import { parseOutcome } from "../tasks/outcome.ts";
import { readSlotRecord } from "../tasks/slot-record.ts";
import type { TellingEvent } from "../tasks/telling-event.ts";
import { redisTimeMs, type Store } from "./redis.ts";
import { leaveScript, readScript, saveScript, sentScript, takeScript } from "./telling-scripts.ts";

/** Where events of telling stand. */
export function tellingStreamKey({ key }: Pick<Store, "key">): string {
  return key("outcome-events");
}

/** What a save changes: fields with their new texts; undefined takes a field out. */
export interface TellingChanges {
  readonly policies: ReadonlyMap<string, string | undefined>;
  readonly services: ReadonlyMap<string, string | undefined>;
  readonly held: ReadonlyMap<string, string | undefined>;
  readonly heartbeats: ReadonlyMap<string, string | undefined>;
}

/** Events, and how many were dropped before the teller saw them, ever; negative when Redis has forgotten what was told. */
export interface TellingPortion {
  readonly events: readonly TellingEvent[];
  /** The place of the last event, also of one that says nothing or cannot be read; '' without one. */
  readonly cursor: string;
  /** How many the cursor passes. */
  readonly passed: number;
  readonly lost: number;
  /** How many of those it passes could not be read. */
  readonly unreadable: number;
}

/** The four hashes of what telling has come to. */
export type TellingPart = "policies" | "services" | "held" | "heartbeats";

const keyNumbers: Readonly<Record<TellingPart, number>> = { policies: 4, services: 5, held: 6, heartbeats: 7 };

/** How long an event that cannot be read here stands in the way of those after it: as long as a rolling upgrade may take. */
const leftToNewerMs = 600_000;

/** The telling book in Redis. */
export class TellingBook {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** The time of Redis. */
  nowMs(): Promise<number> {
    return redisTimeMs(this.#store);
  }

  /** Takes or prolongs the lease. Answers whether it is this owner's now. */
  async take(owner: string, durationMs: number): Promise<boolean> {
    return (await takeScript(this.#store, [this.#lease], [owner, durationMs])) === 1;
  }

  /** Lets go of the lease, if it is this owner's. */
  async leave(owner: string): Promise<void> {
    await leaveScript(this.#store, [this.#lease], [owner]);
  }

  /**
   * The next events after what was saved, oldest first, up to one that cannot be read: it is left to a teller of a newer version for ten
   * minutes, then passed over.
   * @throws NewerVersionError, ZodError or SyntaxError when the first one is left so.
   */
  async read(count: number): Promise<TellingPortion> {
    const answer = await readScript(this.#store, [tellingStreamKey(this.#store), this.#state], [count]);
    const [entries, lost, nowMs] = Array.isArray(answer) ? answer : [];
    const pairs: readonly (readonly [string, string[]])[] = Array.isArray(entries) ? entries : [];
    return { ...readEvents(pairs, Number(nowMs)), lost: Number(lost) };
  }

  /** What stands in these fields, or in all of a part (20,000 at most are read). */
  async standing(part: TellingPart, fields?: readonly string[]): Promise<Map<string, string>> {
    const key = this.#part(part);
    if (fields === undefined) return this.#all(key);
    const found = new Map<string, string>();
    for (let from = 0; from < fields.length; from += 500) {
      const portion = fields.slice(from, from + 500);
      const texts = await this.#store.redis.hmget(key, ...portion);
      for (const [index, text] of texts.entries()) if (text !== null) found.set(portion[index] ?? "", text);
    }
    return found;
  }

  /** Saves changes and passes events, in one step. Answers false, and changes nothing, when the lease is another's. */
  async save(
    owner: string,
    portion: Pick<TellingPortion, "cursor" | "passed">,
    changes: TellingChanges,
  ): Promise<boolean> {
    const parts = ["policies", "services", "held", "heartbeats"] as const;
    const triples = parts.flatMap((part) =>
      [...changes[part]].flatMap(([field, text]) => [keyNumbers[part], field, text ?? ""]),
    );
    const keys = [this.#lease, this.#state, tellingStreamKey(this.#store), ...parts.map((part) => this.#part(part))];
    return (await saveScript(this.#store, keys, [owner, portion.cursor, portion.passed, ...triples])) === 1;
  }

  /** Corrects the count of what was handled, so that what is known as lost is not counted again. */
  async noteLost(count: number): Promise<void> {
    await this.#store.redis.hincrby(this.#state, "handled", count);
  }

  /** Takes a heartbeat out that was sent or given up, unless a newer one is due. */
  async sent(policy: string, text: string): Promise<void> {
    await sentScript(this.#store, [this.#part("heartbeats")], [policy, text]);
  }

  async #all(key: string): Promise<Map<string, string>> {
    const found = new Map<string, string>();
    let cursor = "0";
    do {
      const [next, pairs] = await this.#store.redis.hscan(key, cursor, "COUNT", 1_000);
      for (let index = 0; index + 1 < pairs.length; index += 2) found.set(pairs[index] ?? "", pairs[index + 1] ?? "");
      cursor = next;
    } while (cursor !== "0" && found.size < 20_000);
    return found;
  }

  #part(part: TellingPart): string {
    return this.#store.key("telling", part);
  }

  get #lease(): string {
    return this.#store.key("telling", "lease");
  }

  get #state(): string {
    return this.#store.key("telling", "state");
  }
}

function readEvents(pairs: readonly (readonly [string, string[]])[], nowMs: number): Omit<TellingPortion, "lost"> {
  const events: TellingEvent[] = [];
  let [cursor, passed, unreadable] = ["", 0, 0];
  for (const [id, fields] of pairs) {
    try {
      events.push(...toEvent(id, fields));
    } catch (error) {
      const isLeft = nowMs - Number(id.split("-")[0]) < leftToNewerMs;
      if (isLeft && passed === 0) throw error;
      if (isLeft) break;
      unreadable += 1;
    }
    cursor = id;
    passed += 1;
  }
  return { events, cursor, passed, unreadable };
}

function toEvent(id: string, flat: readonly string[]): TellingEvent[] {
  const fields = new Map<string, string>();
  for (let index = 0; index + 1 < flat.length; index += 2) fields.set(flat[index] ?? "", flat[index + 1] ?? "");
  const outcome = fields.get("o");
  if (outcome !== undefined) return [{ id, kind: "outcome", outcome: parseOutcome(JSON.parse(outcome)) }];
  const slotMs = Number(fields.get("s"));
  const record: unknown = JSON.parse(fields.get("r") ?? "null");
  const read = isJsonObject(record) ? readSlotRecord({ ...record, slotMs }) : undefined;
  if (read === undefined) return [];
  return [{ id, kind: "slot-missed", policy: fields.get("p") ?? "", slotMs, detail: read.detail }];
}
