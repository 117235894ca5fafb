// What a queue tells: the status of a task, as a task that waits for its lease asks; its backlog.
import { afterAll, beforeAll, expect, it } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import { parseTask } from "../../../src/model/task.ts";
import { complete, done, fail, retry, snooze, type Verdict } from "../../../src/model/verdict.ts";
import type { Consumer } from "../../../src/queue/base-consumer.ts";
import { createConsumer } from "../../../src/queue/consumer.ts";
import { Producer } from "../../../src/queue/producer.ts";
import { WorkerConnections } from "../../../src/queue/worker-connections.ts";
import { tasksOf } from "../../../src/schedule/slot-tasks.ts";
import { openStore } from "../../../src/store/redis.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
const policy = testPolicy();
let producer: Producer;
let consumer: Consumer;
const connections = new WorkerConnections(target, silentLog);
const verdicts = new Map<number, Verdict>();
const worked = new Set<number>();

beforeAll(async () => {
  producer = new Producer(target, silentLog);
  consumer = createConsumer({
    ...{ connections, queue: `${policy.service}-actions`, concurrency: 4 },
    ...{ takeOverAfterMs: 5_000, drainMs: 1_000, clockAheadMs: () => 0, log: silentLog },
    process: async (item) => {
      const { slotMs } = parseTask(item);
      worked.add(slotMs);
      return verdicts.get(slotMs) ?? done;
    },
    endAbandoned: async () => true,
  });
  await consumer.start();
});
afterAll(async () => {
  await consumer.stop();
  await connections.stop();
  await producer.close();
});

it.each<[string, Verdict, string]>([
  ["is completed when its worker said so", done, "completed"],
  ["is completed when nothing was to be done", complete("skipped"), "completed"],
  ["is missing when it was given up", fail("failed"), "missing"],
  ["is pending while it sleeps", snooze(9_999_999_999_999), "pending"],
  ["is pending before its next attempt", retry(3_600_000, "refused"), "pending"],
])("a task %s", async (_, verdict, status) => {
  const slotMs = 1_700_000_000_000 + 5_000 * verdicts.size;
  verdicts.set(slotMs, verdict);
  const tasks = tasksOf(policy, { slotMs, origin: "schedule", covers: [] });
  const id = tasks[0]?.id ?? "";
  await producer.enqueue(tasks);
  const isDone = async () => worked.has(slotMs) && (await producer.backlog(policy.service, "actions")).active === 0;
  await expect.poll(isDone).toBe(true);
  expect(await producer.jobStatus(policy.service, id)).toBe(status);
});

it("a task that the queue does not know is missing", async () => {
  expect(await producer.jobStatus(policy.service, "unknown")).toBe("missing");
});

it("behind 20 tasks that were tried before, the oldest new one is found", async () => {
  const slots = Array.from({ length: 21 }, (_, index) => 1_700_000_000_000 + 5_000 * index);
  const idle = testPolicy({ service: "idle" });
  const tasks = slots.flatMap((slotMs) => tasksOf(idle, { slotMs, origin: "schedule", covers: [] }));
  await producer.enqueue(tasks);
  const store = await openStore(target);
  for (const { id } of tasks.slice(0, 20))
    await store.redis.hset(`${target.prefix}:idle-actions:${id}`, "processedOn", 1_700_000_000_000);
  await store.close();
  const { oldestMs } = await producer.backlog("idle", "actions");
  const untried = await Promise.all(tasks.slice(20).map((task) => producer.find(task)));
  expect(untried).toMatchObject([{ state: "waiting", queuedAtMs: oldestMs }]);
});
