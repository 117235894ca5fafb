import { expect, it, onTestFinished } from "vitest";
import { storyText } from "../../../src/cli/explain.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { taskStores } from "../../../src/queries/audit-policy.ts";
import { readRunningOf } from "../../../src/queries/running.ts";
import { readSlotStory, readStoryOfTask } from "../../../src/queries/slot-story.ts";
import { Producer } from "../../../src/queue/producer.ts";
import { tasksOf, toRecords } from "../../../src/schedule/slot-tasks.ts";
import { leaseKey, leaseMs } from "../../../src/store/leases.ts";
import { openStore } from "../../../src/store/redis.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { setOf } from "../../support/kept-set.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();

async function parts() {
  const store = await openStore(target);
  const producer = new Producer(target, silentLog);
  onTestFinished(async () => {
    await producer.close();
    await store.close();
  });
  return { store, producer, ledger: new SlotLedger(store) };
}

it("calls a planned task pending, and lost once it is nowhere", async () => {
  const { store, producer, ledger } = await parts();
  const policy = testPolicy({ name: "planned", action: { kind: "run", syncJobs: [1] } });
  const slotMs = Math.floor(Date.now() / 1_000) * 1_000;
  await ledger.openWatermarks([{ policy: policy.name, schedule: "" }], slotMs - 1);
  const planned = {
    policy: policy.name,
    expectedWatermarkMs: slotMs - 1,
    newWatermarkMs: slotMs,
    records: toRecords(policy, [{ slotMs, state: "started", covers: [] }]),
    tasks: tasksOf(policy, { slotMs, origin: "schedule", covers: [] }),
  };
  await ledger.record([planned]);
  const set = { policies: [policy], services: new Map(), byHand: policy };
  const places = { ...taskStores({ store, producer, set }), set };
  const around = { slotMs, isSlot: true, reasons: [], previousMs: undefined, nextMs: undefined };
  const tell = () => readSlotStory(policy, { asked: null, around, nowMs: slotMs + 300 }, places);
  const story = await tell();
  expect(story.tasks).toMatchObject([{ isInFlight: true, queue: null, outcome: null }]);
  expect(storyText(story, "UTC", false)).toContain("no outcome yet: on its way into the queue");
  await ledger.confirmQueued([planned]);
  expect((await tell()).tasks).toMatchObject([{ isInFlight: false }]);
});

it("finds a task in the queue of the service that its policy had before", async () => {
  const { store, producer } = await parts();
  const policy = testPolicy({ name: "moved", service: "backup" });
  const slotMs = Math.floor(Date.now() / 1_000) * 1_000;
  const tasks = tasksOf({ ...policy, service: "main" }, { slotMs, origin: "schedule", covers: [] });
  await producer.enqueue(tasks);
  await store.redis.set(leaseKey(store, { service: "main", repository: "HR", target: "42" }), "other", "PX", leaseMs);
  const set = setOf([policy]);
  const story = await readStoryOfTask(
    tasks[0]?.id ?? "",
    { set, nowMs: slotMs + 300 },
    { ...taskStores({ store, producer, set }), set },
  );
  expect(story?.tasks).toMatchObject([{ isInFlight: true, queue: "waiting", waitsFor: "other" }]);
  expect(await readRunningOf({ store, set }, policy)).toMatchObject([{ service: "main" }]);
});
