import { describe, expect, it, onTestFinished, vi } from "vitest";
import { MeteredFeedStore } from "../../../src/app/metered-feed-store.ts";
import { systemClock } from "../../../src/core/clock.ts";
import type { ItemFacts } from "../../../src/model/feed.ts";
import { type Feed, feedId } from "../../../src/model/feed.ts";
import { Metrics } from "../../../src/ops/metrics.ts";
import { type FeedPage, FeedStore } from "../../../src/store/feed-store.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { parseMetrics, sumOf } from "../../support/metrics-text.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();
const book = new FeedStore(store);

const feed = (service: string): Feed => ({ service, repository: null, list: "activities" });
const item = (id: string, fingerprint: string, finished = false): ItemFacts => ({
  id,
  fingerprint,
  syncJobId: "42",
  finished,
  startedAtMs: undefined,
  succeeded: undefined,
  label: "a b c",
});

const takeIn = (one: Feed, items: readonly ItemFacts[], how: Partial<FeedPage> & { generation?: number } = {}) =>
  book.takeIn(one, { generation: how.generation ?? 0 }, { items, sinceSeq: 0, ...how });

describe("the feed book", () => {
  it("takes nothing from a page that begins unknown when the walk goes on from there", async () => {
    const one = feed("anchored");
    await takeIn(one, [item("1", "x")]);
    expect(await takeIn(one, [item("2", "y"), item("1", "x")], { mustKnowFirst: true })).toBeUndefined();
    expect(await takeIn(one, [], { mustKnowFirst: true })).toBeUndefined();
    expect((await book.status(one)).seq).toBe(1);
    expect(await takeIn(one, [item("1", "x"), item("2", "y")], { mustKnowFirst: true, sinceSeq: 1 })).toEqual([
      "known",
      "new",
    ]);
  });

  it("takes in a page of more items than one call holds", async () => {
    const one = feed("large");
    const page = Array.from({ length: 2_500 }, (_, index) => item(`n${index}`, "x"));
    expect(await takeIn(one, page)).toEqual(page.map(() => "new"));
    expect(await takeIn(one, page, { sinceSeq: 2_500 })).toEqual(page.map(() => "known"));
  });

  it("remembers what is still there, and forgets the rest two generations later", async () => {
    const one = feed("generations");
    await takeIn(one, [item("stays", "x"), item("goes", "x")]);
    expect(await takeIn(one, [item("stays", "x")], { generation: 1, sinceSeq: 2 })).toEqual(["known"]);
    expect(await takeIn(one, [item("stays", "x"), item("goes", "x")], { generation: 2, sinceSeq: 2 })).toEqual([
      "known",
      "new",
    ]);
  });

  it("counts an item that stands twice on a page once, with the age of its discovery", async () => {
    const one = feed("twice");
    expect(await takeIn(one, [item("1", "x"), item("1", "y")])).toEqual(["new", "again"]);
    const [found, ...others] = await book.discoveredSince(one, 0);
    expect(found).toMatchObject({ firstSeq: 1, seq: 2, seenAtMs: expect.any(Number) });
    expect(others).toEqual([]);
  });

  it("begins a generation after a week and three whole walks, and drops the third last", async () => {
    const one = feed("weekly");
    const walked = () => book.endWalk(one, { startedAtMs: 1, count: 1, whole: true });
    await takeIn(one, [item("1", "x")]);
    for (let walk = 0; walk < 3; walk += 1) await walked();
    expect((await book.status(one)).generation).toBe(0);
    await store.redis.hset(store.key("feed", feedId(one)), "generationSinceMs", String(Date.now() - 8 * 86_400_000));
    await walked();
    expect((await book.status(one)).generation).toBe(1);
    await takeIn(one, [item("1", "x")], { generation: 1 });
    await walked();
    expect((await book.status(one)).generation).toBe(1);
    expect((await store.redis.keys(store.key("feed-seen", feedId(one), "*"))).length).toBe(2);
  });

  it("reports each item as new once, however often a page is taken in", async () => {
    const page = [item("1", "x"), item("2", "y")];
    expect(await takeIn(feed("once"), page)).toEqual(["new", "new"]);
    expect(await takeIn(feed("once"), page)).toEqual(["again", "again"]);
    expect(await takeIn(feed("once"), page, { sinceSeq: 2 })).toEqual(["known", "known"]);
    expect((await book.status(feed("once"))).seq).toBe(2);
  });

  it("keeps when an item was discovered, whatever becomes of it", async () => {
    const one = feed("seen-at");
    await takeIn(one, [item("old", "a")]);
    const [before] = await book.discoveredSince(one, 0);
    await takeIn(one, [item("old", "a2")]);
    const [after] = await book.discoveredSince(one, 0);
    expect(before?.seenAtMs).toBeGreaterThan(0);
    expect(after).toMatchObject({ seq: 2, seenAtMs: before?.seenAtMs });
  });

  it("gives what was discovered after a number, in its newest form", async () => {
    const one = feed("since");
    await takeIn(one, [item("old", "a")]);
    const { seq } = await book.status(one);
    await takeIn(one, [item("old", "a2"), item("new", "b")]);
    await takeIn(one, [item("new", "b2", true)]);
    expect(await book.discoveredSince(one, seq)).toEqual([
      {
        id: "new",
        fingerprint: expect.any(String),
        syncJobId: "42",
        finished: true,
        succeeded: undefined,
        label: "a b c",
        firstSeq: 3,
        seq: 4,
        seenAtMs: expect.any(Number),
      },
    ]);
  });

  it("takes the new facts of items after a corrected mapping, and moves none", async () => {
    const one = feed("mapping-corrected");
    const page = [item("dropped", "x"), item("1", "y"), item("2", "z")];
    await takeIn(
      one,
      page.map((before) => ({ ...before, syncJobId: undefined })),
    );
    expect(await book.discoveredSince(one, 1)).toMatchObject([{ syncJobId: undefined }, { syncJobId: undefined }]);
    const before = await book.status(one);
    await store.redis.hdel(store.key("feed-items", feedId(one)), "dropped");
    await store.redis.zrem(store.key("feed-order", feedId(one)), "dropped");
    const newestFirst = page.toReversed();
    expect(await takeIn(one, newestFirst, { sinceSeq: 3 })).toEqual(["known", "known", "known"]);
    const corrected = [
      { id: "1", syncJobId: "42", firstSeq: 2, seq: 2, seenAtMs: expect.any(Number) },
      { id: "2", syncJobId: "42", firstSeq: 3, seq: 3, seenAtMs: expect.any(Number) },
    ];
    expect(await book.changedSince(one, 0, 9)).toMatchObject(corrected);
    expect(await book.discoveredSince(one, 1)).toMatchObject(corrected);
    expect(await book.status(one)).toEqual(before);
  });

  it("keeps the lists of two repositories apart", async () => {
    const hr = { ...feed("apart"), repository: "HR" };
    await takeIn(hr, [item("1", "x")]);
    expect(await takeIn({ ...hr, repository: "FIN" }, [item("1", "x")])).toEqual(["new"]);
  });

  it("knows how far it was read, and since when it cannot be", async () => {
    const one = feed("status");
    expect(await book.status(one)).toMatchObject({
      seq: 0,
      walks: 0,
      walkBeganAtMs: undefined,
      failingSinceMs: undefined,
    });
    await book.failWalk(one, "unreachable: refused", { beganAtMs: 0, waitMs: 0 });
    await book.failWalk(one, "server: 500", { beganAtMs: 0, waitMs: 0 });
    const failing = await book.status(one);
    expect(failing.failure).toBe("server: 500");
    expect(failing.failedAtMs).toBeGreaterThanOrEqual(failing.failingSinceMs ?? Number.POSITIVE_INFINITY);
    await book.endWalk(one, { startedAtMs: 5, count: 3, whole: true });
    expect(await book.status(one)).toMatchObject({
      walks: 1,
      count: 3,
      walkBeganAtMs: 5,
      failingSinceMs: undefined,
      failedAtMs: undefined,
      failure: undefined,
      unreadSinceMs: undefined,
      unreadUntilMs: undefined,
    });
  });

  it("knows the age and duration of a whole read that was continued from a page", async () => {
    const one = feed("went-on");
    await book.endWalk(one, { startedAtMs: Date.now() - 1_000, sinceMs: 5, count: 3, whole: true });
    const { walkBeganAtMs, walkTookMs } = await book.status(one);
    expect(walkBeganAtMs).toBe(5);
    expect(walkTookMs).toBeGreaterThanOrEqual(1_000);
    expect(walkTookMs).toBeLessThan(900_000);
  });

  it("counts who waits, and drops those whose time has passed", async () => {
    const one = feed("waiting");
    await book.addWaiter(one, "a", { nowMs: 0, untilMs: 1_000 });
    await book.addWaiter(one, "b", { nowMs: 0, untilMs: 2_000 });
    expect(await book.waiting(one, 1_500)).toBe(1);
    await book.leave(one, "b");
    expect(await book.waiting(one, 1_500)).toBe(0);
  });

  it("keeps no waiter for a start that is over", async () => {
    const one = feed("waiting-in-vain");
    await store.redis.hset(store.key("start", "over"), "state", "settled");
    await book.addWaiter(one, "over", { nowMs: 0, untilMs: 2_000 });
    expect(await book.waiting(one, 1_500)).toBe(0);
    expect((await book.status(one)).wantedAtMs).toBeUndefined();
  });
});

describe("the feed book of a process with metrics", () => {
  const read = async (metrics: Metrics, name: string, labels: Record<string, string>) =>
    sumOf(parseMetrics((await metrics.scrape()).text), name, labels) ?? 0;

  it("tells durations by Redis's clock, whatever the machine's says", async () => {
    const metrics = new Metrics();
    const metered = new MeteredFeedStore(store, metrics);
    const nowMs = await redisTimeMs(store);
    const clock = vi.spyOn(systemClock, "nowMs").mockReturnValue(nowMs + 3_600_000);
    onTestFinished(() => clock.mockRestore());
    for (const agoMs of [2_000, 1_000])
      await metered.endWalk(feed("metered"), { startedAtMs: nowMs - agoMs, count: 0, whole: true, because: "audit" });
    for (const [name, leastSeconds] of [
      ["syncline_feed_walk_duration_seconds_sum", 3],
      ["syncline_feed_lag_seconds_sum", 2],
    ] as const) {
      const seconds = await read(metrics, name, { list: "activities" });
      expect(seconds).toBeGreaterThanOrEqual(leastSeconds);
      expect(seconds).toBeLessThan(3_600);
    }
  });

  it("counts a failed walk when it is noted, so not twice", async () => {
    const metrics = new Metrics();
    const key = () => {
      throw new Error("gone");
    };
    const fail = (metered: FeedStore) => metered.failWalk(feed("failed"), "server: 500", { beganAtMs: 1, waitMs: 1 });
    const failures = () => read(metrics, "syncline_feed_walks_total", { outcome: "failed" });
    await expect(fail(new MeteredFeedStore({ ...store, key }, metrics))).rejects.toThrow("gone");
    expect(await failures()).toBe(0);
    await fail(new MeteredFeedStore(store, metrics));
    expect(await failures()).toBe(1);
  });
});
