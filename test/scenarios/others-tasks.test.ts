// Tasks in Redis that no policy of this process is about.
import { expect, it, onTestFinished } from "vitest";
import { silentLog } from "../../src/core/event-log.ts";
import { Producer } from "../../src/queue/producer.ts";
import { ConsumedServices } from "../../src/store/consumed-services.ts";
import { openStore, type RedisTarget } from "../../src/store/redis.ts";
import { keepAlive, keepSet, liveProcess } from "../support/kept-set.ts";
import { testPolicy } from "../support/policies.ts";
import { until } from "../support/redis-servers.ts";
import { shortTiming } from "../support/short-timing.ts";
import { startUnknown } from "../support/unknown-start.ts";
import { worldForTest } from "../support/world.ts";

const policies = "  - { name: own, service: main, repository: HR, run: { syncJobs: [1] } }\n";

it("those of another owner that holds the prefix are left to it", async () => {
  const world = await worldForTest({ policies, owner: "mine" });
  const store = await openStore(world.target);
  onTestFinished(() => store.close());
  await store.redis.hset(store.key("owners"), { "": "other", other: Date.now() + 3_600_000 });
  await until(
    () => JSON.stringify(world.app.unreadiness()),
    (reasons) => reasons.includes("under one prefix"),
  );
  const { producer } = await startUnknown(world.target, "main");
  const { delayed } = await until(
    () => producer.backlog("main", "actions"),
    ({ waiting, active }) => waiting + active === 0,
  );
  await producer.close();
  // So are the notices.
  await until(
    () => store.redis.get(store.key("notifications", "lease")),
    (lease) => lease === null,
  );
  expect([delayed, world.log.outcomesOf("theirs")]).toEqual([1, []]);
});

it("a run that was sent is left to a worker with newer policies, also as it restarts", async () => {
  const world = await worldForTest({ policies });
  const store = await openStore(world.target);
  await liveProcess(store, { sinceMs: Date.now() + 60_000 });
  await keepAlive(store);
  await keepSet(store, [testPolicy({ name: "theirs" })]);
  const { producer } = await startUnknown(world.target, "main");
  const { delayed } = await until(
    () => producer.backlog("main", "actions"),
    ({ waiting, active }) => waiting + active === 0,
  );
  expect([delayed, world.log.outcomesOf("theirs")]).toEqual([1, []]);
  // So are the notices.
  const notifier = () => store.redis.get(store.key("notifications", "lease"));
  await until(notifier, (owner) => owner === null);
  await store.redis.del(store.key("replicas"));
  await world.log.until(({ event, policy }) => event === "task.finished" && policy === "theirs");
  const unknown = "whether the run had started was not known";
  const detail = `${unknown}, and its policy is not in the policies of the worker that had its turn`;
  const ended = { status: "unknown", reason: "policy-removed", detail };
  expect(world.log.outcomesOf("theirs")).toMatchObject([ended]);
  await producer.close();
  await store.close();
});

it("a run that goes on outlives a file that lacks its policy for a moment", async () => {
  const other = policies.replace("own", "other").replace("[1]", "[2]");
  const timing = { ...shortTiming, unknownPolicyForMs: 60_000 };
  const world = await worldForTest({ policies: policies + other, timing, sandbox: { runMs: [3_000, 3_000] } });
  await world.enqueue("own", Date.now() - 120_000);
  await world.log.until(({ event }) => event === "task.started");
  await world.configure({ policies: other });
  // Meanwhile the run that goes on has its checks.
  await world.run("other");
  await world.configure({ policies: policies + other });
  await world.log.until(() => world.log.outcomesOf("own").length > 0);
  expect(world.log.outcomesOf("own")).toMatchObject([{ status: "succeeded" }]);
});

it("those of a service that went from the files before the start get an outcome", async () => {
  const before = async (target: RedisTarget) => {
    const store = await openStore(target);
    await new ConsumedServices(store).note(["legacy"], 0);
    await store.close();
    await (await startUnknown(target, "legacy")).producer.close();
  };
  const world = await worldForTest({ policies, before });
  await world.log.until(({ event, service }) => event === "service.stopped" && service === "legacy");
  expect(world.log.outcomesOf("theirs")).toMatchObject([{ status: "unknown", reason: "policy-removed" }]);
  expect(world.log.named("service.left-behind")).toMatchObject([{ service: "legacy" }]);
  const store = await openStore(world.target);
  const services = new ConsumedServices(store);
  expect(await services.note([], 0)).toEqual(["main"]);
  // Its ended task is kept for two days, and then dropped, though no other one of it ends.
  const producer = new Producer(world.target, silentLog);
  expect([await services.ended(), await producer.tidy("legacy")]).toEqual([["legacy"], 1]);
  const done = `${world.target.prefix}:legacy-actions:completed`;
  const [id = ""] = await store.redis.zrange(done, "0", "-1");
  const old = Date.now() - 3 * 86_400_000;
  await store.redis.zadd(done, old, id);
  await store.redis.hset(`${world.target.prefix}:legacy-actions:${id}`, "finishedOn", old);
  expect(await producer.tidy("legacy")).toBe(0);
  // One that is back has queues that are in use.
  await services.note(["legacy"], 0);
  expect(await services.ended()).toEqual([]);
  await producer.close();
  await store.close();
});
