// The followed lists of a task: which they are, waiting for their walks, leaving; and waking the
// runs whose end a walk of the activities has just seen. A lost wake-up costs only time: every run
// checks by itself (timing.ts). Reads nothing of the service.
import type { ItemMapper } from "../feeds/mapping.ts";
import { awaitedLists, type Feed, feedId, type ListName } from "../model/feed.ts";
import type { Task } from "../model/task.ts";
import type { Verdict } from "../model/verdict.ts";
import type { FeedStore } from "../store/feed-store.ts";
import type { FeedAccess } from "./step-dependencies.ts";

/** The lists that show a run. */
export const followedLists = ["activities", "conflictDetails"] as const satisfies readonly ListName[];
/** A dead waiter causes walks for this long: more than two of the longest sleeps of a live one. */
const waiterForMs = 150_000;

/** The feed of a task's repository. */
export function feedOf(task: Task, list: ListName): Feed {
  return { service: task.service, repository: task.repository, list };
}

/** Registers this task as a waiter of both feeds, and has them read. */
export async function requestLists(
  task: Task,
  deps: FeedAccess,
  options: { nowMs: number; hurry: boolean },
): Promise<void> {
  for (const list of followedLists) await requestFeed(feedOf(task, list), task, deps, options);
}

/** Registers this task as a waiter of a feed, and has it read. */
export async function requestFeed(
  feed: Feed,
  task: Task,
  deps: FeedAccess,
  { nowMs, hurry }: { nowMs: number; hurry: boolean },
): Promise<void> {
  await deps.feeds.addWaiter(feed, task.id, { nowMs, untilMs: nowMs + waiterForMs });
  await deps.requestWalk(feed, { hurry });
}

/** Removes this task from the waiters. */
export async function leaveLists(task: Task, deps: Pick<FeedAccess, "feeds">): Promise<void> {
  for (const list of awaitedLists) await deps.feeds.leave(feedOf(task, list), task.id);
}

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

/** The most changes of a list that are checked; after a walk, other runs check by themselves. */
export const changesMax = 10_000;
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
