// The feed book: what has been seen of each followed list, and who waits for more. Written by the one reader of a feed
// (feeds/walk-feed.ts), read by every task that follows it. Items are kept as facts, not as the service sent them.
import { type Feed, feedId, type ItemFacts } from "../tasks/feed.ts";
import { type Census, readCensus } from "./feed-census.ts";
import { feedStatusKey, feedWaitersKey } from "./feed-keys.ts";
import { FeedMirror, readChanges } from "./feed-mirror.ts";
import { endScript, failScript, nextGenerationScript, toldScript, waitScript } from "./feed-scripts.ts";
import { dropGeneration, type KnownPlace, type Novelty, takeInItems } from "./known-items.ts";
import type { Store } from "./redis.ts";
import type { SeenItem } from "./seen-item.ts";
import { entryKey } from "./start-entry.ts";

/** A page as the reader takes it in; `sinceSeq`: what was discovered later counts as found by this walk. */
export interface FeedPage {
  readonly items: readonly ItemFacts[];
  readonly sinceSeq: number;
  /** Takes nothing in, and answers undefined, when the first item is not known or there is none. */
  readonly mustKnowFirst?: boolean;
}

/**
 * A walk that is over: when it began, how many items the list has, whether it saw all of them, and what it counted where it did. `sinceMs`:
 * since when all was read, earlier than its beginning where it went on from a page.
 */
export interface EndedWalk {
  readonly startedAtMs: number;
  readonly sinceMs?: number;
  readonly count: number;
  readonly whole: boolean;
  readonly census?: ReadonlyMap<string, number> | undefined;
}

/** How far a feed has been read. Instants are milliseconds UTC by Redis; undefined: not yet. */
export interface FeedStatus {
  /** The newest number given to a discovery or change. */
  readonly seq: number;
  /** Up to which number everything discovered was logged; undefined: as far as it goes. */
  readonly toldSeq?: number | undefined;
  /** The newest number that a version gave which notes `toldSeq`; behind `seq` where an older version has read the feed since. */
  readonly takenSeq?: number | undefined;
  /** The generation of seen items (known-items.ts). */
  readonly generation: number;
  /** What is known of the list's order, as JSON of feeds/; undefined: nothing. */
  readonly knowledge: string | undefined;
  /** Names and types of its fields, as JSON of feeds/; undefined: nothing was read yet. */
  readonly shape: string | undefined;
  /** How many items the list had at the last walk. */
  readonly count: number;
  readonly walks: number;
  /** Since when all was read that the last walk that reached its end says of the list, and when it ended. */
  readonly walkStartedAtMs: number | undefined;
  readonly walkEndedAtMs: number | undefined;
  /** How long it took, without the part of a walk that it went on with; absent where a version ended it that does not note this. */
  readonly walkTookMs?: number | undefined;
  /** Since when all was read that the last walk of the whole list says; and since when somebody wants all of it read, who must know what is not there. */
  readonly wholeSinceMs?: number | undefined;
  readonly wholeWantedAtMs?: number | undefined;
  /** When a walk last found something new or changed. */
  readonly grewAtMs: number | undefined;
  /** When somebody last began to wait. */
  readonly wantedAtMs: number | undefined;
  /** Since when walks fail, when the last one did, and why; undefined while they work. */
  readonly failingSinceMs: number | undefined;
  readonly failedAtMs?: number | undefined;
  readonly failure: string | undefined;
}

/** Of so many items of one feed the facts are kept, the latest new or changed ones; about 300 bytes each. Of all others, only that they were seen. */
const factsMax = 100_000;
/** Feeds whose items this process remembers as well; beyond it the one that nobody asked for longest is read anew. */
const mirrorsMax = 100;
/** How long a feed that nobody reads is remembered; and how long a generation of seen items lasts at least. */
const forgetAfterMs = 7 * 86_400_000;
/** Whole walks that a generation of seen items lasts at least. */
const wholeWalksMin = 3;

/** The feed book in Redis. */
export class FeedBook {
  readonly #store: Store;
  readonly #mirrors = new Map<string, FeedMirror>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Takes in one page of a walk; answers what was known of each item. Taking it in twice changes nothing. */
  async takeIn(feed: Feed, status: Pick<FeedStatus, "generation">, page: FeedPage): Promise<Novelty[] | undefined> {
    const { items, sinceSeq, mustKnowFirst = false } = page;
    const how = { sinceSeq, mustKnowFirst, factsMax, keepForMs: forgetAfterMs };
    return takeInItems(this.#store, this.#place(feed, status.generation), items, how);
  }

  /** Notes that a walk is over. After a whole walk a week after the last time, the seen items begin a new generation. */
  async walked(feed: Feed, walk: EndedWalk): Promise<void> {
    const counted = [...(walk.census ?? [])].flat();
    const { startedAtMs, sinceMs = startedAtMs, count, whole } = walk;
    const args = [sinceMs, count, forgetAfterMs, whole ? 1 : 0, wholeWalksMin, startedAtMs, ...counted];
    const isOld = (await endScript(this.#store, [...this.#keys(feed), this.#census(feed)], args)) === 1;
    if (!isOld || !walk.whole) return;
    const { generation } = await this.status(feed);
    await dropGeneration(this.#store, this.#place(feed, generation), generation - 1);
    await nextGenerationScript(this.#store, this.#keys(feed).slice(0, 1), []);
  }

  /** What the last walk that saw the whole list and counted found for these fields (feeds/census.ts). */
  async census(feed: Feed, fields: readonly string[]): Promise<Census | undefined> {
    return readCensus(this.#store, this.#census(feed), fields);
  }

  /** Keeps what is known of the list's order. */
  async keepKnowledge(feed: Feed, knowledge: string): Promise<void> {
    const [statusKey = ""] = this.#keys(feed);
    await this.#store.redis.hset(statusKey, "knowledge", knowledge);
  }

  /** Keeps the names and types of the list's fields. */
  async keepShape(feed: Feed, shape: string): Promise<void> {
    const [statusKey = ""] = this.#keys(feed);
    await this.#store.redis.hset(statusKey, "shape", shape);
  }

  /** Notes that a walk failed. */
  async failed(feed: Feed, failure: string): Promise<void> {
    await failScript(this.#store, this.#keys(feed), [failure.slice(0, 500), forgetAfterMs]);
  }

  /** Notes that whatever was discovered so far has been logged; the end of a walk does so, too. */
  async told(feed: Feed): Promise<void> {
    await toldScript(this.#store, this.#keys(feed).slice(0, 1), []);
  }

  /** How far the feed has been read. */
  async status(feed: Feed): Promise<FeedStatus> {
    const [statusKey = ""] = this.#keys(feed);
    const fields = await this.#store.redis.hgetall(statusKey);
    const instant = (name: string) => (fields[name] === undefined ? undefined : Number(fields[name]));
    return {
      seq: Number(fields["seq"] ?? 0),
      toldSeq: instant("toldSeq"),
      takenSeq: instant("takenSeq"),
      generation: Number(fields["generation"] ?? 0),
      knowledge: fields["knowledge"],
      shape: fields["shape"],
      count: Number(fields["count"] ?? 0),
      walks: Number(fields["walks"] ?? 0),
      walkStartedAtMs: instant("walkStartedAtMs"),
      walkEndedAtMs: instant("walkEndedAtMs"),
      walkTookMs: instant("walkTookMs"),
      wholeSinceMs: instant("wholeSinceMs"),
      wholeWantedAtMs: instant("wholeWantedAtMs"),
      grewAtMs: instant("grewAtMs"),
      wantedAtMs: instant("wantedAtMs"),
      failingSinceMs: instant("failingSinceMs"),
      failedAtMs: instant("failedAtMs"),
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

  /** The items that were discovered or changed after this number, in that order; at most so many, the earliest. Only those whose facts are kept. */
  async changedSince(feed: Feed, seq: number, most: number): Promise<SeenItem[]> {
    const { redis } = this.#store;
    const [, items = "", order = ""] = this.#keys(feed);
    const found: SeenItem[] = [];
    for (let from = seq; found.length < most; ) {
      const portion = await readChanges(
        redis,
        { items, order },
        { seq: from, most: Math.min(most - found.length, 1_000) },
      );
      found.push(...portion);
      const last = portion.at(-1);
      if (last === undefined) break;
      from = last.seq;
    }
    return found;
  }

  /**
   * Says that this task waits for the feed until then; the reader goes on while any does. Nothing is said for a task whose start is over:
   * whoever was held up while somebody else ended it would keep the reader awake for nobody.
   */
  async waitFor(feed: Feed, taskId: string, { nowMs, untilMs }: { nowMs: number; untilMs: number }): Promise<void> {
    const [statusKey = ""] = this.#keys(feed);
    const keys = [feedWaitersKey(this.#store, feed), statusKey, entryKey(this.#store, taskId)];
    await waitScript(this.#store, keys, [taskId, untilMs, nowMs]);
  }

  /** Says that the whole list is to be read, by a walk that begins no earlier than this instant. */
  async wantWhole(feed: Feed, sinceMs: number): Promise<void> {
    await this.#store.redis.hset(feedStatusKey(this.#store, feed), "wholeWantedAtMs", sinceMs);
  }

  /** Says that this waiter has what it wanted. */
  async leave(feed: Feed, waiter: string): Promise<void> {
    await this.#store.redis.zrem(feedWaitersKey(this.#store, feed), waiter);
  }

  /** How many wait at this instant. Those whose time has passed are dropped. */
  async waiting(feed: Feed, nowMs: number): Promise<number> {
    const { redis } = this.#store;
    await redis.zremrangebyscore(feedWaitersKey(this.#store, feed), "-inf", `(${nowMs}`);
    return redis.zcard(feedWaitersKey(this.#store, feed));
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
    return [feedStatusKey(this.#store, feed), this.#store.key("feed-items", id), this.#store.key("feed-order", id)];
  }

  #place(feed: Feed, generation: number): KnownPlace {
    const id = feedId(feed);
    const bucket = (of: number, number: number) => this.#store.key("feed-seen", id, String(of), number.toString(36));
    return { keys: this.#keys(feed), generation, bucket };
  }

  #census(feed: Feed): string {
    return this.#store.key("feed-census", feedId(feed));
  }
}
