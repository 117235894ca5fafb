// The Redis keys of a feed that the scripts of a start touch as well: the one that permits the
// start and the one that records its outcome.
import { type Feed, feedId } from "../model/feed.ts";
import type { Store } from "./redis.ts";

/** Key of a feed's status. The fast path reads its field `seq`. */
export function feedStatusKey({ key }: Pick<Store, "key">, feed: Feed): string {
  return key("feed", feedId(feed));
}

/**
 * Key of the tasks that wait for a feed. The step that writes a task's outcome removes the task.
 */
export function feedWaitersKey({ key }: Pick<Store, "key">, feed: Feed): string {
  return key("feed-waiters", feedId(feed));
}
