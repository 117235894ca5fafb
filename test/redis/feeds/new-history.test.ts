// When what was seen of a list is forgotten: all of it at once, and then nothing that stands in the
// list counts as new. On a real feed book.
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { ItemMapping } from "../../../src/config/policy-set.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { createRateLimitedLog, type EventLog } from "../../../src/core/event-log.ts";
import { createItemMapper } from "../../../src/feeds/mapping.ts";
import { walkFeed } from "../../../src/feeds/walk-feed.ts";
import { type Feed, feedId } from "../../../src/model/feed.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { type ListServer, startListServer } from "../../support/list-server.ts";
import { storeForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

const dayMs = 86_400_000;
const byId: ItemMapping = { id: "item.id" };
const byKey: ItemMapping = { id: "item.key" };
const store = await storeForTest();
const book = new FeedStore(store);
let server: ListServer;
let service: SyncService;
let log: TestLog;
let limitedLog: EventLog;

beforeAll(async () => {
  server = await startListServer({});
  service = new SyncService({ baseUrl: server.url, token: staticToken("x") });
});
beforeEach(() => {
  log = new TestLog();
  limitedLog = createRateLimitedLog(log, systemClock, "feed");
});
afterAll(async () => {
  await service.close();
  await server.stop();
});

const feedOf = (repository: string): Feed => ({ service: "main", repository, list: "activities" });
const statusKey = (feed: Feed) => store.key("feed", feedId(feed));
const bucketKeys = (feed: Feed) => store.redis.keys(store.key("feed-seen", feedId(feed), "*"));
const found = () => log.named("feed.item").map(({ id }) => id);
const begun = () => log.named("feed.begun-anew").map(({ why }) => why);

/** Walks a list with the items 1 to `count`. */
async function walk(feed: Feed, count: number, mapping: ItemMapping = byId, newestSinceMs = 0): Promise<void> {
  const items = Array.from({ length: count }, (_, index) => ({ id: index + 1, key: `k${index + 1}` }));
  server.lists["synchronizationactivities"] = items;
  await book.addWaiter(feed, "test", { nowMs: 1, untilMs: 9e15 });
  await walkFeed(
    { v: 1, kind: "feed-walk", service: "main", repository: feed.repository, list: feed.list },
    {
      feeds: book,
      nowMs: async () => (await redisTimeMs(store)) + 60_000,
      service: () => service,
      denialOf: async () => undefined,
      itemMapper: () => createItemMapper("activities", mapping),
      newestSinceMs: async () => newestSinceMs,
      pace: { gapMs: 0, fastestMs: 0, slowestMs: 0 },
      limitedLog,
      log,
    },
    new AbortController().signal,
  );
  expect(log.named("feed.unreadable")).toEqual([]);
}

it("keeps what was seen of a list for longer than a month and than its status", async () => {
  const feed = feedOf("kept");
  await walk(feed, 30);
  const status = await store.redis.pttl(statusKey(feed));
  const buckets = await Promise.all((await bucketKeys(feed)).map((key) => store.redis.pttl(key)));
  expect(status).toBeGreaterThan(31 * dayMs);
  expect(Math.min(...buckets)).toBeGreaterThan(status + 31 * dayMs);
});

it("forgets a list as a whole that could not be read for long, and says so", async () => {
  const feed = feedOf("unread");
  await walk(feed, 3);
  await walk(feed, 4);
  expect(found()).toEqual(["4"]);
  // What Redis has dropped by then.
  await store.redis.unlink(await bucketKeys(feed));
  await store.redis.hset(statusKey(feed), "wholeWalkBeganAtMs", Date.now() - 41 * dayMs);
  await walk(feed, 5);
  expect(begun()).toEqual(["it was not read whole for 40 days"]);
  await walk(feed, 6);
  expect(found()).toEqual(["4", "6"]);
  expect(begun()).toHaveLength(1);
});

it("begins anew where the mapping gives other ids, and calls no item new for that", async () => {
  const feed = feedOf("remapped");
  await walk(feed, 3);
  const { seq } = await book.status(feed);
  await walk(feed, 3, byKey);
  expect(begun()).toEqual(["the mapping gives its items other ids"]);
  expect(found()).toEqual([]);
  expect((await book.status(feed)).beganSeq).toBeGreaterThan(seq);
  expect((await book.discoveredSince(feed, 0)).map(({ id }) => id)).toEqual(["k1", "k2", "k3"]);
  await walk(feed, 4, byKey);
  expect(found()).toEqual(["k4"]);
});

it("is left to replicas with newer policies while its mapping is not theirs", async () => {
  const feed = feedOf("rolled");
  await walk(feed, 3, byKey);
  await walk(feed, 4, byId, Number.POSITIVE_INFINITY);
  await walk(feed, 4, byId, Number.POSITIVE_INFINITY);
  expect(begun()).toEqual([]);
  expect(log.named("feed.left-to-newer")).toMatchObject([{ repository: "rolled", feed: feedId(feed), level: "warn" }]);
  await walk(feed, 5, byKey);
  expect(found()).toEqual(["k4", "k5"]);
});

it("is left to them, too, while their mapping gives the same items other facts", async () => {
  const feed = feedOf("corrected");
  const corrected = { ...byId, label: "item.key" };
  await walk(feed, 3, corrected);
  await walk(feed, 4, byId, Number.POSITIVE_INFINITY);
  const other = feedOf("corrected-too");
  await walk(other, 3, corrected);
  await walk(other, 4, byId, Number.POSITIVE_INFINITY);
  const left = log.named("feed.left-to-newer").map(({ repository }) => repository);
  expect(left).toEqual(["corrected", "corrected-too"]);
  const labels = async () => (await book.discoveredSince(feed, 0)).map(({ label }) => label);
  expect(await labels()).toEqual(["k1", "k2", "k3"]);
  await walk(feed, 5, corrected);
  expect(await labels()).toEqual(["k1", "k2", "k3", "k4", "k5"]);
  expect(found()).toEqual(["4", "5"]);
});

it("tells what a dead reader had found before the list begins anew", async () => {
  const feed = feedOf("left");
  await walk(feed, 3);
  const facts = createItemMapper("activities", byId).read({ id: 4 });
  const status = await book.status(feed);
  await book.takeIn(feed, status, { items: [facts], sinceSeq: status.seq });
  await walk(feed, 4, byKey);
  expect(found()).toEqual(["4"]);
});
