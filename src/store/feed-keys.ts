// Where a feed stands in Redis, for the steps of a start that touch it as well: the one that permits it, and the one that ends it.
import { type Feed, feedId } from "../tasks/feed.ts";
import type { Store } from "./redis.ts";

/** Where the status of a feed stands; its field `seq` is read in the step that permits a plain start, too. */
export function feedStatusKey({ key }: Pick<Store, "key">, feed: Feed): string {
  return key("feed", feedId(feed));
}

/** Where those stand who wait for a feed; a task goes out of there in the step that writes its outcome. */
export function feedWaitersKey({ key }: Pick<Store, "key">, feed: Feed): string {
  return key("feed-waiters", feedId(feed));
}
