import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore, type Store } from "../../../src/store/redis.ts";
import { SlotLedger, slotRecordsMax } from "../../../src/store/slot-ledger.ts";
import type { Task } from "../../../src/tasks/task.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
let store: Store;
let ledger: SlotLedger;

beforeAll(async () => {
  store = await openStore(target);
  ledger = new SlotLedger(store);
});
afterAll(() => store.close());

const task = (policy: string, slotMs: number): Task => ({
  v: 1,
  id: `${policy}__run__42__${slotMs / 1_000}`,
  kind: "run",
  policy,
  service: "main",
  repository: "HR",
  target: "42",
  slotMs,
  origin: "schedule",
  covers: [],
  startByMs: slotMs + 60_000,
});

const scheduled = (policy: string, schedule = "daily") => ({ policy, schedule });

const step = (policy: string, from: number, to: number) => ({
  policy,
  expectedMarkMs: from,
  newMarkMs: to,
  records: [{ slotMs: to, state: "started" as const, detail: "" }],
  tasks: [task(policy, to)],
});

describe("the slot ledger", () => {
  it("gives a new policy the present as its mark, and keeps it", async () => {
    expect(await ledger.marks([scheduled("fresh")], 5_000)).toEqual(new Map([["fresh", 5_000]]));
    expect(await ledger.marks([scheduled("fresh")], 9_000)).toEqual(new Map([["fresh", 5_000]]));
  });

  it("lets exactly one of many planners record a slot", async () => {
    await ledger.marks([scheduled("raced")], 0);
    const answers = await Promise.all(Array.from({ length: 20 }, () => ledger.record([step("raced", 0, 1_000)])));
    expect(answers.flat().filter(({ recorded }) => recorded)).toHaveLength(1);
    expect(answers.flat().every(({ markMs }) => markMs === 1_000)).toBe(true);
    expect(await ledger.slots("raced", 10)).toEqual([{ slotMs: 1_000, state: "started", detail: "" }]);
  });

  it("tells a late planner where the mark stands instead of moving it back", async () => {
    await ledger.marks([scheduled("late")], 0);
    await ledger.record([step("late", 0, 3_000)]);
    expect(await ledger.record([step("late", 0, 1_000)])).toEqual([{ recorded: false, markMs: 3_000 }]);
    expect(await ledger.slots("late", 10)).toHaveLength(1);
  });

  it("records many policies in one call, each on its own", async () => {
    const names = Array.from({ length: 450 }, (_, index) => `many-${index}`);
    await ledger.marks(
      names.map((name) => scheduled(name)),
      0,
    );
    await ledger.record([step("many-7", 0, 9_000)]);
    const answers = await ledger.record(names.map((name) => step(name, 0, 1_000)));
    expect(answers[7]).toEqual({ recorded: false, markMs: 9_000 });
    expect(answers.filter(({ recorded }) => recorded)).toHaveLength(449);
    expect(await ledger.slots("many-449", 10)).toEqual([{ slotMs: 1_000, state: "started", detail: "" }]);
    expect(await ledger.slots("many-7", 10)).toEqual([{ slotMs: 9_000, state: "started", detail: "" }]);
    await ledger.confirmQueued([...names.map((policy) => ({ policy, newMarkMs: 1_000 }))]);
    expect((await ledger.unqueued(9_000)).filter(({ policy }) => policy.startsWith("many-"))).toEqual([]);
  });

  it("moves the mark to the present when the schedule is another one, and never back", async () => {
    await ledger.marks([scheduled("changed", "daily")], 1_000);
    expect(await ledger.marks([scheduled("changed", "hourly")], 5_000)).toEqual(new Map([["changed", 5_000]]));
    expect(await ledger.marks([scheduled("changed", "hourly")], 8_000)).toEqual(new Map([["changed", 5_000]]));
    expect(await ledger.marks([scheduled("changed", "daily")], 3_000)).toEqual(new Map([["changed", 5_000]]));
  });

  it("lets a dropped policy begin anew", async () => {
    await ledger.marks([scheduled("dropped"), scheduled("kept")], 1_000);
    await ledger.drop(["dropped"]);
    expect(await ledger.marks([scheduled("dropped"), scheduled("kept")], 7_000)).toEqual(
      new Map([
        ["dropped", 7_000],
        ["kept", 1_000],
      ]),
    );
  });

  it("keeps tasks in the outbox until they are confirmed", async () => {
    await ledger.marks([scheduled("crashed")], 0);
    await ledger.record([step("crashed", 0, 2_000)]);
    const ofCrashed = async (olderThanMs: number) =>
      (await ledger.unqueued(olderThanMs)).filter(({ policy }) => policy === "crashed");
    expect(await ofCrashed(2_000)).toEqual([]);
    expect(await ofCrashed(2_001)).toEqual([{ policy: "crashed", newMarkMs: 2_000, tasks: [task("crashed", 2_000)] }]);
    await ledger.confirmQueued([{ policy: "crashed", newMarkMs: 2_000 }]);
    expect(await ofCrashed(9_000)).toEqual([]);
  });

  it("forgets the oldest records beyond its limit", async () => {
    await ledger.marks([scheduled("long")], 0);
    const records = Array.from({ length: slotRecordsMax + 5 }, (_, index) => ({
      slotMs: index + 1,
      state: "missed" as const,
      detail: "outside-window",
    }));
    await ledger.record([{ policy: "long", expectedMarkMs: 0, newMarkMs: slotRecordsMax + 5, records, tasks: [] }]);
    const kept = await ledger.slots("long", 5_000);
    expect(kept).toHaveLength(slotRecordsMax);
    expect(kept.at(-1)?.slotMs).toBe(6);
    expect(await store.redis.hlen(store.key("slots", "long"))).toBe(slotRecordsMax);
  });

  it("takes the time from Redis", async () => {
    expect(Math.abs((await ledger.nowMs()) - Date.now())).toBeLessThan(5_000);
  });
});
