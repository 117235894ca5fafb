// The followed lists: how old their last reading is, what is new since yesterday, and which
// conflicts and approvals are open per sync job.

import type { PolicySet } from "../config/policy-set.ts";
import { dayMs } from "../core/duration.ts";
import { getOrMake } from "../core/get-or-make.ts";
import { totalOfAll, totalOfItem, totalOfSyncJob } from "../feeds/list-totals.ts";
import { costlyReasons, type Feed, listNames } from "../model/feed.ts";
import type { SeenItem } from "../store/feed-mirror.ts";
import { costlyWalksMin, type FeedNote, FeedStore, readFeedNotes } from "../store/feed-store.ts";
import { redisTimeMs } from "../store/redis.ts";
import { batchesOf } from "../store/script.ts";
import type { QueryContext } from "./query-context.ts";

/** Items first seen since yesterday. `isMore`: at least so many. */
interface FreshItems {
  readonly count: number;
  readonly isMore: boolean;
}

interface FeedLine {
  readonly note: FeedNote;
  readonly fresh: FreshItems;
  /** Why it is read whole again and again; undefined: it is not. */
  readonly whole: string | undefined;
}

/** What is open of one sync job, or of a repository whose items name none. */
export interface OpenItems extends Pick<Feed, "service" | "repository"> {
  readonly list: "conflictDetails" | "approvals";
  readonly syncJobId: string | undefined;
  readonly open: number;
  readonly fresh: FreshItems;
  /** The oldest open one is known since then, or longer; undefined: no longer kept. */
  readonly oldestMs: number | undefined;
  /** When it was counted. */
  readonly atMs: number;
}

/** All of it. `leftOut`: lists that were read, too, and are too many to look into. */
export interface FeedsView {
  readonly nowMs: number;
  readonly lines: readonly FeedLine[];
  readonly leftOut: readonly Feed[];
  /** Most first. */
  readonly open: readonly OpenItems[];
}

/** Lists that are looked into. */
const feedsMax = 600;
/** Items of one list that are looked at, at first and at most, and lists read at a time. */
const [itemsFirst, itemsMax, feedsAtOnce] = [200, 5_000, 20];

const feedsOfPolicies = new WeakMap<PolicySet["policies"], readonly Feed[]>();

/** The lists that the policies of a set may follow; kept as long as the set. */
export function feedsOf({ policies }: Pick<PolicySet, "policies">): readonly Feed[] {
  return getOrMake(feedsOfPolicies, policies, () => {
    const places = policies.map(({ service, repository = null }) => ({ service, repository }));
    const byName = new Map(places.map((place) => [JSON.stringify(place), place]));
    return [...byName.values()].flatMap((place) => listNames.map((list) => ({ ...place, list })));
  });
}

/** Reads the lists that were read ever. */
export async function readFeeds({ store, set }: QueryContext): Promise<FeedsView> {
  const nowMs = await redisTimeMs(store);
  const feeds = new FeedStore(store);
  const read = async (note: FeedNote) => {
    const items = await readRecent(note.feed, feeds, nowMs - dayMs);
    const count = items.filter(({ seenAtMs = 0 }) => seenAtMs > nowMs - dayMs).length;
    const isMore = count === itemsMax;
    const isCostly = (note.costlyWalks ?? 0) >= costlyWalksMin;
    const why = Object.entries(costlyReasons).find(([reason]) => reason === note.costlyReason)?.[1];
    const whole = isCostly ? why : undefined;
    const line = { note, whole, fresh: { count, isMore } };
    return { line, open: await readOpen(note.feed, items, { feeds, nowMs, isMore }) };
  };
  const notes = await readFeedNotes(store, feedsOf(set));
  const sorted = notes.length > feedsMax ? await neediestFirst(notes, feeds) : notes;
  const lists: Awaited<ReturnType<typeof read>>[] = [];
  for (const batch of batchesOf(sorted.slice(0, feedsMax), feedsAtOnce))
    lists.push(...(await Promise.all(batch.map(read))));
  const leftOut = sorted.slice(feedsMax).map(({ feed }) => feed);
  const open = lists.flatMap((list) => list.open);
  return { nowMs, lines: lists.map(({ line }) => line), leftOut, open: open.toSorted((a, b) => b.open - a.open) };
}

/** First those that cannot be read, and those with something open. */
async function neediestFirst(notes: readonly FeedNote[], feeds: FeedStore): Promise<readonly FeedNote[]> {
  const lists = notes.map(({ feed }) => feed);
  const counts = await feeds.lastCounts(lists, totalOfAll);
  const isNeedy = ({ failure }: FeedNote, index: number) => failure !== undefined || (counts[index] ?? 0) > 0;
  return [...notes.filter(isNeedy), ...notes.filter((note, index) => !isNeedy(note, index))];
}

/** The newest items, with all that were first seen after `sinceMs`; all where some may be open. */
async function readRecent(feed: Feed, feeds: FeedStore, sinceMs: number): Promise<readonly SeenItem[]> {
  if (mayBeOpen(feed.list)) return feeds.newest(feed, itemsMax);
  const first = await feeds.newest(feed, itemsFirst);
  const last = first[itemsFirst - 1];
  // What has not changed since an old item was discovered is older than that one.
  const oldSeq = Math.max(0, ...first.map(({ seenAtMs = 0, firstSeq }) => (seenAtMs > sinceMs ? 0 : firstSeq)));
  return last === undefined || last.seq < oldSeq ? first : feeds.newest(feed, itemsMax);
}

function mayBeOpen(list: Feed["list"]): list is OpenItems["list"] {
  return list === "conflictDetails" || list === "approvals";
}

/** The items of a list that were discovered last, newest first. */
export async function readFeedItems({ store }: QueryContext, feed: Feed, most: number): Promise<readonly SeenItem[]> {
  const items = await new FeedStore(store).newest(feed, most);
  return items.toSorted((a, b) => b.firstSeq - a.firstSeq);
}

async function readOpen(
  { service, repository, list }: Feed,
  items: readonly SeenItem[],
  { feeds, nowMs, isMore }: { readonly feeds: FeedStore; readonly nowMs: number; readonly isMore: boolean },
): Promise<OpenItems[]> {
  if (!mayBeOpen(list)) return [];
  const totals = await feeds.allTotals({ service, repository, list });
  if (totals === undefined) return [];
  const { counts, atMs } = totals;
  const there = list === "approvals" ? items.filter(({ id }) => counts.has(totalOfItem(id))) : items;
  const bySyncJob = Map.groupBy(there, ({ syncJobId }) => syncJobId);
  const openOf = (id: string) =>
    list === "approvals" ? (bySyncJob.get(id)?.length ?? 0) : (counts.get(totalOfSyncJob(id)) ?? 0);
  const named = list === "approvals" ? [...bySyncJob.keys()] : [...counts.keys()].flatMap(syncJobOfTotal);
  const told = named.flatMap((syncJobId) => (syncJobId === undefined ? [] : [{ syncJobId, open: openOf(syncJobId) }]));
  const rest = (counts.get(totalOfAll) ?? 0) - told.reduce((sum, { open }) => sum + open, 0);
  return [...told, { syncJobId: undefined, open: rest }].flatMap(({ syncJobId, open }): OpenItems[] => {
    if (open <= 0) return [];
    const seen = (bySyncJob.get(syncJobId) ?? []).toSorted((a, b) => b.firstSeq - a.firstSeq);
    const count = Math.min(open, seen.filter(({ seenAtMs = 0 }) => seenAtMs > nowMs - dayMs).length);
    const fresh = { count, isMore: isMore && count < open };
    // So many are open: at best these are the newest, so the oldest is at least that old.
    const oldestMs = seen[open - 1]?.seenAtMs;
    return [{ service, repository, list, syncJobId, open, fresh, oldestMs, atMs }];
  });
}

/** The sync job of a total; the inverse of `totalOfSyncJob`. */
function syncJobOfTotal(field: string): string[] {
  const prefix = totalOfSyncJob("");
  return field.startsWith(prefix) ? [field.slice(prefix.length)] : [];
}
