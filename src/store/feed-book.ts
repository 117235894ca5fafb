// The feed book: what has been seen of each followed list, and who waits for more. Written by the one reader of a feed
// (feeds/walk-feed.ts), read by every task that follows it. Items are kept as facts, not as the service sent them.
import * as z from "zod";
import { type Feed, feedId } from "../tasks/feed.ts";
import { createScript, type Store } from "./redis.ts";

/** What is kept of one item. Texts are what the mapping made of it; `fingerprint` changes when any field changes. */
export interface ItemFacts {
  readonly id: string;
  readonly fingerprint: string;
  readonly syncJobId: string | undefined;
  readonly finished: boolean | undefined;
  readonly succeeded: boolean | undefined;
  readonly label: string | undefined;
}

/** An item's facts and where it stands in the order of discovery: `firstSeq` never changes, `seq` grows with each change. */
export interface SeenItem extends ItemFacts {
  readonly firstSeq: number;
  readonly seq: number;
}

/** How far a feed has been read. Instants are milliseconds UTC by Redis; undefined: not yet. */
export interface FeedStatus {
  /** The newest number given to a discovery or change. */
  readonly seq: number;
  /** How many items the last complete walk saw. */
  readonly count: number;
  readonly walks: number;
  /** When the last complete walk began and ended. */
  readonly walkStartedAtMs: number | undefined;
  readonly walkEndedAtMs: number | undefined;
  /** When a walk last found something new or changed. */
  readonly grewAtMs: number | undefined;
  /** When somebody last began to wait. */
  readonly wantedAtMs: number | undefined;
  /** Since when walks fail, and why; undefined while they work. */
  readonly failingSinceMs: number | undefined;
  readonly failure: string | undefined;
  /** Where a walk stopped that must go on later; absent: none did. */
  readonly parked?: ParkedWalk | undefined;
}

const parkedSchema = z.object({ from: z.string(), count: z.int(), fresh: z.int(), startedAtMs: z.int() });

/** A walk that stopped between two pages: the link it goes on at, the items so far, how many of them were new, and when it began. */
export type ParkedWalk = Readonly<z.infer<typeof parkedSchema>>;

/** How many items of one feed are remembered; the longest unchanged are forgotten first. About 300 bytes each. */
const feedItemsMax = 100_000;
const forgetAfterMs = 7 * 86_400_000;

const now = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

const pageScript = createScript(`${now}
local fresh = {}
for i = 2, #ARGV, 3 do
  local known = redis.call('HGET', KEYS[2], ARGV[i])
  local firstSeq
  if known then
    local at = string.find(known, ' ', 1, true)
    local at2 = string.find(known, ' ', at + 1, true)
    firstSeq = string.sub(known, 1, at - 1)
    known = string.sub(known, at + 1, at2 - 1)
  end
  if known ~= ARGV[i + 1] then
    local seq = redis.call('HINCRBY', KEYS[1], 'seq', 1)
    if not firstSeq then firstSeq = seq fresh[#fresh + 1] = ARGV[i] end
    redis.call('HSET', KEYS[2], ARGV[i], firstSeq .. ' ' .. ARGV[i + 1] .. ' ' .. ARGV[i + 2])
    redis.call('ZADD', KEYS[3], seq, ARGV[i])
    redis.call('HSET', KEYS[1], 'grewAtMs', now)
  end
end
local extra = redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[1])
if extra > 0 then
  local old = redis.call('ZPOPMIN', KEYS[3], extra)
  for i = 1, #old, 2 do redis.call('HDEL', KEYS[2], old[i]) end
end
return fresh`);

const endScript = createScript(`${now}
redis.call('HSET', KEYS[1], 'count', ARGV[2], 'walkStartedAtMs', ARGV[1], 'walkEndedAtMs', now)
redis.call('HINCRBY', KEYS[1], 'walks', 1)
redis.call('HDEL', KEYS[1], 'failingSinceMs', 'failure', 'parked')
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[3]) end
return 1`);

const failScript = createScript(`${now}
redis.call('HSETNX', KEYS[1], 'failingSinceMs', now)
redis.call('HSET', KEYS[1], 'failure', ARGV[1])
redis.call('HDEL', KEYS[1], 'parked')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`);

/** The feed book in Redis. */
export class FeedBook {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Takes in one page of a walk; answers the ids that were never seen before. Taking it in twice changes nothing. */
  async takeIn(feed: Feed, items: readonly ItemFacts[]): Promise<string[]> {
    const args = items.flatMap(({ id, fingerprint, ...facts }) => [id, fingerprint, JSON.stringify(facts)]);
    const fresh = await pageScript(this.#store, this.#keys(feed), [feedItemsMax, ...args]);
    return Array.isArray(fresh) ? fresh.map(String) : [];
  }

  /** Notes that a whole walk, begun at this instant, saw this many items. */
  async walked(feed: Feed, walk: { readonly startedAtMs: number; readonly count: number }): Promise<void> {
    await endScript(this.#store, this.#keys(feed), [walk.startedAtMs, walk.count, forgetAfterMs]);
  }

  /** Notes that a walk failed. */
  async failed(feed: Feed, failure: string): Promise<void> {
    await failScript(this.#store, this.#keys(feed), [failure.slice(0, 500), forgetAfterMs]);
  }

  /** Notes where a walk stopped, so that it goes on there. A walk that ends or fails takes the note away. */
  async park(feed: Feed, walk: ParkedWalk): Promise<void> {
    const [statusKey = ""] = this.#keys(feed);
    await this.#store.redis.hset(statusKey, "parked", JSON.stringify(walk));
  }

  /** How far the feed has been read. */
  async status(feed: Feed): Promise<FeedStatus> {
    const [statusKey = ""] = this.#keys(feed);
    const fields = await this.#store.redis.hgetall(statusKey);
    const instant = (name: string) => (fields[name] === undefined ? undefined : Number(fields[name]));
    return {
      seq: Number(fields["seq"] ?? 0),
      count: Number(fields["count"] ?? 0),
      walks: Number(fields["walks"] ?? 0),
      walkStartedAtMs: instant("walkStartedAtMs"),
      walkEndedAtMs: instant("walkEndedAtMs"),
      grewAtMs: instant("grewAtMs"),
      wantedAtMs: instant("wantedAtMs"),
      failingSinceMs: instant("failingSinceMs"),
      failure: fields["failure"],
      parked: fields["parked"] === undefined ? undefined : parkedSchema.safeParse(JSON.parse(fields["parked"])).data,
    };
  }

  /** The items discovered after this number, in their newest form; at most 10,000. */
  async discoveredSince(feed: Feed, seq: number): Promise<SeenItem[]> {
    const { redis } = this.#store;
    const [, itemsKey = "", orderKey = ""] = this.#keys(feed);
    const changed = await redis.zrange(orderKey, `(${seq}`, "+inf", "BYSCORE", "LIMIT", 0, 10_000, "WITHSCORES");
    const ids = changed.filter((_, index) => index % 2 === 0);
    if (ids.length === 0) return [];
    const texts = await redis.hmget(itemsKey, ...ids);
    return texts
      .map((text, index) => toSeenItem(ids[index] ?? "", Number(changed[index * 2 + 1]), text ?? ""))
      .filter((item) => item.firstSeq > seq);
  }

  /** Says that somebody waits for this feed until then; the reader goes on while anybody does. */
  async waitFor(feed: Feed, waiter: string, { nowMs, untilMs }: { nowMs: number; untilMs: number }): Promise<void> {
    const { redis } = this.#store;
    const [statusKey = ""] = this.#keys(feed);
    if ((await redis.zadd(this.#waiters(feed), untilMs, waiter)) > 0) await redis.hset(statusKey, "wantedAtMs", nowMs);
  }

  /** Says that this waiter has what it wanted. */
  async leave(feed: Feed, waiter: string): Promise<void> {
    await this.#store.redis.zrem(this.#waiters(feed), waiter);
  }

  /** How many wait at this instant. Those whose time has passed are dropped. */
  async waiting(feed: Feed, nowMs: number): Promise<number> {
    const { redis } = this.#store;
    await redis.zremrangebyscore(this.#waiters(feed), "-inf", `(${nowMs}`);
    return redis.zcard(this.#waiters(feed));
  }

  #keys(feed: Feed): string[] {
    const id = feedId(feed);
    return [this.#store.key("feed", id), this.#store.key("feed-items", id), this.#store.key("feed-order", id)];
  }

  #waiters(feed: Feed): string {
    return this.#store.key("feed-waiters", feedId(feed));
  }
}

function toSeenItem(id: string, seq: number, text: string): SeenItem {
  const [first = "0", fingerprint = ""] = text.split(" ", 2);
  const facts = JSON.parse(text.slice(first.length + fingerprint.length + 2) || "{}");
  return {
    syncJobId: undefined,
    finished: undefined,
    succeeded: undefined,
    label: undefined,
    ...facts,
    id,
    fingerprint,
    seq,
    firstSeq: Number(first),
  };
}
