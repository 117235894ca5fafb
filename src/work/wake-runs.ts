// Wakes the runs whose end the walk of their activities has just seen, so that those that go on need not look all the time. Called by
// app.ts around each walk. A wake-up that is lost costs time and nothing else: every run looks again by itself (follow-pace.ts).
import type { ItemReader } from "../feeds/mapping.ts";
import type { FeedBook } from "../store/feed-book.ts";
import { type Feed, feedId } from "../tasks/feed.ts";
import type { Verdict } from "../tasks/verdict.ts";

/** What waking needs. */
export interface WakeParts {
  readonly book: Pick<FeedBook, "status" | "changedSince">;
  readonly itemReader: (feed: Feed) => ItemReader | undefined;
  /** The tasks of these sync jobs of the feed's repository whose starts are in flight. */
  readonly inFlight: (feed: Feed, syncJobIds: readonly string[]) => Promise<readonly string[]>;
  /** Lets these tasks go on at once, if they sleep. */
  readonly wake: (service: string, taskIds: readonly string[]) => Promise<void>;
}

/** Does a walk, and wakes the runs of all activities that it found finished. */
export type WakingWalk = (feed: Feed, walk: () => Promise<Verdict>) => Promise<Verdict>;

/** So many changes are looked at after a walk, the earliest; runs behind the others look by themselves. */
const changesMax = 10_000;
/** Of so many feeds it is known where the walk before began. */
const feedsMax = 1_000;

/** Makes what goes around each walk. */
export function createWakingWalk(parts: WakeParts): WakingWalk {
  // Each end is told twice: a run may have been looking, and so not asleep, when the first walk had seen it.
  const before = new Map<string, number>();
  return async (feed, walk) => {
    const reader = parts.itemReader(feed);
    if (feed.list !== "activities" || !reader?.knows("syncJobId") || !reader.knows("finished")) return walk();
    const { seq } = await parts.book.status(feed);
    const verdict = await walk();
    const sinceSeq = Math.min(before.get(feedId(feed)) ?? seq, seq);
    if (before.size >= feedsMax) before.clear();
    before.set(feedId(feed), seq);
    // The walk is done and written: whatever fails here must not have it done again.
    await wakeSince(feed, parts, sinceSeq).catch(() => {});
    return verdict;
  };
}

async function wakeSince(feed: Feed, { book, inFlight, wake }: WakeParts, seq: number): Promise<void> {
  const changed = await book.changedSince(feed, seq, changesMax);
  const ended = changed.filter(({ finished }) => finished === true);
  const syncJobIds = new Set(ended.flatMap(({ syncJobId }) => (syncJobId === undefined ? [] : [syncJobId])));
  if (syncJobIds.size > 0) await wake(feed.service, await inFlight(feed, [...syncJobIds]));
}
