// How soon a feed is walked again after a walk that took a poll's pages. On a real feed book.
import { expect, it, onTestFinished } from "vitest";
import { createItemMapper } from "../../../src/feeds/mapping.ts";
import { walkFeed } from "../../../src/feeds/walk-feed.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { startListServer } from "../../support/list-server.ts";
import { storeForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

const store = await storeForTest();
const book = new FeedStore(store);
const name = "synchronizationactivities";

it("rests five times as long as its own last walk took, not as long as a poll read", async () => {
  const server = await startListServer({ [name]: [{ id: 1 }] });
  const service = new SyncService({ baseUrl: server.url, token: staticToken("x") });
  onTestFinished(async () => {
    await service.close();
    await server.stop();
  });
  const feed = { service: "main", repository: "polled", list: "activities" } as const;
  await book.addWaiter(feed, "run", { nowMs: 1, untilMs: 9e15 });
  /** Walks so long after now; a poll that began a minute ago gives its pages, or does not. */
  const walk = async (afterMs: number, isGiven = false) => {
    const nowMs = await redisTimeMs(store);
    const pages = [{ url: `${server.url}/odata/${name}`, items: [{ id: 1 }] }];
    await walkFeed(
      { v: 1, kind: "feed-walk", ...feed },
      {
        feeds: book,
        nowMs: async () => nowMs + afterMs,
        service: () => service,
        denialOf: async () => undefined,
        itemMapper: () => createItemMapper("activities", { id: "item.id" }),
        readings: { newerThan: async () => (isGiven ? { beganAtMs: nowMs - 60_000, pages } : undefined) },
        pace: { gapMs: 1_000, fastestMs: 5_000, slowestMs: 60_000 },
        log: new TestLog(),
      },
      new AbortController().signal,
    );
    return server.asked.length;
  };
  expect(await walk(0, true)).toBe(0);
  expect(await walk(1_000)).toBe(1);
  await book.endWalk(feed, { startedAtMs: (await redisTimeMs(store)) - 60_000, count: 1, whole: true });
  expect(await walk(0, true)).toBe(1);
  expect(await walk(290_000)).toBe(1);
  expect(await walk(400_000)).toBe(2);
  // Redis's clock was set back by an hour.
  expect(await walk(-3_600_000)).toBe(3);
});
