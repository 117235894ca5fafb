// The feed book as the readers of feeds see it, with everything counted that goes through it: so feeds/ knows nothing of metrics.
// Built by app.ts for each worker that shows metrics. Changes nothing that is written or answered.
import { systemClock } from "../core/clock.ts";
import type { WalkParts } from "../feeds/walk-feed.ts";
import type { Metrics } from "../ops/metrics.ts";

type Book = WalkParts["book"];

/** Makes a book that counts pages, items and walks, and says how old news was. */
export function createMeteredBook(book: Book, metrics: Metrics): Book {
  return {
    waiting: (feed, nowMs) => book.waiting(feed, nowMs),
    status: (feed) => book.status(feed),
    keepKnowledge: (feed, knowledge) => book.keepKnowledge(feed, knowledge),
    told: (feed) => book.told(feed),
    discoveredSince: (feed, seq) => book.discoveredSince(feed, seq),
    keepShape: (feed, shape) => book.keepShape(feed, shape),
    takeIn: async (feed, status, page) => {
      const { service, list } = feed;
      const novelties = await book.takeIn(feed, status, page);
      metrics.add("syncline_feed_pages_total", { service, list });
      for (const novelty of ["new", "again", "known"] as const) {
        const count = novelties?.filter((one) => one === novelty).length ?? 0;
        metrics.add("syncline_feed_items_total", { service, list, novelty }, count);
      }
      return novelties;
    },
    walked: async (feed, walk) => {
      const { service, list } = feed;
      const before = await book.status(feed);
      await book.walked(feed, walk);
      metrics.add("syncline_feed_walks_total", { service, list, walkOutcome: walk.whole ? "whole" : "part" });
      // The walk's beginning is by Redis's clock; what these say is a matter of seconds, and both clocks agree to one.
      const endedAtMs = systemClock.nowMs();
      metrics.observe("syncline_feed_walk_duration_seconds", { list }, (endedAtMs - walk.startedAtMs) / 1_000);
      const blindSinceMs = Math.max(before.walkStartedAtMs ?? 0, before.wantedAtMs ?? 0);
      if (blindSinceMs > 0) metrics.observe("syncline_feed_lag_seconds", { list }, (endedAtMs - blindSinceMs) / 1_000);
    },
    failed: async (feed, failure) => {
      metrics.add("syncline_feed_walks_total", { service: feed.service, list: feed.list, walkOutcome: "failed" });
      await book.failed(feed, failure);
    },
  };
}
