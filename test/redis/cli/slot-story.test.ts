import { expect, it, onTestFinished, vi } from "vitest";
import { storyText } from "../../../src/cli/explain.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { taskId } from "../../../src/model/task.ts";
import { readAudits, taskStores } from "../../../src/queries/audit-policy.ts";
import { readRunningOf } from "../../../src/queries/running.ts";
import { readHandStory, readSlotStory, readStoryOfTask } from "../../../src/queries/slot-story.ts";
import { Producer } from "../../../src/queue/producer.ts";
import { tasksOf, toRecords } from "../../../src/schedule/slot-tasks.ts";
import { ChainStore } from "../../../src/store/chain-store.ts";
import { Changes } from "../../../src/store/changes.ts";
import { FeedStore } from "../../../src/store/feed-store.ts";
import { History } from "../../../src/store/history.ts";
import { leaseKey, leaseMs } from "../../../src/store/leases.ts";
import { openStore } from "../../../src/store/redis.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { followerPolicy } from "../../support/chain-fixture.ts";
import { setOf } from "../../support/kept-set.ts";
import { testOutcome } from "../../support/outcomes.ts";
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

it.each(["waitingOf", "find"] as const)("does not call a slot lost that is opened meanwhile: %s", async (reads) => {
  const { store, producer, ledger } = await parts();
  const root = testPolicy({ name: `root-${reads}` });
  const policy = followerPolicy(`opened-${reads}`, root.name, { root: root.name });
  const slotMs = Math.floor(Date.now() / 5_000) * 5_000;
  const schedules = [root, policy].map(({ name }) => ({ policy: name, schedule: "" }));
  await ledger.openWatermarks(schedules, slotMs - 1);
  const planned = {
    ...{ policy: root.name, expectedWatermarkMs: slotMs - 1, newWatermarkMs: slotMs, tasks: [] },
    records: toRecords(root, [{ slotMs, state: "started", covers: [] }]),
    followers: [{ policy: policy.name, after: root.name, followers: 0, schedule: "" }],
  };
  const { waitingOf, find } = ChainStore.prototype;
  const opens = async <T>(found: T): Promise<T> => {
    await ledger.record([planned]);
    return found;
  };
  vi.spyOn(ChainStore.prototype, "waitingOf").mockImplementation(async function (this: ChainStore, name) {
    return opens(await waitingOf.call(this, name));
  });
  vi.spyOn(ChainStore.prototype, "find").mockImplementation(async function (this: ChainStore, slots) {
    return opens(await find.call(this, slots));
  });
  const set = setOf([root, policy]);
  if (reads === "waitingOf") {
    const span = { fromMs: undefined, toMs: undefined };
    expect(await readAudits({ store, producer, set }, [policy], span)).toMatchObject([{ findings: [] }]);
  } else {
    const places = { ...taskStores({ store, producer, set }), set };
    const around = { slotMs, isSlot: true, reasons: [], previousMs: undefined, nextMs: undefined };
    const story = await readSlotStory(policy, { asked: null, around, nowMs: slotMs + 300 }, places);
    expect(storyText(story, "UTC", false)).not.toContain("lost");
  }
  expect((await ledger.plannedUpTo([policy.name])).get(policy.name)).toBe(slotMs);
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

it("names the list that cannot be read of those that a run waits for", async () => {
  const { store, producer } = await parts();
  const policy = testPolicy({ name: "unread", repository: "unread" });
  const [task] = tasksOf(policy, { slotMs: Date.now(), origin: "manual", covers: [] });
  if (task === undefined) throw new Error("one task");
  await producer.enqueue([task]);
  const feed = { service: "main", repository: "unread", list: "conflictDetails" } as const;
  await new FeedStore(store).failWalk(feed, "server: 500", { beganAtMs: 0, waitMs: 0 });
  const journal = new StartJournal(store);
  await journal.claim(task.id, "me");
  await journal.noteReady(task.id);
  const waitsFor = async () => (await readRunningOf({ store, set: setOf([policy]) }, policy))[0]?.waitsFor;
  const unread = /; but conflictDetails cannot be read: server: 500; `syncline doctor` says more$/;
  expect(await waitsFor()).toMatch(unread);
  await journal.beginSending(task, "me", { startByMs: task.startByMs, baseline: "" });
  await journal.noteConfirmed(task, "answer");
  expect(await waitsFor()).toMatch(unread);
});

it("tells each task of a run by hand over masks once", async () => {
  const { store, producer } = await parts();
  const policy = testPolicy({ name: "masks", action: { kind: "run", fromMasks: {} } });
  const set = setOf([policy]);
  const nowMs = Date.now();
  const [task] = tasksOf(policy, { slotMs: nowMs, origin: "manual", covers: [] });
  if (task === undefined) throw new Error("one task");
  const into = ["42", "43"].map((target) => taskId({ ...task, target }));
  await new StartJournal(store).noteFannedOut(task.id, into);
  await new Changes(store).add({
    ...{ actor: "ana", what: "run", subject: "policy masks", before: null, after: { tasks: [task.id] }, reason: null },
  });
  for (const id of into)
    await new History(store).record(testOutcome({ taskId: id, policy: "masks", origin: "manual" }));
  const places = { ...taskStores({ store, producer, set }), set };
  const story = await readHandStory(policy, { afterMs: 0, nowMs }, places);
  expect(story?.tasks.map((one) => one.taskId)).toEqual(into);
});

it("tells of no lost answer where the answer came with the outcome after all", async () => {
  const { store, producer } = await parts();
  const policy = testPolicy({ name: "answered-late" });
  const [task] = tasksOf(policy, { slotMs: Date.now(), origin: "manual", covers: [] });
  if (task === undefined) throw new Error("one task");
  const set = setOf([policy]);
  const places = { ...taskStores({ store, producer, set }), set };
  const tell = async () => (await readStoryOfTask(task.id, { set, nowMs: Date.now() }, places))?.tasks;
  const journal = new StartJournal(store);
  await journal.claim(task.id, "me");
  await journal.beginSending(task, "me", { startByMs: 9e15, baseline: "" });
  await journal.noteDoubt(task.id, { kind: "crash", detail: "its worker is silent" });
  expect(await tell()).toMatchObject([{ lost: "crash: its worker is silent", answered: null }]);
  const ended = { policy: policy.name, status: "accepted", reason: "answered", origin: "manual" } as const;
  const answer = { state: "confirmed", isAnswer: true } as const;
  expect(await new History(store).record(testOutcome({ taskId: task.id, ...ended }), answer)).toBe("recorded");
  expect(await tell()).toMatchObject([{ lost: null, answered: expect.any(String) }]);
});
