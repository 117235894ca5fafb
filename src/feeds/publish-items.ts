// Publishes the new items of a feed: a log line each, and a group for the sinks that ask for them,
// before the FeedStore marks them as published. A crash in between repeats items and loses none.
// Called by walk-feed.ts.
import type { EventLog } from "../core/event-log.ts";
import { type Feed, feedId, type ItemFacts } from "../model/feed.ts";
import type { SeenItem } from "../store/feed-mirror.ts";
import type { FeedStatus, FeedStore } from "../store/feed-store.ts";

/** The receiver of new items; `announce` is durable, and drops a group that it had before. */
export interface ItemAnnouncer {
  readonly wants: (feed: Feed) => boolean;
  readonly announce: (feed: Feed, group: readonly SeenItem[]) => Promise<void>;
}

type ItemSource = Pick<FeedStore, "discoveredSince">;

const linesMax = 20;
const windowMs = 60_000;
const feedsMax = 1_000;

/** Limits log lines about items to 20 a minute and feed; counts are never sampled. */
export class ItemSampling {
  readonly #windows = new Map<string, { readonly sinceMs: number; lines: number }>();

  /** Takes one line of a feed's minute; false when none is left. */
  take(feed: Feed, nowMs: number): boolean {
    const id = feedId(feed);
    let window = this.#windows.get(id);
    if (window === undefined || nowMs - window.sinceMs >= windowMs) {
      if (this.#windows.size >= feedsMax) this.#windows.clear();
      window = { sinceMs: nowMs, lines: 0 };
      this.#windows.set(id, window);
    }
    window.lines += 1;
    return window.lines <= linesMax;
  }

  /** Logs an item, unless the feed's minute is full. */
  log(feed: Feed, item: ItemFacts, { nowMs, log }: { readonly nowMs: number; readonly log: EventLog }): void {
    if (!this.take(feed, nowMs)) return;
    const { id, syncJobId, label, finished, succeeded } = item;
    const startedAt = item.startedAtMs === undefined ? undefined : new Date(item.startedAtMs).toISOString();
    log.info("feed.item", { ...feed, id, syncJobId, label, startedAt, finished, succeeded });
  }
}

/** Items that a crashed walk stored and may not have published. */
export async function unpublishedItems(feed: Feed, before: FeedStatus, feeds: ItemSource): Promise<SeenItem[]> {
  const { loggedSeq = before.seq } = before;
  if (before.walks === 0 || loggedSeq >= before.seq) return [];
  return (await feeds.discoveredSince(feed, loggedSeq)).filter(({ firstSeq }) => firstSeq > loggedSeq);
}

/** Announces items that are not published yet, each once. `before`: as the walk began. */
export async function announceNew(
  feed: Feed,
  before: FeedStatus,
  { feeds, announcer }: { readonly feeds: ItemSource; readonly announcer?: ItemAnnouncer },
): Promise<void> {
  // Items of the first walk were there already: not new.
  if (announcer === undefined || before.walks === 0 || !announcer.wants(feed)) return;
  const { seq, loggedSeq = seq } = before;
  const items = (await feeds.discoveredSince(feed, loggedSeq)).filter(({ firstSeq }) => firstSeq > loggedSeq);
  // A crashed walk may have announced its items: the same group again is recognised.
  for (const group of [items.filter(({ firstSeq }) => firstSeq <= seq), items.filter(({ firstSeq }) => firstSeq > seq)])
    if (group.length > 0) await announcer.announce(feed, group);
}
