// A feed over SAP CAP, a server that nobody here wrote: links relative to the service root
// (`%24skiptoken`), which are offsets and shift under writes, and an empty last page. Walked as a
// worker does it, with the feed book in a real Redis.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createItemMapper } from "../../../src/feeds/mapping.ts";
import { type WalkDependencies, walkFeed } from "../../../src/feeds/walk-feed.ts";
import type { ListName } from "../../../src/model/feed.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { type CapServer, startCapServer } from "../../support/cap-server.ts";
import { storeForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

const paths = { activities: "synchronizationactivities", conflictDetails: "syncconflictdetails" } as const;
const ids = { activities: "activityId", conflictDetails: "conflictId" } as const;
let cap: CapServer;

const store = await storeForTest();
beforeAll(async () => {
  cap = await startCapServer();
});
afterAll(async () => {
  cap.stop();
});

async function write(method: "POST" | "DELETE", path: string, body?: object): Promise<void> {
  const init = { method, headers: { "content-type": "application/json" } };
  const url = `${cap.baseUrl}/odata/${path}`;
  const answer = await fetch(url, body === undefined ? init : { ...init, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status}`);
}

/**
 * Follows a list of CAP under a repository of its own. `read` does one walk and answers its kind
 * and how many requests it took.
 */
function follow(list: keyof typeof paths & ListName, repository: string) {
  const log = new TestLog();
  const book = new FeedStore(store);
  const feed = { service: "cap", repository, list } as const;
  let requests = 0;
  let walks = 0;
  const onRequest = () => {
    requests += 1;
  };
  const service = new SyncService({ baseUrl: cap.baseUrl, token: staticToken("x"), retries: 0, onRequest });
  let given: Awaited<ReturnType<typeof readPages>> | undefined;
  /** What happens before each page is taken in, counted from 1. */
  let beforePage: (page: number) => Promise<void> = async () => {};
  const read = async () => {
    await book.addWaiter(feed, "test", { nowMs: 1, untilMs: 9e15 });
    requests = 0;
    walks += 1;
    let page = 0;
    const interrupted: WalkDependencies["feeds"] = new Proxy(book, {
      get: (real, name) => {
        if (name !== "takeIn") return Reflect.get(real, name).bind(real);
        return async (...args: Parameters<FeedStore["takeIn"]>) => {
          page += 1;
          await beforePage(page);
          return real.takeIn(...args);
        };
      },
    });
    const parts: WalkDependencies = {
      feeds: interrupted,
      // A minute later each time: after a walk that took long the next one would wait for its turn.
      nowMs: async () => (await redisTimeMs(store)) + walks * 60_000,
      service: () => service,
      denialOf: async () => undefined,
      itemMapper: () => createItemMapper(list, { id: `item.${ids[list]}` }),
      pace: { gapMs: 0, fastestMs: 0, slowestMs: 0 },
      readings: {
        newerThan: async (_feed, atMs) => (given !== undefined && given.beganAtMs > atMs ? given : undefined),
      },
      log,
    };
    await walkFeed({ v: 1, kind: "feed-walk", ...feed }, parts, new AbortController().signal);
    return requests;
  };
  const known = async () => (await book.discoveredSince(feed, 0)).map(({ id }) => Number(id)).sort((a, b) => a - b);
  const reported = () => log.named("feed.item").map(({ id }) => Number(id));
  const status = () => book.status(feed);
  const on = (hook: typeof beforePage) => {
    beforePage = hook;
  };
  const give = (reading: typeof given) => {
    given = reading;
  };
  return { read, known, reported, status, on, give, log, close: () => service.close() };
}

/** What a poll reads, in the shape in which it is shared. */
async function readPages(list: keyof typeof paths) {
  const service = new SyncService({ baseUrl: cap.baseUrl, token: staticToken("x"), retries: 0 });
  const beganAtMs = await redisTimeMs(store);
  const pages: { url: string; nextLink?: string; items: readonly unknown[] }[] = [];
  const operation = list === "activities" ? "GetActivities" : "GetConflictDetails";
  for await (const { url, nextLink, items } of service.pages(operation))
    pages.push({ url, ...(nextLink === undefined ? {} : { nextLink }), items });
  await service.close();
  return { beganAtMs, pages };
}

const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);

describe("a feed over SAP CAP", () => {
  it("is complete after one walk; a new activity is reported once, for one page", async () => {
    const { read, known, reported, status, log, close } = follow("activities", "grows");
    expect(await read()).toBe(3);
    expect(await known()).toEqual(upTo(250));
    expect(await status()).toMatchObject({ count: 250, walks: 1, failure: undefined });
    for (let id = 251; id <= 254; id += 1) {
      await write("POST", paths.activities, { activityId: id, state: "new" });
      await read();
    }
    expect(log.named("feed.order-found")).toMatchObject([{ order: "tail" }]);
    expect(await read()).toBe(1);
    expect(reported()).toEqual([251, 252, 253, 254]);
    expect(await status()).toMatchObject({ count: 254, failure: undefined });
    for (let id = 251; id <= 254; id += 1) await write("DELETE", `${paths.activities}(${id})`);
    await close();
  });

  it("takes the empty page after 200 items for the end, and finds a later item on it", async () => {
    const { read, known, reported, status, close } = follow("conflictDetails", "full pages");
    // Three pages, and the count that a totals of several pages is held against.
    expect(await read()).toBe(4);
    expect(await status()).toMatchObject({ count: 200, failure: undefined });
    await read();
    expect(reported()).toEqual([]);
    await write("POST", paths.conflictDetails, { conflictId: 201 });
    await read();
    expect(reported()).toEqual([201]);
    expect(await known()).toEqual(upTo(201));
    await write("DELETE", `${paths.conflictDetails}(201)`);
    await close();
  });

  it("goes on at the page where a reader died, by the link as CAP wrote it", async () => {
    const { read, known, on, status, close } = follow("activities", "crash");
    on(async (page) => {
      if (page === 3) throw new Error("killed");
    });
    await expect(read()).rejects.toThrow("killed");
    expect((await known()).length).toBe(200);
    on(async () => {});
    // The page that it stood on is read once more.
    expect(await read()).toBe(2);
    expect(await known()).toEqual(upTo(250));
    expect(await status()).toMatchObject({ count: 250 });
    await close();
  });

  it("loses and repeats nothing when offsets shift under its hands", async () => {
    const { read, known, reported, on, close } = follow("activities", "shifts");
    await read();
    // In mid-walk something comes to stand at the front: the last item of page 1 comes again on
    // page 2.
    on(async (page) => {
      if (page === 1) await write("POST", paths.activities, { activityId: -1, state: "front" });
    });
    await read();
    // And something goes from there: an item slips from page 2 to page 1, behind the reader.
    on(async (page) => {
      if (page === 1) await write("DELETE", `${paths.activities}(1)`);
    });
    await write("POST", paths.activities, { activityId: 300, state: "end" });
    await read();
    on(async () => {});
    await read();
    expect(await known()).toEqual([-1, ...upTo(250), 300]);
    expect(reported().sort((a, b) => a - b)).toEqual([-1, 300]);
    await write("POST", paths.activities, { activityId: 1, state: "s1" });
    for (const id of [-1, 300]) await write("DELETE", `${paths.activities}(${id})`);
    await close();
  });

  it("walks over what a poll has just read without a request, then goes on by itself", async () => {
    const { read, known, reported, status, give, close } = follow("activities", "given");
    give(await readPages("activities"));
    expect(await read()).toBe(0);
    expect(await known()).toEqual(upTo(250));
    const requests: number[] = [];
    for (let id = 251; id <= 253; id += 1) {
      await write("POST", paths.activities, { activityId: id, state: "new" });
      if (id === 252) give(await readPages("activities"));
      requests.push(await read());
    }
    // A look at both ends; none; and from the last page on, since two walks have seen the list grow
    // at its end.
    expect(requests).toEqual([3, 0, 1]);
    expect(reported()).toEqual([251, 252, 253]);
    expect(await status()).toMatchObject({ count: 253, walks: 4 });
    for (let id = 251; id <= 253; id += 1) await write("DELETE", `${paths.activities}(${id})`);
    await close();
  });

  it("restarts over a poll's pages when a walk stopped at a page that is gone", async () => {
    const { read, known, on, give, close } = follow("activities", "given after a crash");
    on(async (page) => {
      if (page === 3) throw new Error("killed");
    });
    await expect(read()).rejects.toThrow("killed");
    on(async () => {});
    const { beganAtMs, pages } = await readPages("activities");
    give({ beganAtMs, pages: pages.map((page) => ({ ...page, url: `${page.url}&other=1` })) });
    expect(await read()).toBe(0);
    expect(await known()).toEqual(upTo(250));
    await close();
  });

  it("finds what slipped past its first walk at the next one that is whole", async () => {
    const { read, known, reported, on, close } = follow("conflictDetails", "slips");
    on(async (page) => {
      if (page === 1) await write("DELETE", `${paths.conflictDetails}(1)`);
    });
    await read();
    on(async () => {});
    await read();
    expect(await known()).toEqual(upTo(200));
    // Whether it slipped depends on when the next page was asked for; if it did, it is new to the
    // second walk, once.
    expect([[], [101]]).toContainEqual(reported());
    await write("POST", paths.conflictDetails, { conflictId: 1 });
    await close();
  });
});
