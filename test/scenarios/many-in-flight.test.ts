// Runs in flight cost next to nothing while nothing appears: they sleep, and the walk that sees the
// end of one wakes that one alone.
import { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import type { Task } from "../../src/model/task.ts";
import { Producer } from "../../src/queue/producer.ts";
import { openStore } from "../../src/store/redis.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import { writeBaseline } from "../../src/tasks/baseline.ts";
import { often } from "../support/processes.ts";
import { shortTiming } from "../support/short-timing.ts";
import { TestLog } from "../support/test-log.ts";
import { type WorldOptions, worldForTest } from "../support/world.ts";

const sleepers = 1_000;
/** Who is not woken sleeps longer than the whole test takes. */
const timing = { ...shortTiming, wokenPaceMs: 120_000 };
const pace = { gapMs: 100, fastestMs: 200, slowestMs: 300 };
const policies = `  - { name: ends, service: main, repository: HR, run: { syncJobs: [3] } }
  - { name: goes-on, service: main, repository: HR, run: { syncJobs: [7] }, follow: { until: settled, deadline: 1h, unreadableFor: 1h } }`;

/** Leaves a thousand runs in Redis that were started and have not ended. */
const before: WorldOptions["before"] = async (target) => {
  const store = await openStore(target);
  const producer = new Producer(target, new TestLog());
  const journal = new StartJournal(store);
  const baseline = writeBaseline({ activities: 0, conflictDetails: 0 });
  const tasks = Array.from({ length: sleepers }, (_, index): Task => {
    const facts = { kind: "run", policy: "goes-on", service: "main", repository: "HR", origin: "manual" } as const;
    const target = String(10_000 + index);
    return { v: 1, id: `goes-on__run__${target}__m1`, ...facts, target, slotMs: 1, covers: [], startByMs: 9e15 };
  });
  await Promise.all(
    tasks.map(async (task) => {
      await journal.claim(task.id, "before");
      await journal.beginSending(task, "before", { startByMs: task.startByMs, baseline });
      await journal.noteConfirmed(task, "evidence");
    }),
  );
  await producer.enqueue(tasks);
  await producer.close();
  await store.close();
};

describe("a thousand runs in flight", () => {
  it("look once and sleep, while one that ends is woken by the walk that sees it", async () => {
    // No lock runs out while the process stands still.
    const patient = { timing, pace, takeOverAfterMs: 60_000 };
    const world = await worldForTest({ policies, before, ...patient, sandbox: { runMs: [2_000, 2_500] } });
    const { log, target, actions, run } = world;
    const client = new Redis(target.url);
    const sleeps = async () => {
      const events = await client.xrange(`${target.prefix}:main-actions:events`, "-", "+");
      return events.filter(
        ([, fields]) => fields.includes("delayed") && fields.some((one) => one.startsWith("goes-on")),
      );
    };
    const walks = async () => {
      const [key = ""] = await client.keys(`${target.prefix}:feed:activities-*`);
      return Number(await client.hget(key, "walks"));
    };
    await expect.poll(() => actions("main"), often).toEqual({ active: 0, delayed: sleepers });
    const walked = await walks();
    expect(await run("ends")).toMatchObject({ status: "succeeded", evidence: "direct" });
    await expect.poll(walks, often).toBeGreaterThanOrEqual(walked + 5);
    expect(await sleeps()).toHaveLength(sleepers);
    expect(log.outcomesOf("goes-on")).toEqual([]);
    expect(await actions("main")).toEqual({ active: 0, delayed: sleepers });
    client.disconnect();
  });
});
