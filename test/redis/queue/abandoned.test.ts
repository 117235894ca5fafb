// A task whose workers died too often: it ends with an outcome, whatever happens while that is
// written.
import { Queue } from "bullmq";
import { expect, it, onTestFinished } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import { done, snooze } from "../../../src/model/verdict.ts";
import { createConsumer } from "../../../src/queue/consumer.ts";
import { taskOptions } from "../../../src/queue/queues.ts";
import { WorkerConnections } from "../../../src/queue/worker-connections.ts";
import { openStore } from "../../../src/store/redis.ts";
import { redisForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

const target = redisForTest();

it("a task that killed too many workers is not run, and returns until it is ended", async () => {
  const connections = new WorkerConnections(target, silentLog);
  const queue = new Queue("main-actions", { connection: { url: target.url }, prefix: target.prefix });
  const store = await openStore(target);
  const endings: (() => Promise<boolean>)[] = [
    async () => {
      throw new Error("Redis does not answer");
    },
    async () => false,
    async () => true,
  ];
  const reasons: string[] = [];
  let worked = 0;
  const consumer = createConsumer({
    ...{ connections, queue: "main-actions", concurrency: 1, takeOverAfterMs: 5_000, drainMs: 1_000 },
    ...{ clockAheadMs: () => 0, log: silentLog },
    process: async () => {
      worked += 1;
      return done;
    },
    endAbandoned: async (_item, reason) => {
      reasons.push(reason);
      return (await endings.shift()?.()) ?? true;
    },
  });
  onTestFinished(async () => {
    await consumer.stop();
    await queue.close();
    await connections.stop();
    await store.close();
  });
  const doomed = await queue.add("run", {}, { ...taskOptions, jobId: "doomed" });
  const dying = await queue.add("run", {}, { ...taskOptions, jobId: "dying" });
  // As the queue counts the deaths of workers.
  await store.redis.hset(`${target.prefix}:main-actions:doomed`, "stc", 4);
  await store.redis.hset(`${target.prefix}:main-actions:dying`, "stc", 3);
  await consumer.start();
  await expect.poll(() => doomed.getState()).toBe("completed");
  await expect.poll(() => dying.getState()).toBe("completed");
  expect(worked).toBe(1);
  expect(reasons).toEqual(Array(3).fill(expect.stringMatching(/^4 times in a row a worker fell silent over it/)));
});

it("a task that lost its lock while Redis was away is run, however often that was", async () => {
  const connections = new WorkerConnections(target, silentLog);
  const queue = new Queue("main-polls", { connection: { url: target.url }, prefix: target.prefix });
  const store = await openStore(target);
  const log = new TestLog();
  const abandoned: string[] = [];
  const outages = 5;
  let steps = 0;
  const consumer = createConsumer({
    ...{ connections, queue: "main-polls", concurrency: 1, takeOverAfterMs: 200, drainMs: 1_000, log },
    clockAheadMs: () => 0,
    process: async () => {
      steps += 1;
      if (steps % 2 === 0) return steps >= 2 * outages ? done : snooze(Date.now());
      // As an outage that is longer than the lock's life.
      await store.redis.del(`${target.prefix}:main-polls:patient:lock`);
      const stalls = (steps + 1) / 2;
      await log.until(() => log.named("task.stalled").length >= stalls);
      return snooze(Date.now());
    },
    endAbandoned: async (_item, reason) => {
      abandoned.push(reason);
      return true;
    },
  });
  onTestFinished(async () => {
    await consumer.stop();
    await connections.stop();
    await queue.close();
    await store.close();
  });
  await consumer.start();
  const patient = await queue.add("poll", {}, { ...taskOptions, jobId: "patient" });
  await expect.poll(() => patient.getState()).toBe("completed");
  expect(abandoned).toEqual([]);
  expect(steps).toBeGreaterThanOrEqual(2 * outages);
});
