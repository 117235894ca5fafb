// Wakes the runs whose end a walk of the activities has just seen, so that running ones need not
// check all the time. Called by app/create-consumers.ts around each walk. A lost wake-up costs only
// time: every run checks by itself (follow-pace.ts).
import type { ItemMapper } from "../feeds/mapping.ts";
import { type Feed, feedId } from "../model/feed.ts";
import type { Verdict } from "../model/verdict.ts";
import type { FeedStore } from "../store/feed-store.ts";

/** The dependencies of waking. */
export interface WakeDependencies {
  readonly feeds: Pick<FeedStore, "status" | "changedSince">;
  readonly itemMapper: (feed: Feed) => ItemMapper | undefined;
  /** The tasks of these sync jobs whose starts are in flight, in the feed's repository. */
  readonly inFlight: (feed: Feed, syncJobIds: readonly string[]) => Promise<readonly string[]>;
  /** Wakes these tasks, if they sleep. */
  readonly wake: (service: string, taskIds: readonly string[]) => Promise<void>;
}

/** Does a walk, and wakes the runs of all activities that it found finished. */
export type WakingWalk = (feed: Feed, walk: () => Promise<Verdict>) => Promise<Verdict>;

/** The most changes that are checked after a walk; other runs check by themselves. */
const changesMax = 10_000;
/** The most feeds whose previous sequence is remembered. */
const feedsMax = 1_000;

/** Creates the wrapper of each walk. */
export function createWakingWalk(deps: WakeDependencies): WakingWalk {
  // Each end wakes twice: at the first walk the run may have been checking instead of sleeping.
  const before = new Map<string, number>();
  return async (feed, walk) => {
    const mapper = deps.itemMapper(feed);
    if (feed.list !== "activities" || !mapper?.knows("syncJobId") || !mapper.knows("finished")) return walk();
    const { seq } = await deps.feeds.status(feed);
    const verdict = await walk();
    const sinceSeq = Math.min(before.get(feedId(feed)) ?? seq, seq);
    if (before.size >= feedsMax) before.clear();
    before.set(feedId(feed), seq);
    // The walk is recorded: a failure here must not repeat it.
    await wakeSince(feed, deps, sinceSeq).catch(() => {});
    return verdict;
  };
}

async function wakeSince(feed: Feed, { feeds, inFlight, wake }: WakeDependencies, seq: number): Promise<void> {
  const changed = await feeds.changedSince(feed, seq, changesMax);
  const ended = changed.filter(({ finished }) => finished === true);
  const syncJobIds = new Set(ended.flatMap(({ syncJobId }) => (syncJobId === undefined ? [] : [syncJobId])));
  if (syncJobIds.size > 0) await wake(feed.service, await inFlight(feed, [...syncJobIds]));
}
