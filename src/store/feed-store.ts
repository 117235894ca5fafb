// The feed store: the items seen of each followed list, as facts, and the tasks that wait for more.
// One reader writes it (feeds/walk-feed.ts). Its keys, of one feed each:
//
//   feed          hash         FeedStatus: seq, generation, knowledge, walks, failures; rewrites
//   feed-items    hash         id → FIRST_SEQ STAMP@SEEN_AT FACTS, of the newest 100,000
//   feed-order    sorted set   id by the number of its last change
//   feed-seen     4,096 hashes a generation of a history: part of an id's digest → FIRST_SEQ STAMP
//   feed-totals   hash         at, seq, `:FIELD` → items that the last whole walk counted,
//                              `~FIELD` → the first of the whole walks in a row that found some
//   feed-waiters  sorted set   task id by the instant until which it waits
import { costlyReasons, type Feed, feedId, type ItemFacts, type WholeReason } from "../model/feed.ts";
import { FeedMirror, readChanges, readNewest, type SeenItem } from "./feed-mirror.ts";
import { dropGeneration, type KnownPlace, type Novelty, takeInItems } from "./known-items.ts";
import { redisTimeMs, type Store } from "./redis.ts";
import { asFlag, asNothing, batchesOf, createScript, readFields } from "./script.ts";
import { entryKey } from "./start-entry.ts";

const beginAnewScript = createScript("feed/begin-anew", asNothing);
const markLoggedScript = createScript("feed/mark-logged", asNothing);
const endWalkScript = createScript("feed/end-walk", asFlag);
const nextGenerationScript = createScript("feed/next-generation", asNothing);
const failWalkScript = createScript("feed/fail-walk", asNothing);
const waitScript = createScript("feed/wait", asNothing);

/** A page of a walk. Items discovered after `sinceSeq` count as found by this walk. */
export interface FeedPage {
  readonly items: readonly ItemFacts[];
  readonly sinceSeq: number;
  /** Take nothing in, and answer undefined, unless the page's first item is known. */
  readonly mustKnowFirst?: boolean;
  /** What the reader has learned, kept with the page. */
  readonly knowledge?: string | undefined;
}

/**
 * An ended walk. `whole`: it read the whole list, `because` of this. `sinceMs`: earlier than
 * `startedAtMs` where it resumed from a page. `isGiven`: a poll had read its pages. `totals`: null
 * where the list cannot be counted: earlier ones are forgotten.
 */
export interface WalkSummary {
  readonly startedAtMs: number;
  readonly sinceMs?: number;
  readonly count: number;
  readonly whole: boolean;
  readonly because?: WholeReason | undefined;
  readonly isGiven?: boolean;
  readonly totals?: ReadonlyMap<string, number> | null | undefined;
}

/** How far a feed is read. Instants are milliseconds UTC by Redis; undefined: not yet. */
export interface FeedStatus {
  /** The latest sequence number of a discovery or change. */
  readonly seq: number;
  /** Everything discovered up to this number is in the log; undefined: no limit is known. */
  readonly loggedSeq?: number | undefined;
  /** When its history began; undefined: it has none. Numbers below `beganSeq` are of another. */
  readonly beganAtMs?: number | undefined;
  readonly beganSeq?: number | undefined;
  /** The expression that gives an item's id in this history; empty: its content is its id. */
  readonly keyedBy?: string | undefined;
  /** The generation of seen items (known-items.ts). */
  readonly generation: number;
  /** What the reader learned about the list's order, as JSON of feeds/; undefined: nothing. */
  readonly knowledge: string | undefined;
  /** Names and types of the list's fields, as JSON of feeds/; undefined before the first walk. */
  readonly shape: string | undefined;
  /** What last changed in them, and when. */
  readonly shapeChange?: string | undefined;
  readonly shapeChangedAtMs?: number | undefined;
  /** How many items the list had at the last walk. */
  readonly count: number;
  readonly walks: number;
  /** When the last complete walk began (a resumed one: with its first page), and when it ended. */
  readonly walkBeganAtMs: number | undefined;
  readonly walkEndedAtMs: number | undefined;
  /** How long that walk took, without the part that it resumed. */
  readonly walkTookMs?: number | undefined;
  /** The same of the last walk that read the service itself, not the pages of a poll. */
  readonly ownWalkEndedAtMs?: number | undefined;
  readonly ownWalkTookMs?: number | undefined;
  /** When the last walk of the whole list began, and from when on a task asked for one. */
  readonly wholeWalkBeganAtMs?: number | undefined;
  readonly wholeWantedAtMs?: number | undefined;
  /** Walks in a row that cost more than needed, since when, and why the last one did. */
  readonly costlyWalks?: number | undefined;
  readonly costlySinceMs?: number | undefined;
  readonly costlyReason?: string | undefined;
  /** When a walk last found something new or changed. */
  readonly grewAtMs: number | undefined;
  /** When a task last began to wait. */
  readonly wantedAtMs: number | undefined;
  /** Since when walks fail, when the last one failed, and why; undefined while they work. */
  readonly failingSinceMs: number | undefined;
  readonly failedAtMs?: number | undefined;
  readonly failure: string | undefined;
  /** Since when walks fail or are denied without a long pause, and when the next one is due. */
  readonly unreadSinceMs?: number | undefined;
  readonly unreadUntilMs?: number | undefined;
}

/** A walk that could not read its list: when it began, and how long until the next one. */
interface UnreadWalk {
  readonly beganAtMs: number;
  readonly waitMs: number;
}

/** The history and the generation of seen items. */
type FeedAge = Pick<FeedStatus, "beganAtMs" | "generation">;

/** Items whose facts Redis holds, about 300 bytes each; of others, only that they were seen. */
const factsMax = 100_000;
/** Feeds mirrored in this process; with more, it drops the one unused for longest. */
const mirrorsMax = 100;
/** A list that was not read whole for this long is forgotten; a monthly policy comes sooner. */
export const forgetAfterMs = 40 * 86_400_000;
/** A generation of seen items lasts at least this long, and so many whole walks. */
const generationMs = 7 * 86_400_000;
const wholeWalksMin = 3;

/** Costly walks in a row that count as a fault of the list. */
export const costlyWalksMin = 3;

/** The feeds in Redis. */
export class FeedStore {
  readonly #store: Store;
  readonly #mirrors = new Map<string, FeedMirror>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Begins a new history of a list: nothing of it was seen. `keyedBy` gives its items' ids. */
  async beginAnew(feed: Feed, before: FeedAge, keyedBy: string): Promise<void> {
    await beginAnewScript(this.#store, [...this.#keys(feed), this.#totals(feed)], [keyedBy, forgetAfterMs]);
    if (before.beganAtMs === undefined) return;
    for (const generation of [before.generation, before.generation - 1])
      await dropGeneration(this.#store, this.#place(feed, before), generation);
  }

  /** Takes in one page of a walk; answers whether each item was known. Idempotent. */
  async takeIn(feed: Feed, status: FeedAge, page: FeedPage): Promise<Novelty[] | undefined> {
    const { items, sinceSeq, mustKnowFirst = false, knowledge = "" } = page;
    const how = { sinceSeq, mustKnowFirst, knowledge, factsMax, keepForMs: forgetAfterMs };
    return takeInItems(this.#store, this.#place(feed, status), items, how);
  }

  /** Ends a walk. After a whole one, a generation that has lasted a week gives way to a new one. */
  async endWalk(feed: Feed, walk: WalkSummary): Promise<void> {
    const counted = walk.totals === null ? [""] : [...(walk.totals ?? [])].flat();
    const { startedAtMs, sinceMs = startedAtMs, count, whole, isGiven = false } = walk;
    const args = [
      sinceMs,
      count,
      forgetAfterMs,
      whole ? 1 : 0,
      wholeWalksMin,
      generationMs,
      startedAtMs,
      ...costOf(walk),
      isGiven ? 1 : 0,
      ...counted,
    ];
    const isOld = await endWalkScript(this.#store, [...this.#keys(feed), this.#totals(feed)], args);
    if (!isOld || !walk.whole) return;
    const status = await this.status(feed);
    await dropGeneration(this.#store, this.#place(feed, status), status.generation - 1);
    await nextGenerationScript(this.#store, this.#keys(feed).slice(0, 1));
  }

  /** Returns the list totals of the last whole walk that counted these fields. */
  async totals(feed: Feed, fields: readonly string[]): Promise<ListTotals | undefined> {
    return readTotals(this.#store, this.#totals(feed), fields);
  }

  /** When a whole walk last counted each of these lists; undefined: none has. */
  async countedAt(feeds: readonly Feed[]): Promise<readonly (number | undefined)[]> {
    const keys = feeds.map((feed) => this.#totals(feed));
    return (await readFields(this.#store, keys, ["at"])).map(([at]) => (at === undefined ? undefined : Number(at)));
  }

  /** What a whole walk last counted in each of these lists; 0: nothing, or none has counted. */
  async lastCounts(feeds: readonly Feed[], field: string): Promise<readonly number[]> {
    const keys = feeds.map((feed) => this.#totals(feed));
    return (await readFields(this.#store, keys, [`:${field}`])).map(([count = 0]) => Number(count));
  }

  /** Returns all totals of the last whole walk that counted; undefined: none has. */
  async allTotals(feed: Feed): Promise<AllTotals | undefined> {
    const { at, ...fields } = await this.#store.redis.hgetall(this.#totals(feed));
    if (at === undefined) return undefined;
    const numbers = (mark: string) =>
      new Map(
        Object.entries(fields).flatMap(([field, value]) =>
          field.startsWith(mark) ? [[field.slice(1), Number(value)] as const] : [],
        ),
      );
    return { atMs: Number(at), counts: numbers(":"), sinceMs: numbers("~") };
  }

  /** Keeps what the reader learned about the list's order. */
  async keepKnowledge(feed: Feed, knowledge: string): Promise<void> {
    const [statusKey = ""] = this.#keys(feed);
    await this.#store.redis.hset(statusKey, "knowledge", knowledge);
  }

  /** Keeps the names and types of the list's fields, and what changed in them; empty: nothing. */
  async keepShape(feed: Feed, shape: string, change: string): Promise<void> {
    const [statusKey = ""] = this.#keys(feed);
    const atMs = change === "" ? 0 : await redisTimeMs(this.#store);
    const noted = change === "" ? {} : { shapeChange: change, shapeChangedAtMs: atMs };
    await this.#store.redis.hset(statusKey, { shape, ...noted });
  }

  /** Notes that a walk failed. */
  async failWalk(feed: Feed, failure: string, walk: UnreadWalk): Promise<void> {
    await this.#noteUnread(feed, failure.slice(0, 500), walk);
  }

  /** Notes that the limiter denied a walk since the service is down: a failing list stays so. */
  async denyWalk(feed: Feed, walk: UnreadWalk): Promise<void> {
    await this.#noteUnread(feed, "", walk);
  }

  async #noteUnread(feed: Feed, failure: string, { beganAtMs, waitMs }: UnreadWalk): Promise<void> {
    await failWalkScript(this.#store, this.#keys(feed).slice(0, 1), [failure, forgetAfterMs, beganAtMs, waitMs]);
  }

  /** Notes that everything discovered so far is in the log. */
  async markLogged(feed: Feed): Promise<void> {
    await markLoggedScript(this.#store, this.#keys(feed).slice(0, 1));
  }

  /** Those of these lists that cannot be read, or are read whole again and again. */
  async troubled(feeds: readonly Feed[]): Promise<readonly Feed[]> {
    const keys = feeds.map((feed) => feedStatusKey(this.#store, feed));
    const found = await readFields(this.#store, keys, ["failingSinceMs", "costlyWalks"]);
    return feeds.filter((_, index) => {
      const [failing, costlyWalks = 0] = found[index] ?? [];
      return failing !== undefined || Number(costlyWalks) >= costlyWalksMin;
    });
  }

  /** Reads the status of a feed. */
  async status(feed: Feed): Promise<FeedStatus> {
    const [statusKey = ""] = this.#keys(feed);
    const fields = await this.#store.redis.hgetall(statusKey);
    const instant = (name: string) => (fields[name] === undefined ? undefined : Number(fields[name]));
    return {
      seq: Number(fields["seq"] ?? 0),
      loggedSeq: instant("loggedSeq"),
      beganAtMs: instant("beganAtMs"),
      beganSeq: instant("beganSeq"),
      keyedBy: fields["keyedBy"],
      generation: Number(fields["generation"] ?? 0),
      knowledge: fields["knowledge"],
      shape: fields["shape"],
      shapeChange: fields["shapeChange"],
      shapeChangedAtMs: instant("shapeChangedAtMs"),
      count: Number(fields["count"] ?? 0),
      walks: Number(fields["walks"] ?? 0),
      walkBeganAtMs: instant("walkBeganAtMs"),
      walkEndedAtMs: instant("walkEndedAtMs"),
      walkTookMs: instant("walkTookMs"),
      ownWalkEndedAtMs: instant("ownWalkEndedAtMs"),
      ownWalkTookMs: instant("ownWalkTookMs"),
      wholeWalkBeganAtMs: instant("wholeWalkBeganAtMs"),
      wholeWantedAtMs: instant("wholeWantedAtMs"),
      costlyWalks: instant("costlyWalks"),
      costlySinceMs: instant("costlySinceMs"),
      costlyReason: fields["costlyReason"],
      grewAtMs: instant("grewAtMs"),
      wantedAtMs: instant("wantedAtMs"),
      failingSinceMs: instant("failingSinceMs"),
      failedAtMs: instant("failedAtMs"),
      failure: fields["failure"],
      unreadSinceMs: instant("unreadSinceMs"),
      unreadUntilMs: instant("unreadUntilMs"),
    };
  }

  /** Returns the items discovered after this number, in the order of discovery. */
  async discoveredSince(feed: Feed, seq: number): Promise<SeenItem[]> {
    const mirror = this.#mirror(feed, seq);
    const items = await mirror.since(seq);
    if (items !== undefined) return items;
    // A new mirror starts from Redis, so it is never stale.
    if (this.#mirrors.get(feedId(feed)) === mirror) this.#mirrors.delete(feedId(feed));
    return (await this.#mirror(feed, seq).since(seq)) ?? [];
  }

  /** Returns the first `most` items with facts that changed after this number, in that order. */
  async changedSince(feed: Feed, seq: number, most: number): Promise<SeenItem[]> {
    const { redis } = this.#store;
    const [, items = "", order = ""] = this.#keys(feed);
    const found: SeenItem[] = [];
    for (let from = seq; found.length < most; ) {
      const range = { seq: from, most: Math.min(most - found.length, 1_000) };
      const batch = await readChanges(redis, { items, order }, range);
      found.push(...batch);
      const last = batch.at(-1);
      if (last === undefined) break;
      from = last.seq;
    }
    return found;
  }

  /** Returns the items with facts that changed last, the newest change first; at most `most`. */
  async newest(feed: Feed, most: number): Promise<SeenItem[]> {
    const [, items = "", order = ""] = this.#keys(feed);
    return readNewest(this.#store.redis, { items, order }, most);
  }

  /** Registers a task that waits for the feed until then, unless its start is settled. */
  async addWaiter(feed: Feed, taskId: string, { nowMs, untilMs }: { nowMs: number; untilMs: number }): Promise<void> {
    const [statusKey = ""] = this.#keys(feed);
    const keys = [feedWaitersKey(this.#store, feed), statusKey, entryKey(this.#store, taskId)];
    await waitScript(this.#store, keys, [taskId, untilMs, nowMs]);
  }

  /** Asks for a walk of the whole list that begins no earlier than this instant. */
  async wantWhole(feed: Feed, sinceMs: number): Promise<void> {
    await this.#store.redis.hset(feedStatusKey(this.#store, feed), "wholeWantedAtMs", sinceMs);
  }

  /** Removes a waiting task. */
  async leave(feed: Feed, waiter: string): Promise<void> {
    await this.#store.redis.zrem(feedWaitersKey(this.#store, feed), waiter);
  }

  /** Counts the tasks that wait at this instant, and drops those whose time has passed. */
  async waiting(feed: Feed, nowMs: number): Promise<number> {
    const { redis } = this.#store;
    await redis.zremrangebyscore(feedWaitersKey(this.#store, feed), "-inf", `(${nowMs}`);
    return redis.zcard(feedWaitersKey(this.#store, feed));
  }

  /**
   * Returns a mirror that goes back far enough; the map's first ones are the least recently used.
   */
  #mirror(feed: Feed, seq: number): FeedMirror {
    const id = feedId(feed);
    const known = this.#mirrors.get(id);
    const [status = "", items = "", order = ""] = this.#keys(feed);
    const mirror =
      known !== undefined && known.floor <= seq ? known : new FeedMirror(this.#store, { status, items, order }, seq);
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

  #place(feed: Feed, { beganAtMs = 0, generation }: FeedAge): KnownPlace {
    const id = feedId(feed);
    const bucket = (of: number, name: string) => this.#store.key("feed-seen", id, `${beganAtMs}-${of}`, name);
    return { keys: this.#keys(feed), generation, bucket };
  }

  #totals(feed: Feed): string {
    return this.#store.key("feed-totals", feedId(feed));
  }
}

/** The state of reading one list. */
export type FeedNote = FeedStatus & { readonly feed: Feed };

/** Returns the state of reading these lists, without those that were never read. */
export async function readFeedNotes(store: Store, feeds: readonly Feed[]): Promise<readonly FeedNote[]> {
  const feedStore = new FeedStore(store);
  const notes: FeedNote[] = [];
  for (const batch of batchesOf(feeds))
    notes.push(...(await Promise.all(batch.map(async (feed) => ({ ...(await feedStore.status(feed)), feed })))));
  return notes.filter(({ knowledge, failure }) => knowledge !== undefined || failure !== undefined);
}

/** Key of a feed's status; the fast path reads its field `seq`. */
export function feedStatusKey({ key }: Pick<Store, "key">, feed: Feed): string {
  return key("feed", feedId(feed));
}

/** Key of the tasks that wait for a feed; the step that writes an outcome removes its task. */
export function feedWaitersKey({ key }: Pick<Store, "key">, feed: Feed): string {
  return key("feed-waiters", feedId(feed));
}

/** The cost of a walk. A whole walk for another reason leaves the count of costly ones as it is. */
function costOf({ whole, because }: WalkSummary): [string, string] {
  if (!whole || because === "short") return ["cheap", ""];
  return because !== undefined && costlyReasons[because] !== undefined ? ["costly", because] : ["same", ""];
}

/** The list totals of one whole walk. */
interface ListTotals {
  /** When that walk began, milliseconds UTC by Redis. */
  readonly atMs: number;
  /** The feed's latest sequence number when that walk ended. */
  readonly seq: number;
  /** One count for each field asked for, in that order; 0 for an absent one. */
  readonly counts: readonly number[];
}

/** All totals of a list by field. `sinceMs`: of those that are not 0, since when. */
export interface AllTotals {
  readonly atMs: number;
  readonly counts: ReadonlyMap<string, number>;
  readonly sinceMs: ReadonlyMap<string, number>;
}

/** Reads the list totals of these fields; undefined when no walk has counted. */
async function readTotals({ redis }: Store, key: string, fields: readonly string[]): Promise<ListTotals | undefined> {
  const [at, seq, ...counts] = await redis.hmget(key, "at", "seq", ...fields.map((field) => `:${field}`));
  if (at === null || at === undefined) return undefined;
  return { atMs: Number(at), seq: Number(seq), counts: counts.map((count) => Number(count ?? 0)) };
}
