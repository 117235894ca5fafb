// Hands new items of a feed to the sinks that ask for them, before the FeedStore marks them as
// published: a crash in between repeats items and loses none. Called by walk-feed.ts at the end of
// each walk, also of one that broke off.

import type { Feed } from "../model/feed.ts";
import type { SeenItem } from "../store/feed-mirror.ts";
import type { FeedStatus } from "../store/feed-store.ts";

/**
 * The receiver of new items. `announce` is durable when it resolves, and drops items that the same
 * group had before.
 */
export interface ItemAnnouncer {
  readonly wants: (feed: Feed) => boolean;
  readonly announce: (feed: Feed, group: readonly SeenItem[]) => Promise<void>;
}

interface Announcing {
  readonly feeds: { discoveredSince(feed: Feed, seq: number): Promise<readonly SeenItem[]> };
  readonly announcer?: ItemAnnouncer;
}

/**
 * Announces discovered items that are not published yet, each once. `before`: the feed's status at
 * the beginning of the walk.
 */
export async function announceNew(
  feed: Feed,
  before: FeedStatus,
  { feeds: book, announcer }: Announcing,
): Promise<void> {
  // Items of the first walk were there already: not new.
  if (announcer === undefined || before.walks === 0 || !announcer.wants(feed)) return;
  const { loggedSeq = before.seq } = before;
  const items = (await book.discoveredSince(feed, loggedSeq)).filter(({ firstSeq }) => firstSeq > loggedSeq);
  // A crashed walk may have announced its items as one group: repeat exactly that group, so that it
  // is recognised.
  const groups = [
    items.filter(({ firstSeq }) => firstSeq <= before.seq),
    items.filter(({ firstSeq }) => firstSeq > before.seq),
  ];
  for (const group of groups) if (group.length > 0) await announcer.announce(feed, group);
}
