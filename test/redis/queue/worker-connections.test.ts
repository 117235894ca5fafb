// Workers of many queues on the connections of one process: how soon they take a task, whatever
// happens to Redis meanwhile. A queue is asked without a marker every 8 s: what comes within five
// was not found by that.
import { Queue, RedisQueueBackend, Worker } from "bullmq";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import type { PrivateRedis } from "../../../scripts/redis.mjs";
import { silentLog } from "../../../src/core/event-log.ts";
import { done, snooze, type Verdict } from "../../../src/model/verdict.ts";
import { createConsumer } from "../../../src/queue/consumer.ts";
import { backendParts, OpenQueues, SharedConnection, taskOptions } from "../../../src/queue/queues.ts";
import { WorkerConnections } from "../../../src/queue/worker-connections.ts";
import { createRedisClient } from "../../../src/store/connect.ts";
import { openStore, redisTimeMs } from "../../../src/store/redis.ts";
import { readRedisFacts } from "../../../src/store/redis-facts.ts";
import { clientOf, freePort, startServer, until } from "../../support/redis-servers.ts";
import { restoreClock, shiftClock } from "../../support/shifted-clock.ts";

const soonMs = 5_000;
let server: PrivateRedis;
let prefixes = 0;

beforeAll(async () => {
  // Not one that the system gives out: a test starts it again on its port.
  server = await startServer({ port: await freePort() });
});

/** A prefix with producers, and consumers whose steps are told what to answer. */
function fixtureForTest(clockAheadMs = 0) {
  prefixes += 1;
  const target = { url: server.url, prefix: `{p${prefixes}}` };
  const taken: string[] = [];
  const steps = new Map<string, () => Promise<Verdict>>();
  const queues = new OpenQueues(target, silentLog);
  const stops: (() => Promise<void>)[] = [() => queues.close()];
  onTestFinished(async () => {
    await Promise.all(stops.map((stop) => stop()));
  });
  return {
    target,
    taken,
    steps,
    add: (queue: string, id: string, delay = 0) =>
      queues.call(queue, (opened) => opened.add("run", { id }, { ...taskOptions, jobId: id, delay })),
    /** Starts a process's consumers; answers how to stop them, while its connections stay. */
    start: async (names: readonly string[], concurrency = 1) => {
      const connections = new WorkerConnections(target, silentLog);
      const consumers = names.map((queue) =>
        createConsumer({
          ...{ connections, queue, concurrency, takeOverAfterMs: 30_000, drainMs: 1_000, log: silentLog },
          clockAheadMs: () => clockAheadMs,
          process: async (item) => {
            const { id } = item as { readonly id: string };
            taken.push(id);
            return (await steps.get(id)?.()) ?? done;
          },
          endAbandoned: async () => true,
        }),
      );
      await Promise.all(consumers.map((consumer) => consumer.start()));
      const stopConsumers = () => Promise.all(consumers.map((consumer) => consumer.stop()));
      stops.push(async () => {
        await stopConsumers();
        await connections.stop();
      });
      return stopConsumers;
    },
    until: (ids: readonly string[], withinMs = soonMs) =>
      until(
        () => ids.filter((id) => !taken.includes(id)),
        (missing) => missing.length === 0,
        withinMs,
      ),
  };
}

function numbered(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index}`);
}

describe("the workers of forty queues in one process", () => {
  it("have two connections, and take what is added to each queue at once", async () => {
    const admin = clientOf(server.port);
    const connections = async () =>
      String(await admin.call("CLIENT", "LIST"))
        .trim()
        .split("\n").length;
    const before = await connections();
    const { start, add, until: untilTaken } = fixtureForTest();
    const names = numbered("queue", 40);
    await start(names);
    for (const round of ["first", "second"]) {
      await Promise.all(names.map((name) => add(name, `${round}-${name}`)));
      await untilTaken(names.map((name) => `${round}-${name}`));
    }
    // One of them is the producers'.
    expect((await connections()) - before).toBe(3);
  });

  it("take a task that is asleep when it is due, not earlier", async () => {
    const { start, steps, taken, add, until: untilTaken } = fixtureForTest();
    const names = numbered("queue", 40);
    await start(names);
    const dueMs = Date.now() + 1_500;
    let secondMs = 0;
    steps.set("sleeper", async () => {
      if (taken.filter((id) => id === "sleeper").length === 1) return snooze(dueMs);
      secondMs = Date.now();
      return done;
    });
    await add("queue-7", "sleeper");
    await untilTaken(["sleeper"]);
    await until(
      () => secondMs,
      (atMs) => atMs > 0,
      1_500 + soonMs,
    );
    expect(secondMs).toBeGreaterThanOrEqual(dueMs);
  });

  it("take tasks of the others while one queue has a long burst", async () => {
    const { start, taken, add, until: untilTaken } = fixtureForTest();
    const names = numbered("queue", 40);
    await start(names);
    const burst = numbered("burst", 2_000);
    const adding = Promise.all(burst.map((id) => add("queue-0", id)));
    await untilTaken(["burst-0"]);
    await Promise.all(names.slice(1).map((name) => add(name, `other-${name}`)));
    await untilTaken(names.slice(1).map((name) => `other-${name}`));
    await adding;
    await untilTaken(burst, 60_000);
    expect(taken).toHaveLength(2_039);
  });
});

describe("a machine whose clock differs from that of Redis", () => {
  it.each([
    ["a minute ahead", 60_000],
    ["a minute behind", -60_000],
  ])("takes a sleeping task when it is due by Redis: %s", async (_where, shiftMs) => {
    const store = await openStore({ url: server.url, prefix: "{shifted}" });
    onTestFinished(() => store.close());
    shiftClock(shiftMs);
    onTestFinished(restoreClock);
    const { clockAheadMs } = await readRedisFacts(store);
    const { start, steps, add } = fixtureForTest(clockAheadMs);
    const takenMs: number[] = [];
    steps.set("sleeper", async () => {
      const nowMs = await redisTimeMs(store);
      takenMs.push(nowMs);
      return takenMs.length < 3 ? snooze(nowMs + 1_000) : done;
    });
    await start(["main"]);
    await add("main", "sleeper");
    const [first = 0, second = 0, third = 0] = await until(
      () => takenMs,
      ({ length }) => length === 3,
      2_000 + soonMs,
    );
    // How far ahead the clock is was measured with a trip to Redis.
    expect(second - first).toBeGreaterThanOrEqual(500);
    expect(third - second).toBeGreaterThanOrEqual(500);
  });
});

/** Takes the next marker of the queue `main`, as a process that is killed with it. */
async function takeMarker(prefix: string): Promise<{ readonly taken: Promise<unknown> }> {
  const taken = clientOf(server.port).bzpopmin(`${prefix}:main:marker`, 0);
  // Redis serves who waits longest.
  await untilRead(1);
  return { taken };
}

/** Waits until so many clients wait for a marker. */
async function untilRead(count: number): Promise<void> {
  const admin = clientOf(server.port);
  await until(
    () => admin.info("clients"),
    (info) => info.includes(`blocked_clients:${count}`),
  );
}

describe("a task whose marker was lost with a killed process", () => {
  it("is taken within 8 s", async () => {
    const { start, target, add, until: untilTaken } = fixtureForTest();
    const { taken } = await takeMarker(target.prefix);
    await start(["main"]);
    await add("main", "unmarked");
    await taken;
    await untilTaken(["unmarked"], 8_000 + soonMs);
  });

  it("is taken after a reconnect, and the next one by another process meanwhile", async () => {
    const { start, steps, target, add, until: untilTaken } = fixtureForTest();
    const busy = Promise.withResolvers<Verdict>();
    steps.set("unmarked", () => busy.promise);
    const { taken } = await takeMarker(target.prefix);
    await start(["main", "other"]);
    await add("main", "unmarked");
    await taken;
    // Over new connections the worker looks, and takes it.
    await clientOf(server.port).call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await untilTaken(["unmarked"]);
    await untilRead(1);
    await start(["main"]);
    await untilRead(2);
    await add("main", "next");
    await untilTaken(["next"]);
    busy.resolve(done);
  });
});

it("a marker read for a worker that has stopped goes to another process at once", async () => {
  const { start, add, until: untilTaken } = fixtureForTest();
  const stopFirst = await start(["main"]);
  await untilRead(1);
  await start(["main"]);
  await untilRead(2);
  await stopFirst();
  // The read of the first process goes on, and is served first.
  await add("main", "next");
  await untilTaken(["next"]);
});

it("a sleeping task of which only a stopped worker knew is taken when it is due", async () => {
  const { start, add, until: untilTaken } = fixtureForTest();
  const stopFirst = await start(["main"]);
  await untilRead(1);
  await start(["main"]);
  await untilRead(2);
  await add("main", "sleeper", 1_500);
  await stopFirst();
  await untilTaken(["sleeper"], 1_500 + soonMs);
});

describe("workers whose Redis", () => {
  it("cut all connections take what is added next", async () => {
    const { start, add, until: untilTaken } = fixtureForTest();
    await start(["main", "other"]);
    const admin = clientOf(server.port);
    await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await add("main", "after");
    await add("other", "after, too");
    await untilTaken(["after", "after, too"]);
  });

  it("was away take what is added as soon as it is back", async () => {
    const { start, add, until: untilTaken } = fixtureForTest();
    await start(["main", "other"]);
    const { port } = server;
    await server.stop();
    server = await startServer({ port });
    const added = () => add("main", "after").catch(() => undefined);
    await until(added, (job) => job !== undefined);
    await untilTaken(["after"]);
  });

  it("was silent take what is added as soon as it answers", async () => {
    const { start, add, until: untilTaken } = fixtureForTest();
    await start(["main", "other"]);
    process.kill(server.pid, "SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, 8_000));
    process.kill(server.pid, "SIGCONT");
    await until(
      () => add("main", "after").catch(() => undefined),
      (job) => job !== undefined,
    );
    await untilTaken(["after"]);
  });
});

describe("BullMQ's worker and its backend", () => {
  let queue: Queue;
  beforeAll(() => {
    queue = new Queue("seam", { connection: { url: server.url }, prefix: "{seam}" });
  });
  afterAll(() => queue.close());

  it("keep to what the shared connections rely on", async () => {
    const client = createRedisClient({ url: server.url, prefix: "{seam}" }, "worker");
    const connection = new SharedConnection(client, () => {});
    const calls: string[] = [];
    const waits: ((marker: { member: string; score: number } | null) => void)[] = [];
    class RecordingBackend extends RedisQueueBackend {
      override async moveToActive(token: string, name?: string) {
        calls.push("look");
        return super.moveToActive(token, name);
      }
      override waitForJob(blockTimeoutS: number) {
        calls.push(`wait ${blockTimeoutS}`);
        return new Promise<{ member: string; score: number } | null>((resolve) => waits.push(resolve));
      }
      override async disconnectBlocking() {
        calls.push("disconnect");
        waits.at(-1)?.({ member: "", score: Number.POSITIVE_INFINITY });
      }
      override async close() {
        calls.push("close");
      }
    }
    const worker = new Worker(
      "seam",
      async () => calls.push("work"),
      { connection: client, prefix: "{seam}", drainDelay: 15, concurrency: 2 },
      (name, options) => new RecordingBackend(...backendParts(connection, name, options)),
    );
    const markers = () => client.zrange("{seam}:seam:marker", "0", "-1", "WITHSCORES");
    const waitsFor = (count: number) =>
      until(
        () => waits.length,
        (is) => is === count,
        60_000,
      );
    await waitsFor(1);
    // Two jobs leave one marker, which ends the wait; the worker takes both, and waits once.
    await queue.addBulk([
      { name: "run", data: {} },
      { name: "run", data: {} },
    ]);
    expect(await markers()).toEqual(["0", "0"]);
    await client.zpopmin("{seam}:seam:marker");
    waits[0]?.({ member: "0", score: 0 });
    await waitsFor(2);
    expect(calls.filter((call) => call === "work")).toHaveLength(2);
    // The one that it left for the second job, for another worker.
    expect(await client.zpopmin("{seam}:seam:marker")).toEqual(["0", "0"]);
    // Nothing to take: it looks once more.
    const looks = calls.filter((call) => call === "look").length;
    waits[1]?.(null);
    await waitsFor(3);
    expect(calls.filter((call) => call === "look")).toHaveLength(looks + 1);
    // A delayed job leaves its instant, until which the worker waits without a look.
    await queue.add("run", {}, { delay: 60_000, timestamp: Date.now() });
    const [, score = ""] = await markers();
    await client.zpopmin("{seam}:seam:marker");
    waits[2]?.({ member: "1", score: Number(score) });
    await waitsFor(4);
    expect(calls.at(-1)).toBe("wait 10");
    expect(calls.at(-2)).toBe("wait 15");
    await worker.pause(true);
    await worker.close();
    expect(calls.slice(-2)).toEqual(["disconnect", "close"]);
    // It left the connection open.
    expect(await client.ping()).toBe("PONG");
    client.disconnect();
  });
});
