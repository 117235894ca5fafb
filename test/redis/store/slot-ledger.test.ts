import { describe, expect, it } from "vitest";
import type { Task } from "../../../src/model/task.ts";
import { ChainStore } from "../../../src/store/chain-store.ts";
import type { Store } from "../../../src/store/redis.ts";
import { SlotLedger, slotRecordsForMs, slotRecordsMax } from "../../../src/store/slot-ledger.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";

const target = redisForTest();

const store = await storeForTest(target);
const ledger = new SlotLedger(store);

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
  expectedWatermarkMs: from,
  newWatermarkMs: to,
  records: [{ slotMs: to, state: "started" as const, detail: "" }],
  tasks: [task(policy, to)],
});

describe("the slot ledger", () => {
  it("gives a new policy the present as its mark, and keeps it", async () => {
    const fresh = new Map([["fresh", { watermarkMs: 5_000, schedule: "daily" }]]);
    expect(await ledger.openWatermarks([scheduled("fresh")], 5_000)).toEqual(fresh);
    expect(await ledger.openWatermarks([scheduled("fresh")], 9_000)).toEqual(fresh);
  });

  it("lets exactly one of many planners record a slot", async () => {
    await ledger.openWatermarks([scheduled("raced")], 0);
    const answers = await Promise.all(Array.from({ length: 20 }, () => ledger.record([step("raced", 0, 1_000)])));
    expect(answers.flat().filter(({ recorded }) => recorded)).toHaveLength(1);
    expect(answers.flat().every(({ watermarkMs }) => watermarkMs === 1_000)).toBe(true);
    expect(await ledger.slots("raced", 10)).toEqual([{ slotMs: 1_000, state: "started", detail: "" }]);
  });

  it("tells a late planner where the mark stands instead of moving it back", async () => {
    await ledger.openWatermarks([scheduled("late")], 0);
    await ledger.record([step("late", 0, 3_000)]);
    expect(await ledger.record([step("late", 0, 1_000)])).toEqual([{ recorded: false, watermarkMs: 3_000 }]);
    expect(await ledger.slots("late", 10)).toHaveLength(1);
  });

  it("records many policies in one call, each on its own", async () => {
    const names = Array.from({ length: 450 }, (_, index) => `many-${index}`);
    await ledger.openWatermarks(
      names.map((name) => scheduled(name)),
      0,
    );
    await ledger.record([step("many-7", 0, 9_000)]);
    const answers = await ledger.record(names.map((name) => step(name, 0, 1_000)));
    expect(answers[7]).toEqual({ recorded: false, watermarkMs: 9_000 });
    expect(answers.filter(({ recorded }) => recorded)).toHaveLength(449);
    expect(await ledger.slots("many-449", 10)).toEqual([{ slotMs: 1_000, state: "started", detail: "" }]);
    expect(await ledger.slots("many-7", 10)).toEqual([{ slotMs: 9_000, state: "started", detail: "" }]);
    await ledger.confirmQueued([...names.map((policy) => ({ policy, newWatermarkMs: 1_000 }))]);
    expect((await ledger.unqueued(9_000)).filter(({ policy }) => policy.startsWith("many-"))).toEqual([]);
  });

  it("reads the newest records and the holdings of many policies at once", async () => {
    const names = Array.from({ length: 450 }, (_, index) => `read-${index}`);
    const known = names.map((name) => scheduled(name));
    await ledger.openWatermarks(known, 0);
    const recorded = names.filter((_, index) => index % 2 === 1);
    await ledger.record(recorded.map((name) => step(name, 0, 1_000)));
    await ledger.record([step("read-449", 1_000, 2_000)]);
    await ledger.record([step("read-449", 2_000, 3_000)]);
    const newest = await ledger.newestRecords(["unknown", ...names], 2_000);
    const slots = recorded.map((name) => [name, name === "read-449" ? 2_000 : 1_000]);
    expect([...newest].map(([name, { slotMs }]) => [name, slotMs])).toEqual(slots);
    const none = { watermarkMs: undefined, keptSinceMs: undefined, records: [] };
    const record = (slotMs: number) => ({ slotMs, state: "started", detail: "" });
    expect(await ledger.holdingsOf(["read-449", "unknown", "read-0"])).toEqual([
      { watermarkMs: 3_000, keptSinceMs: 0, records: [1_000, 2_000, 3_000].map(record) },
      none,
      { watermarkMs: 0, keptSinceMs: 0, records: [] },
    ]);
  });

  it("changes a schedule from the one in force only, and moves the mark never back", async () => {
    const ask = async (schedule: string, nowMs: number, from = "") =>
      (await ledger.openWatermarks([{ policy: "changed", schedule, from }], nowMs)).get("changed");
    await ask("daily", 1_000);
    const daily = { watermarkMs: 1_000, schedule: "daily" };
    expect(await ask("hourly", 5_000)).toEqual(daily);
    expect(await ask("hourly", 5_000, "weekly")).toEqual(daily);
    const hourly = { watermarkMs: 5_000, schedule: "hourly" };
    expect(await ask("hourly", 5_000, "daily")).toEqual(hourly);
    expect(await ask("hourly", 8_000, "daily")).toEqual(hourly);
    expect(await ask("daily", 3_000, "hourly")).toEqual({ watermarkMs: 5_000, schedule: "daily" });
  });

  it("records slots of the schedule in force only, its followers' too", async () => {
    await ledger.openWatermarks([scheduled("root", "hourly"), scheduled("led"), scheduled("left", "alone")], 0);
    const followers = ["led", "left", "new"].map((policy) => ({
      policy,
      after: "root",
      followers: 0,
      schedule: "daily",
    }));
    const records = [{ slotMs: 1_000, state: "missed" as const, detail: "outside-window" }];
    const planned = { ...step("root", 0, 1_000), records, followers };
    expect(await ledger.record([{ ...planned, schedule: "daily" }])).toEqual([
      { recorded: false, watermarkMs: 0, isSuperseded: true },
    ]);
    expect(await ledger.record([{ ...planned, schedule: "hourly" }])).toEqual([
      { recorded: true, watermarkMs: 1_000, supersededFollowers: ["left"] },
    ]);
    const waiting = new ChainStore(store);
    expect(await waiting.waitingOf("led")).toHaveLength(1);
    expect(await waiting.waitingOf("new")).toHaveLength(1);
    expect(await waiting.waitingOf("left")).toEqual([]);
    const begun = Object.entries({ led: 0, left: 0, new: 0 });
    expect(await ledger.begun(["led", "left", "new"])).toEqual(new Map(begun));
    expect(await ledger.plannedUpTo(["led", "left"])).toEqual(
      new Map([
        ["led", 1_000],
        ["left", 0],
      ]),
    );
  });

  it("lets a dropped policy begin anew", async () => {
    await ledger.openWatermarks([scheduled("dropped"), scheduled("kept")], 1_000);
    await ledger.drop(["dropped"]);
    expect(await ledger.openWatermarks([scheduled("dropped"), scheduled("kept")], 7_000)).toEqual(
      new Map([
        ["dropped", { watermarkMs: 7_000, schedule: "daily" }],
        ["kept", { watermarkMs: 1_000, schedule: "daily" }],
      ]),
    );
  });

  it("keeps tasks in the outbox until they are confirmed", async () => {
    await ledger.openWatermarks([scheduled("crashed")], 0);
    await ledger.record([step("crashed", 0, 2_000)]);
    const ofCrashed = async (olderThanMs: number) =>
      (await ledger.unqueued(olderThanMs)).filter(({ policy }) => policy === "crashed");
    expect(await ofCrashed(2_000)).toEqual([]);
    expect(await ofCrashed(2_001)).toEqual([
      { policy: "crashed", newWatermarkMs: 2_000, tasks: [task("crashed", 2_000)] },
    ]);
    await ledger.confirmQueued([{ policy: "crashed", newWatermarkMs: 2_000 }]);
    expect(await ofCrashed(9_000)).toEqual([]);
  });

  it("leaves unreadable outbox entries to a newer version, and goes on with the rest", async () => {
    const newer = JSON.stringify([{ ...task("newer", 1_000), v: 3 }]);
    await store.redis.hset(
      store.key("outbox"),
      "newer/1000",
      newer,
      "broken/1000",
      "not json",
      "readable/1000",
      JSON.stringify([task("readable", 1_000)]),
    );
    const policies = (await ledger.unqueued(2_000)).map(({ policy }) => policy);
    expect(policies).toContain("readable");
    expect(policies).not.toContain("newer");
    expect(await store.redis.hget(store.key("outbox"), "newer/1000")).toBe(newer);
    await store.redis.hdel(store.key("outbox"), "newer/1000", "broken/1000", "readable/1000");
  });

  it("comes to the whole outbox, also behind thousands that it cannot read", async () => {
    const own: Store = { ...store, key: (...parts) => store.key("paged", ...parts) };
    const names = Array.from({ length: 50 }, (_, index) => `behind-${index}`);
    const unreadable = Array.from({ length: 5_000 }, (_, index) => [`newer-${index}/1000`, "not json"]);
    const readable = names.map((name) => [`${name}/1000`, JSON.stringify([task(name, 1_000)])]);
    await own.redis.hset(own.key("outbox"), Object.fromEntries([...unreadable, ...readable]));
    const [swept, sweeper] = [new Set<string>(), new SlotLedger(own)];
    for (let sweep = 0; sweep < 20; sweep += 1)
      for (const { policy } of await sweeper.unqueued(2_000)) swept.add(policy);
    expect(swept).toEqual(new Set(names));
    expect(new Set((await sweeper.outbox()).map(({ policy }) => policy))).toEqual(new Set(names));
  });

  it("forgets the oldest records beyond its limit", async () => {
    await ledger.openWatermarks([scheduled("long")], 0);
    const records = Array.from({ length: slotRecordsMax + 5 }, (_, index) => ({
      slotMs: index + 1,
      state: "missed" as const,
      detail: "outside-window",
    }));
    await ledger.record([
      { policy: "long", expectedWatermarkMs: 0, newWatermarkMs: slotRecordsMax + 5, records, tasks: [] },
    ]);
    const kept = await ledger.slots("long", 5_000);
    expect(kept).toHaveLength(slotRecordsMax);
    expect(kept.at(-1)?.slotMs).toBe(6);
    expect(await store.redis.hlen(store.key("slots", "long"))).toBe(slotRecordsMax);
  });

  it("remembers since when its records are whole: first tick, then newest dropped", async () => {
    await ledger.openWatermarks([scheduled("whole")], 0);
    expect(await ledger.holdings("whole")).toEqual({ watermarkMs: 0, keptSinceMs: 0, records: [] });
    const records = Array.from({ length: slotRecordsMax + 3 }, (_, index) => ({
      slotMs: (index + 1) * 1_000,
      state: "started" as const,
      detail: "",
    }));
    await ledger.record([{ policy: "whole", expectedWatermarkMs: 0, newWatermarkMs: 2_000_000, records, tasks: [] }]);
    const holdings = await ledger.holdings("whole");
    expect(holdings).toMatchObject({ watermarkMs: 2_000_000, keptSinceMs: 3_000 });
    expect(holdings.records).toHaveLength(slotRecordsMax);
    expect(holdings.records[0]?.slotMs).toBe(4_000);
    // The policy itself began before.
    expect(await ledger.begun(["whole"])).toEqual(new Map([["whole", 0]]));
    expect(await ledger.holdings("nobody")).toEqual({ watermarkMs: undefined, keptSinceMs: undefined, records: [] });
  });

  it("counts records as whole from where a new schedule or returned policy begins", async () => {
    const keptSince = async (policy: string) => (await ledger.holdings(policy)).keptSinceMs;
    await ledger.openWatermarks([scheduled("rewritten"), scheduled("returned"), scheduled("same")], 1_000);
    await ledger.record([step("rewritten", 1_000, 2_000), step("returned", 1_000, 2_000), step("same", 1_000, 2_000)]);
    await ledger.drop(["returned"]);
    expect(await keptSince("returned")).toBeUndefined();
    expect(await ledger.begun(["returned"])).toEqual(new Map());
    const rewritten = { ...scheduled("rewritten", "hourly"), from: "daily" };
    await ledger.openWatermarks([rewritten, scheduled("returned"), scheduled("same")], 5_000);
    expect(await keptSince("rewritten")).toBe(5_000);
    expect(await keptSince("returned")).toBe(5_000);
    expect(await keptSince("same")).toBe(1_000);
    await ledger.record([step("rewritten", 5_000, 8_000)]);
    await ledger.openWatermarks([{ ...scheduled("rewritten"), from: "hourly" }], 7_000);
    expect(await keptSince("rewritten")).toBe(8_000);
    const begun = Object.entries({ rewritten: 8_000, returned: 5_000, same: 1_000 });
    expect(await ledger.begun(["rewritten", "returned", "same"])).toEqual(new Map(begun));
  });

  it("does not take that back when it drops records from before", async () => {
    await ledger.openWatermarks([scheduled("grown", "daily")], 0);
    await ledger.record([step("grown", 0, 1_000)]);
    await ledger.openWatermarks([{ ...scheduled("grown", "hourly"), from: "daily" }], 5_000);
    const records = Array.from({ length: slotRecordsMax }, (_, index) => ({
      slotMs: 6_000 + index,
      state: "started" as const,
      detail: "",
    }));
    await ledger.record([{ policy: "grown", expectedWatermarkMs: 5_000, newWatermarkMs: 9_000, records, tasks: [] }]);
    const holdings = await ledger.holdings("grown");
    expect(holdings.records[0]?.slotMs).toBe(6_000);
    expect(holdings.keptSinceMs).toBe(5_000);
  });

  it.each(["paused", "quarantine"])(
    "lets a slot that was skipped (%s) start once, with its tasks in the outbox",
    async (detail) => {
      await ledger.drop(["resumed"]);
      await store.redis.del(store.key("slots", "resumed"));
      await ledger.openWatermarks([scheduled("resumed")], 0);
      const skipped = { slotMs: 1_000, state: "skipped" as const, detail, note: "release" };
      const blackout = { slotMs: 2_000, state: "skipped" as const, detail: "blackout" };
      const records = [skipped, blackout];
      await ledger.record([{ policy: "resumed", expectedWatermarkMs: 0, newWatermarkMs: 2_000, records, tasks: [] }]);
      const start = { newWatermarkMs: 9_000, tasks: [task("resumed", 1_000)] };
      const by = (note: string) => ({ ...skipped, state: "started" as const, detail: "caught-up", note });
      const notes = ["release; resumed by ada", "release; resumed by bob", "release; resumed by cyd"];
      const answers = await Promise.all(notes.map((note) => ledger.startSkipped("resumed", by(note), start)));
      expect(answers.filter(Boolean)).toHaveLength(1);
      const started = by(notes[answers.indexOf(true)] ?? "");
      // The same command again, after a lost answer.
      expect(await ledger.startSkipped("resumed", started, start)).toBe(true);
      expect(await ledger.startSkipped("resumed", { ...started, slotMs: 2_000 }, start)).toBe(false);
      expect(await ledger.startSkipped("resumed", { ...started, slotMs: 3_000 }, start)).toBe(false);
      expect((await ledger.holdings("resumed")).records).toEqual([started, blackout]);
      expect(await ledger.unqueued(9_001)).toContainEqual({ policy: "resumed", ...start });
      await ledger.confirmQueued([{ policy: "resumed", newWatermarkMs: 9_000 }]);
    },
  );

  it("drops records older than 31 days, and says since when they are whole", async () => {
    const day = 86_400_000;
    await ledger.openWatermarks([scheduled("aged")], 0);
    for (const [from, to] of [
      [0, 1],
      [1, 2],
      [2, 32],
      [32, 33.5],
    ] as const)
      await ledger.record([step("aged", from * day, to * day)]);
    const holdings = await ledger.holdings("aged");
    expect(holdings.records.map(({ slotMs }) => slotMs / day)).toEqual([32, 33.5]);
    expect(holdings.keptSinceMs).toBe(2 * day);
  });

  it("lets the records of a dropped policy end in 31 days, unless it comes back", async () => {
    const left = (policy: string) =>
      Promise.all([store.redis.pttl(store.key("slots", policy)), store.redis.pttl(store.key("slot-index", policy))]);
    await ledger.openWatermarks([scheduled("leaving")], 0);
    await ledger.record([step("leaving", 0, 1_000)]);
    expect(await left("leaving")).toEqual([-1, -1]);
    await ledger.drop(["leaving"]);
    for (const ms of await left("leaving")) expect(Math.abs(ms - slotRecordsForMs)).toBeLessThan(60_000);
    await ledger.openWatermarks([scheduled("leaving")], 5_000);
    expect(await left("leaving")).toEqual([-1, -1]);
  });

  it("forgets policies removed while nothing ran: back again, they begin anew", async () => {
    await ledger.openWatermarks([scheduled("vanished"), scheduled("staying")], 0);
    await ledger.record([step("vanished", 0, 1_000), step("staying", 0, 1_000)]);
    await ledger.tidy(new Set(["staying"]));
    expect(await store.redis.pttl(store.key("slots", "vanished"))).toBeGreaterThan(0);
    expect(await store.redis.pttl(store.key("slots", "staying"))).toBe(-1);
    expect(await ledger.policies()).toEqual(["staying"]);
    const { watermarkMs } = (await ledger.openWatermarks([scheduled("vanished")], 9_000)).get("vanished") ?? {};
    expect(watermarkMs).toBe(9_000);
  });

  it("takes the time from Redis", async () => {
    expect(Math.abs((await ledger.nowMs()) - Date.now())).toBeLessThan(5_000);
  });
});
