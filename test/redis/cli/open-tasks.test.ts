import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import { type Task, targetFromMasks } from "../../../src/model/task.ts";
import { findLostTasks, taskStores } from "../../../src/queries/audit-policy.ts";
import { Producer } from "../../../src/queue/producer.ts";
import { tasksOf } from "../../../src/schedule/slot-tasks.ts";
import { History } from "../../../src/store/history.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";

const target = redisForTest();
let places: Parameters<typeof findLostTasks>[1];

const store = await storeForTest(target);
beforeAll(async () => {
  const producer = new Producer(target, silentLog);
  places = taskStores({ store, producer, set: { services: new Map() }, allServices: ["main", "backup"] });
});
afterAll(async () => {
  await places.producer.close();
});

function tasks(name: string, syncJobs: number[]): Task[] {
  const policy = testPolicy({ name, action: { kind: "run", syncJobs } });
  return tasksOf(policy, { slotMs: 5_000, origin: "schedule", covers: [] });
}

const end = (taskId: string) =>
  new History(store).record({
    v: 1,
    taskId,
    policy: taskId.split("__")[0] ?? "",
    service: "main",
    repository: "HR",
    kind: "run",
    target: "1",
    origin: "schedule",
    slot: "1970-01-01T00:00:05.000Z",
    covers: 0,
    status: "succeeded",
    evidence: "direct",
    reason: "completed",
    detail: "",
    startedAt: null,
    finishedAt: "2026-11-21T02:00:06.000Z",
    durationMs: null,
    attempts: 1,
    answerLost: false,
    newConflicts: null,
    count: null,
  });

const lostOf = async (all: readonly Task[]) => {
  const { lost, inFlight } = await findLostTasks(all, places);
  return { lost: lost.map(({ id }) => id), inFlight };
};

describe("the tasks of started slots", () => {
  it("are lost without an outcome when neither queue nor outbox has them", async () => {
    const all = tasks("mixed", [1, 2, 3, 4]);
    const [ended, queued, recorded, lost] = all;
    if (!ended || !queued || !recorded || !lost) throw new Error("four tasks");
    await end(ended.id);
    await places.producer.enqueue([queued]);
    await places.ledger.openWatermarks([{ policy: "mixed", schedule: "daily" }], 0);
    await places.ledger.record([
      {
        policy: "mixed",
        expectedWatermarkMs: 0,
        newWatermarkMs: 5_000,
        records: [],
        tasks: [recorded],
      },
    ]);
    expect(await lostOf(all)).toEqual({ lost: [lost.id], inFlight: 2 });
    await end(lost.id);
    expect(await lostOf(all)).toEqual({ lost: [], inFlight: 2 });
  });

  it("are in flight in the queue of the service that their policy had before", async () => {
    const moved = tasks("moved", [1, 2]).map((task) => ({ ...task, service: "backup" }));
    const [queued, lost] = moved;
    if (!queued || !lost) throw new Error("two tasks");
    await places.producer.enqueue([{ ...queued, service: "main" }]);
    expect(await lostOf(moved)).toEqual({ lost: [lost.id], inFlight: 1 });
  });

  it("are followed to the tasks that stand for them", async () => {
    const [first, ...into] = tasks("masked", [10, 11, 12, 13]);
    const [ended, queued, lost] = into;
    if (!first || !ended || !queued || !lost) throw new Error("four tasks");
    const masks = { ...first, id: "masked__run__masks__5", target: targetFromMasks };
    await places.journal.noteFannedOut(
      masks.id,
      into.map(({ id }) => id),
    );
    await end(ended.id);
    await places.producer.enqueue([queued]);
    expect(await lostOf([masks])).toEqual({ lost: [lost.id], inFlight: 1 });
  });

  it("are not lost when newer outcomes have displaced theirs during the search", async () => {
    const [task] = tasks("pushed-out", [1]);
    if (!task) throw new Error("one task");
    await end(task.id);
    const { history } = places;
    const few = new History(store, { limits: { count: 1, forMs: 86_400_000 } });
    const pushing: typeof history = {
      outcome: (name) => history.outcome(name),
      withOutcome: async (policy, ids) => {
        for (let second = 10; second < 25; second += 1) {
          const slot = `1970-01-01T00:00:${second}.000Z`;
          await few.record(testOutcome({ taskId: `${policy}__run__1__${second}`, policy, slot }));
        }
        return history.withOutcome(policy, ids);
      },
      keptSinceMs: (policy) => history.keptSinceMs(policy),
    };
    expect(await findLostTasks([task], { ...places, history: pushing })).toEqual({ lost: [], inFlight: 0 });
    expect(await history.outcome(task)).toBeUndefined();
  });

  it("over masks are not lost when the journal has forgotten what they became", async () => {
    const policy = testPolicy({ name: "old-masks", action: { kind: "run", syncJobs: [1] } });
    const [known] = tasksOf(policy, { slotMs: 5_000, origin: "schedule", covers: [] });
    if (!known) throw new Error("one task");
    const nowMs = await places.ledger.nowMs();
    const overMasks = (days: number) => ({ ...known, target: "masks", slotMs: nowMs - days * 86_400_000 });
    expect((await findLostTasks([overMasks(31)], places)).lost).toEqual([]);
    expect((await findLostTasks([overMasks(29)], places)).lost).toHaveLength(1);
  });
});
