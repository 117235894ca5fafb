// Each new item of a feed as a log line: at least once, sampled above a rate, counts never. On a
// real feed book.
import { afterEach, beforeEach, expect, it } from "vitest";
import { createItemMapper } from "../../../src/feeds/mapping.ts";
import { type ItemAnnouncer, ItemSampling } from "../../../src/feeds/publish-items.ts";
import { type WalkDependencies, walkFeed } from "../../../src/feeds/walk-feed.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { ServiceError } from "../../../src/service/service-error.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { type ListServer, startListServer } from "../../support/list-server.ts";
import { storeForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

const store = await storeForTest();
let server: ListServer;
let service: SyncService;
let log: TestLog;

beforeEach(async () => {
  server = await startListServer({ synchronizationactivities: [] });
  service = new SyncService({ baseUrl: server.url, token: staticToken("x") });
  log = new TestLog();
});
afterEach(async () => {
  await service.close();
  await server.stop();
});

const activities = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ id: index + 1, job: 7, what: `run ${index + 1}`, done: true }));
const mapping = { id: "item.id", syncJobId: "item.job", label: "item.what", finished: "item.done" };
const lines = () => log.named("feed.item").map(({ id }) => Number(id));
const fresh = () => log.named("feed.walked").map((event) => event["fresh"]);

/**
 * A reader of the feed of one repository, at this instant; `around` stands in for parts of the
 * book.
 */
function createReader(repository: string, around: Partial<WalkDependencies["feeds"]> = {}, announcer?: ItemAnnouncer) {
  const book = new FeedStore(store);
  const sampling = new ItemSampling();
  return async (count: number, nowMs?: number) => {
    server.lists["synchronizationactivities"] = activities(count);
    const feed = { service: "main", repository, list: "activities" } as const;
    await book.addWaiter(feed, "test", { nowMs: 1, untilMs: 9_999_999_999_999 });
    const bound: WalkDependencies["feeds"] = {
      waiting: (...args) => book.waiting(...args),
      status: (...args) => book.status(...args),
      beginAnew: (...args) => book.beginAnew(...args),
      takeIn: (...args) => book.takeIn(...args),
      keepKnowledge: (...args) => book.keepKnowledge(...args),
      keepShape: (...args) => book.keepShape(...args),
      endWalk: (...args) => book.endWalk(...args),
      failWalk: (...args) => book.failWalk(...args),
      denyWalk: (...args) => book.denyWalk(...args),
      markLogged: (...args) => book.markLogged(...args),
      discoveredSince: (...args) => book.discoveredSince(...args),
      ...around,
    };
    await walkFeed(
      { v: 1, kind: "feed-walk", ...feed },
      {
        feeds: bound,
        nowMs: async () => nowMs ?? (await redisTimeMs(store)) + 60_000,
        service: () => service,
        denialOf: async () => undefined,
        itemMapper: () => createItemMapper("activities", mapping),
        pace: { gapMs: 0, fastestMs: 0, slowestMs: 0 },
        sampling,
        log,
        ...(announcer === undefined ? {} : { announcer }),
      },
      new AbortController().signal,
    );
  };
}

it("logs each new item once with its mapped facts, and none of the first read", async () => {
  const read = createReader("once");
  for (const count of [3, 4, 4, 5]) await read(count);
  expect(lines()).toEqual([4, 5]);
  expect(log.named("feed.item")[0]).toMatchObject({
    syncJobId: "7",
    label: "run 4",
    finished: true,
    repository: "once",
  });
});

it("is written for 20 items a minute; all of them are counted", async () => {
  const read = createReader("many");
  const startMs = (await redisTimeMs(store)) + 60_000;
  await read(1, startMs);
  await read(16, startMs + 1_000);
  await read(46, startMs + 2_000);
  expect(lines()).toEqual(Array.from({ length: 20 }, (_, index) => index + 2));
  await read(49, startMs + 62_000);
  expect(lines().slice(20)).toEqual([47, 48, 49]);
  expect(fresh()).toEqual([1, 15, 30, 3]);
});

it("is written by the next reader when one dies after it has taken a page in", async () => {
  const book = new FeedStore(store);
  const dying = createReader("dies", {
    takeIn: async (...args) => {
      await book.takeIn(...args);
      throw new Error("killed");
    },
  });
  const read = createReader("dies");
  await read(2);
  await expect(dying(4)).rejects.toThrow("killed");
  expect(lines()).toEqual([]);
  await read(5);
  await read(5);
  expect(lines()).toEqual([3, 4, 5]);
  expect(fresh()).toEqual([2, 3]);
});

it.each(["throttled", "server"] as const)(
  "is not written again after a walk that the service broke off (%s)",
  async (kind) => {
    const failed = {
      operation: "GetActivities",
      method: "GET",
      path: "/",
      sent: "no",
      problem: "it broke off",
    } as const;
    // The page had been taken in and logged.
    const broken = createReader(kind, {
      keepKnowledge: async () => {
        throw new ServiceError({ ...failed, kind });
      },
    });
    const read = createReader(kind);
    await read(2);
    await broken(3);
    await read(3);
    await read(4);
    expect(lines()).toEqual([3, 4]);
    expect(fresh()).toEqual([2, 1, 1]);
    expect(log.named("feed.walked").map(({ how }) => how)).toEqual(["whole", "broken-off", "whole"]);
  },
);

/** Notes what is announced, group by group. */
function createAnnouncer(wants = true): ItemAnnouncer & { readonly groups: number[][] } {
  const groups: number[][] = [];
  return {
    groups,
    wants: () => wants,
    announce: async (_feed, group) => void groups.push(group.map(({ id }) => Number(id))),
  };
}

it("announces an item once to each subscriber, without a line limit, not at first", async () => {
  const announcer = createAnnouncer();
  const read = createReader("announced", {}, announcer);
  for (const count of [3, 4, 4, 40]) await read(count);
  expect(announcer.groups).toEqual([[4], Array.from({ length: 36 }, (_, index) => index + 5)]);
  const nobody = createAnnouncer(false);
  await createReader("announced", {}, nobody)(41);
  expect(nobody.groups).toEqual([]);
  // Whoever wants them from now on is not told of what is past.
  await read(42);
  expect(announcer.groups.slice(2)).toEqual([[42]]);
});

it("repeats a group when a reader dies before noting it; later items come apart", async () => {
  const announcer = createAnnouncer();
  const read = createReader("repeated", {}, announcer);
  const dies = async () => {
    throw new Error("killed");
  };
  await read(2);
  await expect(createReader("repeated", { endWalk: dies }, announcer)(4)).rejects.toThrow("killed");
  await expect(createReader("repeated", { takeIn: dies }, announcer)(4)).rejects.toThrow("killed");
  await read(6);
  await read(6);
  expect(announcer.groups).toEqual([
    [3, 4],
    [3, 4],
    [5, 6],
  ]);
});

it("is announced at the end of a walk that the service broke off", async () => {
  const announcer = createAnnouncer();
  const problem = {
    operation: "GetActivities",
    method: "GET",
    path: "/",
    sent: "no",
    problem: "it broke off",
  } as const;
  const keepKnowledge = async () => {
    throw new ServiceError({ ...problem, kind: "server" });
  };
  const read = createReader("broken", {}, announcer);
  await read(2);
  await createReader("broken", { keepKnowledge }, announcer)(3);
  await read(4);
  expect(announcer.groups).toEqual([[3], [4]]);
});
