// The feed book: what has been seen of each followed list, and who waits for more. Written by the one reader of a feed
// (feeds/walk-feed.ts), read by every task that follows it. Items are kept as facts, not as the service sent them.
import { type Feed, feedId } from "../tasks/feed.ts";
import { FeedMirror } from "./feed-mirror.ts";
import { createScript, type Store } from "./redis.ts";
import type { ItemFacts, SeenItem } from "./seen-item.ts";

export type { ItemFacts, SeenItem } from "./seen-item.ts";

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
}

/** How many items of one feed are remembered; the longest unchanged are forgotten first. About 300 bytes each. */
const feedItemsMax = 100_000;
/** Feeds whose items this process remembers as well; beyond it the one that nobody asked for longest is read anew. */
const mirrorsMax = 100;
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
redis.call('HDEL', KEYS[1], 'failingSinceMs', 'failure')
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[3]) end
return 1`);

const failScript = createScript(`${now}
redis.call('HSETNX', KEYS[1], 'failingSinceMs', now)
redis.call('HSET', KEYS[1], 'failure', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`);

/** The feed book in Redis. */
export class FeedBook {
  readonly #store: Store;
  readonly #mirrors = new Map<string, FeedMirror>();

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
    };
  }

  /** The items discovered after this number, in their newest form, in the order of discovery. */
  async discoveredSince(feed: Feed, seq: number): Promise<SeenItem[]> {
    const mirror = this.#mirror(feed, seq);
    const items = await mirror.since(seq);
    if (items !== undefined) return items;
    // A new one knows nothing that could be wrong.
    if (this.#mirrors.get(feedId(feed)) === mirror) this.#mirrors.delete(feedId(feed));
    return (await this.#mirror(feed, seq).since(seq)) ?? [];
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

  /** The mirror that goes back far enough. Those that nobody asked for a while are those that stand first. */
  #mirror(feed: Feed, seq: number): FeedMirror {
    const id = feedId(feed);
    const known = this.#mirrors.get(id);
    const [, items = "", order = ""] = this.#keys(feed);
    const mirror =
      known !== undefined && known.floor <= seq ? known : new FeedMirror(this.#store, { items, order }, seq);
    this.#mirrors.delete(id);
    this.#mirrors.set(id, mirror);
    const [oldest] = this.#mirrors.keys();
    if (this.#mirrors.size > mirrorsMax && oldest !== undefined) this.#mirrors.delete(oldest);
    return mirror;
  }

  #keys(feed: Feed): string[] {
    const id = feedId(feed);
    return [this.#store.key("feed", id), this.#store.key("feed-items", id), this.#store.key("feed-order", id)];
  }

  #waiters(feed: Feed): string {
    return this.#store.key("feed-waiters", feedId(feed));
  }
}
