// How a run ends whose activities were read in part, or could not be read: walked as a worker does
// it, with the feed book and the journal in a real Redis.
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Denial } from "../../../src/core/limiter.ts";
import { createItemMapper } from "../../../src/feeds/mapping.ts";
import { walkFeed } from "../../../src/feeds/walk-feed.ts";
import type { Task } from "../../../src/model/task.ts";
import { SyncService, staticToken } from "../../../src/service/client.ts";
import { FeedStore, feedStatusKey } from "../../../src/store/feed-store.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { baselineSince, writeBaseline } from "../../../src/tasks/baseline.ts";
import { feedOf, followedLists } from "../../../src/tasks/followed-lists.ts";
import { stepRun } from "../../../src/tasks/run.ts";
import { testPolicy } from "../../support/policies.ts";
import { storeForTest } from "../../support/redis.ts";
import { testDeps } from "../../support/task-deps.ts";
import { TestLog } from "../../support/test-log.ts";

const store = await storeForTest();
const journal = new StartJournal(store);
const book = new FeedStore(store);
const pageSize = 2;
const minute = 60_000;

interface Activity {
  readonly id: number;
  readonly job: number;
  done: boolean;
}

let [activities, status]: [Activity[], number] = [[], 200];
let denied: Denial | undefined;

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
  const items = pathname.includes("synchronizationactivities") ? activities : [];
  if (status !== 200) return void response.writeHead(status).end("{}");
  if (pathname.endsWith("$count"))
    return void response.writeHead(200, { "content-type": "text/plain" }).end(String(items.length));
  const from = Number(searchParams.get("skip") ?? 0);
  const isMore = from + pageSize < items.length;
  const page = {
    value: items.slice(from, from + pageSize),
    ...(isMore ? { "@odata.nextLink": `?skip=${from + pageSize}` } : {}),
  };
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(page));
});
let service: SyncService;

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  service = new SyncService({ baseUrl: `http://127.0.0.1:${port}`, token: staticToken("x"), retries: 0 });
});
afterAll(async () => {
  await service.close();
  server.close();
});
beforeEach(() => {
  [activities, status, denied] = [[], 200, undefined];
});

const mapping = { id: "string(item.id)", syncJobId: "string(item.job)", finished: "item.done" };

/** Adds so many activities of another sync job that go on, or one of the run's. */
const add = (count: number, job = 7) => {
  for (let index = 0; index < count; index += 1) activities.push({ id: activities.length + 1, job, done: false });
};

/** A run of sync job 42 that was answered, with a baseline of both lists. */
async function answered(id: string, deadlineMs: number) {
  const task: Task = {
    ...{ v: 1, id, kind: "run", policy: "nightly", service: "main", repository: id, target: "42", slotMs: 0 },
    ...{ origin: "manual", covers: [], startByMs: 9_999_999_999_999 },
  };
  const policy = testPolicy({ follow: { ...testPolicy().follow, deadlineMs } });
  const nowMs = () => redisTimeMs(store);
  const mapperOf = (list: "activities" | "conflictDetails") =>
    createItemMapper(list, list === "activities" ? mapping : {});
  const deps = testDeps(store, {
    ...{ journal, feeds: book, nowMs },
    service: () => service,
    policy: () => policy,
    itemMapper: ({ list }) => mapperOf(list as "activities"),
  });
  const walk = async (list: (typeof followedLists)[number] = "activities") => {
    await book.addWaiter(feedOf(task, list), id, { nowMs: 1, untilMs: 9e15 });
    // The rest after the walk before is over.
    await store.redis.hdel(feedStatusKey(store, feedOf(task, list)), "ownWalkEndedAtMs");
    const parts = {
      ...{ feeds: book, nowMs, log: new TestLog() },
      service: () => service,
      denialOf: async () => denied,
      itemMapper: () => mapperOf(list),
      pace: { gapMs: 0, fastestMs: 0, slowestMs: 0 },
    };
    await walkFeed({ v: 1, kind: "feed-walk", ...feedOf(task, list) }, parts, new AbortController().signal);
  };
  const start = async () => {
    await journal.claim(id, "me");
    const baseline = writeBaseline(await baselineSince(task, deps, 0));
    await journal.beginSending(task, "me", { startByMs: task.startByMs, baseline });
    await journal.noteConfirmed(task, "answer");
  };
  const step = async () => stepRun(task, deps, { claimant: "me", entry: await journal.claim(id, "me") });
  /** As if so much time had passed since all that Redis knows of the run and its failing lists. */
  const age = async (ms: number) => {
    const instants = ["sentAtMs", "failingSinceMs", "failedAtMs", "unreadSinceMs", "unreadUntilMs"];
    const keys = [store.key("start", id), ...followedLists.map((list) => feedStatusKey(store, feedOf(task, list)))];
    for (const key of keys)
      for (const field of instants)
        if ((await store.redis.hexists(key, field)) === 1) await store.redis.hincrby(key, field, -ms);
  };
  return { task, walk, start, step, age };
}

describe("a run whose activity stands on a page that walks leave out", () => {
  it("is not timed out by such a walk: it may have ended there in time", async () => {
    const { task, walk, start, step, age } = await answered("left-out", minute);
    add(80);
    await walk();
    // It grows at its end: from then on it is read from there.
    for (let round = 0; round < 3; round += 1) {
      add(1);
      await walk();
    }
    await walk("conflictDetails");
    await start();
    add(1, 42);
    add(4);
    await walk();
    expect(await step()).toMatchObject({ verdict: "snooze" });
    const { wholeWalkBeganAtMs } = await book.status(feedOf(task, "activities"));
    for (const one of activities) one.done = one.job === 42;
    await age(minute);
    for (const list of followedLists) await walk(list);
    expect((await book.status(feedOf(task, "activities"))).wholeWalkBeganAtMs).toBe(wholeWalkBeganAtMs);
    expect(await step()).toMatchObject({ verdict: "snooze" });
    await walk();
    expect(await step()).toMatchObject({ verdict: "snooze" });
    await walk("conflictDetails");
    expect(await step()).toMatchObject({ verdict: "complete", ending: { status: "succeeded" } });
  });
});

describe("a run of which a walk has failed", () => {
  const unreadable = { verdict: "complete", ending: { status: "unknown", detail: expect.stringContaining("500") } };

  /** Its activities failed once, right after its start. */
  const failedOnce = async (id: string) => {
    const run = await answered(id, 120 * minute);
    for (const list of followedLists) await run.walk(list);
    await run.start();
    status = 500;
    await run.walk();
    expect(await run.step()).toMatchObject({ verdict: "snooze" });
    return run;
  };
  const walkFor = async ({ age, walk }: Awaited<ReturnType<typeof failedOnce>>, minutes: number) => {
    for (let halves = 0; halves < 2 * minutes; halves += 1) {
      await age(minute / 2);
      await walk();
    }
  };

  it("is not unknown after minutes in which nothing was asked", async () => {
    const run = await failedOnce("away");
    await run.age(6 * minute);
    expect(await run.step()).toMatchObject({ verdict: "snooze" });
    status = 200;
    add(1, 42);
    for (const one of activities) one.done = true;
    await run.walk();
    expect(await run.step()).toMatchObject({ verdict: "snooze" });
    await run.walk("conflictDetails");
    expect(await run.step()).toMatchObject({ verdict: "complete", ending: { status: "succeeded" } });
  });

  it("is unknown after five minutes of tries, counted anew after a pause", async () => {
    const run = await failedOnce("tried");
    await run.age(6 * minute);
    await run.walk();
    await walkFor(run, 4.5);
    expect(await run.step()).toMatchObject({ verdict: "snooze" });
    await walkFor(run, 0.5);
    expect(await run.step()).toMatchObject(unreadable);
  });

  it("is unknown after five minutes of an open breaker, which lets few walks try", async () => {
    const run = await failedOnce("open");
    denied = { deniedBy: "breaker", waitMs: 30_000 };
    await walkFor(run, 4.5);
    expect(await run.step()).toMatchObject({ verdict: "snooze" });
    await walkFor(run, 0.5);
    expect(await run.step()).toMatchObject(unreadable);
  });

  it("is not unknown while the service says when to ask again", async () => {
    const run = await failedOnce("throttled");
    denied = { deniedBy: "throttle", waitMs: 30_000 };
    await walkFor(run, 6);
    expect(await run.step()).toMatchObject({ verdict: "snooze" });
  });
});
