// What is in flight is found also behind many tasks of others.
import { expect, it } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import { Producer } from "../../../src/queue/producer.ts";
import { readTasksInFlight } from "../../../src/queue/tasks-in-flight.ts";
import { tasksOf } from "../../../src/schedule/slot-tasks.ts";
import { History } from "../../../src/store/history.ts";
import { runHere } from "../../support/commands-here.ts";
import { keepSet } from "../../support/kept-set.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";

const target = redisForTest();
const store = await storeForTest(target);
const waiting = store.key("main-actions", "wait");

/** Ids in front of those that wait: the queue takes from the other end. */
async function putBefore(count: number, name: string): Promise<void> {
  for (let at = 0; at < count; at += 10_000) {
    const ids = Array.from({ length: Math.min(10_000, count - at) }, (_, index) => `${name}__run__1__${at + index}`);
    await store.redis.lpush(waiting, ...ids);
  }
}

it("finds the tasks of one policy behind 10,000 others, and counts all", async () => {
  const producer = new Producer(target, silentLog);
  await producer.enqueue(tasksOf(testPolicy({ name: "mine" }), { slotMs: 1_000, origin: "manual", covers: [] }));
  await producer.close();
  await putBefore(25_000, "other");
  const mine = await readTasksInFlight(store, ["main"], (name) => name === "mine");
  expect([mine.total, mine.tasks.length, mine.isCut]).toEqual([1, 1, false]);
  expect(mine.tasks[0]?.task).toMatchObject({ policy: "mine" });
  expect((await readTasksInFlight(store, ["main"], () => true)).total).toBe(25_001);
});

it("says when there are more than it looks through", async () => {
  await putBefore(180_000, "other");
  const mine = await readTasksInFlight(store, ["main"], (name) => name === "mine");
  expect([mine.total, mine.isCut]).toEqual([0, true]);
  await keepSet(store, [testPolicy({ name: "mine" })]);
  const command = (...args: string[]) => runHere([...args, "--prefix", target.prefix, "--redis-url", target.url]);
  const none = "is among the first 200,000 of a queue";
  expect((await command("running", "mine")).err).toContain(`nothing of this ${none}`);
  await new History(store).record(testOutcome({ policy: "mine" }));
  const cancelled = await command("cancel", "mine", "--reason", "x", "--yes");
  expect([cancelled.code, cancelled.err]).toEqual([2, expect.stringContaining(`no task of a policy mine ${none}`)]);
});
