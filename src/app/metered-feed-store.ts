// The feed store of a process that has metrics. So feeds/ knows nothing of them.
import type { Feed } from "../model/feed.ts";
import { otherValue } from "../ops/metric-labels.ts";
import type { Metrics } from "../ops/metrics.ts";
import { type FeedPage, type FeedStatus, FeedStore, type WalkSummary } from "../store/feed-store.ts";
import type { Novelty } from "../store/known-items.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";

/** A feed store that counts pages, items and walks, and measures how old news can be. */
export class MeteredFeedStore extends FeedStore {
  readonly #store: Store;
  readonly #metrics: Metrics;

  constructor(store: Store, metrics: Metrics) {
    super(store);
    this.#store = store;
    this.#metrics = metrics;
  }

  override async takeIn(
    feed: Feed,
    status: Pick<FeedStatus, "generation">,
    page: FeedPage,
  ): Promise<Novelty[] | undefined> {
    const { service, list } = feed;
    const novelties = await super.takeIn(feed, status, page);
    this.#metrics.add("syncline_feed_pages_total", { service, list });
    for (const novelty of ["new", "again", "known"] as const) {
      const count = novelties?.filter((one) => one === novelty).length ?? 0;
      this.#metrics.add("syncline_feed_items_total", { service, list, novelty }, count);
    }
    return novelties;
  }

  override async endWalk(feed: Feed, walk: WalkSummary): Promise<void> {
    const { service, list } = feed;
    // A walk begins by Redis's clock.
    const [before, endedAtMs] = await Promise.all([this.status(feed), redisTimeMs(this.#store)]);
    await super.endWalk(feed, walk);
    const metrics = this.#metrics;
    metrics.add("syncline_feed_walks_total", { service, list, walkOutcome: walk.whole ? "whole" : "part" });
    if (walk.whole)
      metrics.add("syncline_feed_whole_walks_total", { service, list, wholeReason: walk.because ?? otherValue });
    metrics.observe("syncline_feed_walk_duration_seconds", { list }, (endedAtMs - walk.startedAtMs) / 1_000);
    const blindSinceMs = Math.max(before.walkBeganAtMs ?? 0, before.wantedAtMs ?? 0);
    if (blindSinceMs > 0) metrics.observe("syncline_feed_lag_seconds", { list }, (endedAtMs - blindSinceMs) / 1_000);
  }

  override async failWalk(...failed: Parameters<FeedStore["failWalk"]>): Promise<void> {
    await super.failWalk(...failed);
    const [{ service, list }] = failed;
    this.#metrics.add("syncline_feed_walks_total", { service, list, walkOutcome: "failed" });
  }
}
