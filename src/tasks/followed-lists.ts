// The followed lists of a task: which they are, waiting for their walks, and leaving. Called by
// run.ts, verify.ts and baseline.ts; reads nothing of the service.
import type { Feed, ListName } from "../model/feed.ts";
import type { Task } from "../model/task.ts";
import type { FollowedLists } from "./contracts.ts";

/** The lists that show a run. */
export const followed = ["activities", "conflictDetails"] as const satisfies readonly ListName[];
/** A dead waiter causes walks for this long: more than two of the longest sleeps of a live one. */
const waiterForMs = 150_000;

/** The feed of a task's repository. */
export function feedOf(task: Task, list: ListName): Feed {
  return { service: task.service, repository: task.repository, list };
}

/** Registers this task as a waiter of both feeds, and has them read. */
export async function follow(
  task: Task,
  deps: FollowedLists,
  options: { nowMs: number; hurry: boolean },
): Promise<void> {
  for (const list of followed) await waitForFeed(feedOf(task, list), task, deps, options);
}

/** Registers this task as a waiter of a feed, and has it read. */
export async function waitForFeed(
  feed: Feed,
  task: Task,
  deps: FollowedLists,
  { nowMs, hurry }: { nowMs: number; hurry: boolean },
): Promise<void> {
  await deps.feeds.waitFor(feed, task.id, { nowMs, untilMs: nowMs + waiterForMs });
  await deps.requestWalk(feed, { hurry });
}

/** Removes this task from the waiters. */
export async function unfollow(task: Task, deps: Pick<FollowedLists, "feeds">): Promise<void> {
  for (const list of [...followed, "approvals"] as const) await deps.feeds.leave(feedOf(task, list), task.id);
}
