// Hands the new items of a feed to whoever wants them beside the log, before the feed book notes that they are told: so a crash in between
// repeats and loses nothing. Called by walk-feed.ts at the end of each walk, also of one that broke off.
import type { FeedStatus } from "../store/feed-book.ts";
import type { SeenItem } from "../store/seen-item.ts";
import type { Feed } from "../tasks/feed.ts";

/** Who wants new items. `announce` is durable when it resolves, and drops what it was given before in the same group. */
export interface ItemAnnouncer {
  readonly wants: (feed: Feed) => boolean;
  readonly announce: (feed: Feed, group: readonly SeenItem[]) => Promise<void>;
}

interface Announcing {
  readonly book: { discoveredSince(feed: Feed, seq: number): Promise<readonly SeenItem[]> };
  readonly announcer?: ItemAnnouncer;
}

/** Announces what was discovered and not told yet, each item once. `before`: the feed's status at the beginning of the walk. */
export async function announceNew(feed: Feed, before: FeedStatus, { book, announcer }: Announcing): Promise<void> {
  // What a list holds when it is first read is no news.
  if (announcer === undefined || before.walks === 0 || !announcer.wants(feed)) return;
  const { toldSeq = before.seq } = before;
  const items = (await book.discoveredSince(feed, toldSeq)).filter(({ firstSeq }) => firstSeq > toldSeq);
  // A reader that died may have announced what it found: that is a group of its own again, so that the same is known as the same.
  const groups = [
    items.filter(({ firstSeq }) => firstSeq <= before.seq),
    items.filter(({ firstSeq }) => firstSeq > before.seq),
  ];
  for (const group of groups) if (group.length > 0) await announcer.announce(feed, group);
}
