// A thousand runs in flight in one repository, over two replicas, all of which watch three lists:
// each list is asked for by one reader.
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { feedId } from "../../src/model/feed.ts";
import type { Task } from "../../src/model/task.ts";
import { Producer } from "../../src/queue/producer.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { openStore } from "../../src/store/redis.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import { writeBaseline } from "../../src/tasks/baseline.ts";
import { often } from "../support/processes.ts";
import { shortTiming } from "../support/short-timing.ts";
import { TestLog } from "../support/test-log.ts";
import { type WorldOptions, worldForTest } from "../support/world.ts";

const runs = 1_000;
const lists = {
  activities: "GetActivities",
  conflictDetails: "GetConflictDetails",
  approvals: "GetApprovals",
} as const;
const pollers = ["a", "b", "c", "d", "e"];
// Approvals are watched from a fifth of `blockedAfter` on.
const policies = `  - name: goes-on
    service: main
    repository: HR
    run: { syncJobs: [7] }
    follow: { until: settled, deadline: 1h, blockedAfter: 15s, unreadableFor: 10m }
${pollers.map((name) => `  - { name: ${name}, service: main, repository: HR, poll: { list: approvals, expect: "size(items) >= 0" } }`).join("\n")}`;

/** Leaves runs in Redis that were started and have not ended. */
const before: WorldOptions["before"] = async (target) => {
  const store = await openStore(target);
  const producer = new Producer(target, new TestLog());
  const journal = new StartJournal(store);
  const baseline = writeBaseline({ activities: 0, conflictDetails: 0, approvals: 0 });
  const facts = { kind: "run", policy: "goes-on", service: "main", repository: "HR", origin: "manual" } as const;
  const tasks = Array.from({ length: runs }, (_, index): Task => {
    const name = String(10_000 + index);
    return { v: 1, id: `goes-on__run__${name}__m1`, ...facts, target: name, slotMs: 1, covers: [], startByMs: 9e15 };
  });
  const begin = async (task: Task) => {
    await journal.claim(task.id, "before");
    await journal.beginSending(task, "before", { startByMs: task.startByMs, baseline });
    await journal.noteConfirmed(task, "evidence");
  };
  await Promise.all(tasks.map(begin));
  await producer.enqueue(tasks);
  await producer.close();
  await store.close();
};

const requestsOf = (sandbox: Sandbox, list: keyof typeof lists) =>
  Object.values(sandbox.requests()[lists[list]] ?? {}).reduce((sum, count) => sum + count, 0);

it("reads each list as often as one reader would, and once more for five polls", async () => {
  const world = await worldForTest({
    // No lock runs out while the process stands still.
    ...{ policies, before, replicas: 2, takeOverAfterMs: 60_000 },
    timing: { ...shortTiming, wokenPaceMs: 120_000 },
    pace: { gapMs: 100, fastestMs: 200, slowestMs: 300 },
    // Each list is one page, so each walk is one request.
    sandbox: { pageSize: 1_000 },
  });
  const { sandbox, target, log } = world;
  const client = new Redis(target.url);
  const keyOf = (name: string, list: keyof typeof lists) =>
    `${target.prefix}:${name}:${feedId({ service: "main", repository: "HR", list })}`;
  const walks = async (list: keyof typeof lists) => Number(await client.hget(keyOf("feed", list), "walks"));
  for (const list of ["activities", "conflictDetails", "approvals"] as const)
    await expect.poll(() => client.zcard(keyOf("feed-waiters", list)), often).toBe(runs);
  const slotMs = Date.now();
  await Promise.all(pollers.map((name) => world.enqueue(name, slotMs)));
  await log.until(() => pollers.every((name) => log.outcomesOf(name).length === 1));
  const walked = await walks("approvals");
  await expect.poll(() => walks("approvals"), often).toBeGreaterThan(walked + 3);
  for (const list of ["activities", "conflictDetails", "approvals"] as const) {
    const ended = await walks(list);
    const requests = requestsOf(sandbox, list);
    expect(ended).toBeGreaterThan(3);
    expect(requests).toBeGreaterThanOrEqual(ended);
    // The polls' one, and a walk that is under way or ended between these two lines.
    expect(requests).toBeLessThanOrEqual(ended + 3);
  }
  expect(log.outcomesOf("goes-on")).toEqual([]);
  client.disconnect();
});
