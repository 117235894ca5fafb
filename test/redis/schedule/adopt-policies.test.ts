// A scheduler that gets new policies while it runs: what begins, what goes on, what is never fired
// again.
import { describe, expect, it, vi } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import type { Task } from "../../../src/model/task.ts";
import { type AuditInput, auditSlots } from "../../../src/schedule/audit-slots.ts";
import { Scheduler } from "../../../src/schedule/scheduler.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { testPolicy } from "../../support/policies.ts";
import { storeForTest } from "../../support/redis.ts";

const start = Date.parse("2026-11-21T00:00:00Z");

const store = await storeForTest();
const ledger = new SlotLedger(store);

const every = (seconds: number): Policy["schedule"] => ({ kind: "every", everyMs: seconds * 1_000, spreadMs: 0 });

// The real ledger with a clock of the test. `queued` holds "policy second" of each task, in order.
function replica(
  policies: readonly Policy[],
  newestSinceMs = async () => Number.POSITIVE_INFINITY,
  alsoTidy: () => Promise<void> = async () => {},
) {
  const clock = { second: 0 };
  const queued: string[] = [];
  const onTestTime = {
    nowMs: async () => start + clock.second * 1_000,
    openWatermarks: ledger.openWatermarks.bind(ledger),
    record: ledger.record.bind(ledger),
    confirmQueued: ledger.confirmQueued.bind(ledger),
    unqueued: async () => [],
    drop: ledger.drop.bind(ledger),
    tidy: ledger.tidy.bind(ledger),
  };
  const enqueue = async (tasks: readonly Task[]) => {
    queued.push(...tasks.map(({ policy, slotMs }) => `${policy} ${(slotMs - start) / 1_000}`));
  };
  const scheduler = new Scheduler({ policies, ledger: onTestTime, enqueue, newestSinceMs, alsoTidy, log: silentLog });
  const inspect = async (...seconds: number[]) => {
    for (const second of seconds) {
      clock.second = second;
      await scheduler.runOnce();
    }
  };
  return { scheduler, queued, inspect };
}

const isNewest = async () => start;

const hasMark = async (policy: string) => (await store.redis.hexists(store.key("watermarks"), policy)) === 1;

const records = async (policy: string) =>
  (await ledger.holdings(policy)).records.map(({ slotMs, state }) => `${(slotMs - start) / 1_000} ${state}`);

describe("a scheduler with new policies", () => {
  it("begins a new policy now and leaves the others where they are", async () => {
    const old = testPolicy({ name: "old", schedule: every(10) });
    const { scheduler, queued, inspect } = replica([old]);
    await inspect(0, 10);
    scheduler.adopt([old, testPolicy({ name: "young", schedule: every(4) })]);
    await inspect(17, 20, 24);
    expect(queued).toEqual(["old 10", "old 20", "young 20", "young 24"]);
  });

  it("fires what the old schedule owed, and nothing of the new one from before", async () => {
    const { scheduler, queued, inspect } = replica([testPolicy({ name: "changed", schedule: every(10) })]);
    await inspect(0, 10);
    scheduler.adopt([testPolicy({ name: "changed", schedule: every(1), catchUp: "all", catchUpWindowMs: 60_000 })]);
    await inspect(25, 26, 27);
    expect(queued).toEqual(["changed 10", "changed 20", "changed 26", "changed 27"]);
    expect((await ledger.slots("changed", 100)).map(({ slotMs }) => (slotMs - start) / 1_000)).toEqual([
      27, 26, 20, 10,
    ]);
  });

  it("does not repeat a slot that both schedules share", async () => {
    const { scheduler, queued, inspect } = replica([testPolicy({ name: "shared", schedule: every(10) })]);
    await inspect(0, 10);
    scheduler.adopt([testPolicy({ name: "shared", schedule: every(5) })]);
    await inspect(10);
    scheduler.adopt([testPolicy({ name: "shared", schedule: every(10) })]);
    await inspect(10, 15, 20);
    expect(queued).toEqual(["shared 10", "shared 20"]);
  });

  it("uses the newest sync jobs at once when only they changed, and catches up", async () => {
    const { scheduler, queued, inspect } = replica([testPolicy({ name: "moved", schedule: every(10) })]);
    await inspect(0);
    scheduler.adopt([testPolicy({ name: "moved", schedule: every(10), action: { kind: "run", syncJobs: [1, 2] } })]);
    await inspect(9, 10);
    expect(queued).toEqual(["moved 10", "moved 10"]);
  });

  it("never fires old slots of a schedule that was changed while nothing ran", async () => {
    const before = replica([testPolicy({ name: "restarted", schedule: every(3_600) })]);
    await before.inspect(0);
    const after = replica([testPolicy({ name: "restarted", schedule: every(60), catchUpWindowMs: 3_600_000 })]);
    await after.inspect(1_830, 1_860);
    expect(after.queued).toEqual(["restarted 1860"]);
  });

  it("records a backlog of thousands of slots before a changed schedule moves the mark", async () => {
    const old = testPolicy({ name: "backlog", schedule: every(1), catchUp: "none" });
    const { scheduler, inspect } = replica([old]);
    await inspect(0);
    scheduler.adopt([testPolicy({ name: "backlog", schedule: every(60), catchUp: "none" })]);
    await inspect(3_601);
    const { records, keptSinceMs } = await ledger.holdings("backlog");
    expect(records).toHaveLength(1_000);
    expect(records[0]?.slotMs).toBe(start + 2_602_000);
    expect(records.at(-1)?.slotMs).toBe(start + 3_601_000);
    expect(keptSinceMs).toBe(start + 3_601_000);
  });

  it("changes no schedule before its whole backlog is recorded, however long", async () => {
    const { scheduler, inspect } = replica([testPolicy({ name: "long", schedule: every(1), catchUp: "none" })]);
    await inspect(0);
    scheduler.adopt([testPolicy({ name: "long", schedule: every(60), catchUp: "none" })]);
    await inspect(30_001);
    const firstRun = await records("long");
    expect(firstRun.at(-1)).toBe("21000 missed");
    await inspect(30_002, 30_060);
    const all = await records("long");
    expect(all).toHaveLength(1_000);
    expect(all.slice(-3)).toEqual(["30001 started", "30002 started", "30060 started"]);
  });

  it("records what a schedule owed that was changed while nothing ran", async () => {
    await replica([testPolicy({ name: "owing", schedule: every(10) })]).inspect(0, 10);
    const young = replica([testPolicy({ name: "owing", schedule: every(60), catchUpWindowMs: 60_000 })]);
    await young.inspect(35, 60);
    expect(await records("owing")).toEqual(["10 started", "20 coalesced", "30 started", "60 started"]);
    expect(young.queued).toEqual(["owing 30", "owing 60"]);
  });

  it("takes what it does not know for gone once its policies are the newest for long", async () => {
    for (const [newestSinceMs, isNewest] of [
      [start - 599_999, false],
      [start - 600_000, true],
    ] as const) {
      const alsoTidy = vi.fn(async () => {});
      await replica([], async () => newestSinceMs, alsoTidy).inspect(0);
      expect(alsoTidy.mock.calls).toEqual([[{ nowMs: start, isNewest }]]);
    }
  });

  it("starts the one time that replaces one which clocks never show", async () => {
    const dst = { gap: "skip", overlap: "first" } as const;
    const at = (text: string) =>
      testPolicy({ name: "once", schedule: { kind: "once", at: text, timezone: "Europe/Vienna", dst, spreadMs: 0 } });
    const { scheduler, queued, inspect } = replica([at("2027-03-28T02:30:00")]);
    await inspect(0);
    scheduler.adopt([at("2026-11-21T01:00:20")]);
    await inspect(10, 20);
    expect(queued).toEqual(["once 20"]);
  });

  it("records what a removed policy owed before it forgets it", async () => {
    const removed = testPolicy({ name: "removed", schedule: every(1), catchUp: "none" });
    const { scheduler, inspect } = replica([removed], isNewest);
    await inspect(0);
    scheduler.adopt([]);
    await inspect(2_500);
    expect((await records("removed")).at(-1)).toBe("2500 started");
    await inspect(3_099);
    expect(await hasMark("removed")).toBe(true);
    await inspect(3_110);
    expect(await hasMark("removed")).toBe(false);
    expect((await records("removed")).at(-1)).toBe("2500 started");
  });

  it("changes no schedule while a mistake keeps what it owes from the record", async () => {
    const { scheduler, inspect } = replica([testPolicy({ name: "faulty", schedule: every(10) })]);
    await inspect(0);
    await store.redis.set(store.key("slots", "faulty"), "not a hash");
    await inspect(10);
    scheduler.adopt([testPolicy({ name: "faulty", schedule: every(60) })]);
    await inspect(25);
    await store.redis.del(store.key("slots", "faulty"));
    await inspect(75, 120);
    expect(await records("faulty")).toEqual([
      ...["10 coalesced", "20 coalesced", "30 coalesced", "40 coalesced", "50 coalesced", "60 coalesced"],
      ...["70 started", "120 started"],
    ]);
  });

  it("leaves a policy to the replica with its newer schedule and passes no slot", async () => {
    const old = replica([testPolicy({ name: "rolled", schedule: every(10) })]);
    const young = replica([testPolicy({ name: "rolled", schedule: every(15) })]);
    await old.inspect(0, 10);
    await young.inspect(12);
    await old.inspect(47);
    await young.inspect(47);
    await old.inspect(50, 110);
    await young.inspect(110);
    const slots = [10, 15, 30, 45, 60, 75, 90, 105];
    expect((await records("rolled")).map((one) => Number.parseInt(one, 10))).toEqual(slots);
    expect(old.queued).toEqual(["rolled 10"]);
  });

  it("takes a policy back when it has the newest schedule after all", async () => {
    const one = replica([testPolicy({ name: "back", schedule: every(10) })], async () => start);
    await one.inspect(0, 10);
    await replica([testPolicy({ name: "back", schedule: every(15) })]).inspect(12);
    await one.inspect(20, 47, 81, 90);
    expect(await records("back")).toEqual([
      ...["10 started", "15 coalesced", "30 coalesced", "45 coalesced", "60 coalesced", "75 started"],
      ...["90 started"],
    ]);
  });

  it("forgets a policy ten minutes after it left: back again, it begins anew", async () => {
    const other = testPolicy({ name: "stays", schedule: every(10_000) });
    const gone = testPolicy({ name: "gone", schedule: every(10), catchUp: "all", catchUpWindowMs: 3_600_000 });
    const { scheduler, queued, inspect } = replica([other, gone], isNewest);
    await inspect(0, 10);
    scheduler.adopt([other]);
    await inspect(20, 619);
    expect(await hasMark("gone")).toBe(true);
    await inspect(629);
    expect(await hasMark("gone")).toBe(false);
    scheduler.adopt([other, gone]);
    await inspect(635, 640);
    expect(queued).toEqual(["gone 10", "gone 20", "gone 640"]);
  });

  it("makes up for the slots of a policy whose file was away for a moment", async () => {
    const other = testPolicy({ name: "here", schedule: every(10_000) });
    const moment = testPolicy({ name: "moment", schedule: every(10), catchUp: "all", catchUpWindowMs: 3_600_000 });
    const { scheduler, queued, inspect } = replica([other, moment], isNewest);
    await inspect(0, 10);
    scheduler.adopt([other]);
    await inspect(20, 45);
    expect(await ledger.holdings("moment")).toMatchObject({ watermarkMs: start + 20_000, keptSinceMs: start });
    scheduler.adopt([other, moment]);
    await inspect(55, 60);
    expect(queued).toEqual(["moment 10", "moment 20", "moment 30", "moment 40", "moment 50", "moment 60"]);
    await inspect(700);
    expect(await ledger.holdings("moment")).toMatchObject({ watermarkMs: start + 700_000, keptSinceMs: start });
  });

  it("begins anew with a policy that comes back with another schedule, or had none", async () => {
    const { scheduler, queued, inspect } = replica([testPolicy({ name: "other-back", schedule: every(10) })]);
    await inspect(0, 10);
    scheduler.adopt([]);
    await inspect(20);
    scheduler.adopt([testPolicy({ name: "other-back", schedule: every(4) })]);
    await inspect(41, 44);
    scheduler.adopt([testPolicy({ name: "other-back", schedule: undefined })]);
    await inspect(46);
    expect(await hasMark("other-back")).toBe(false);
    const back = testPolicy({ name: "other-back", schedule: every(4), catchUp: "all", catchUpWindowMs: 3_600_000 });
    scheduler.adopt([back]);
    await inspect(53, 56);
    for (const [second, policies] of [
      [58, []],
      [62, [testPolicy({ name: "other-back", schedule: undefined })]],
      [70, [back]],
    ] as const) {
      scheduler.adopt(policies);
      await inspect(second);
    }
    await inspect(72);
    const slots = [10, 20, 44, 56, 72].map((second) => `other-back ${second}`);
    expect(queued).toEqual(slots);
  });

  it("keeps the mark of a policy that left just now when it tidies", async () => {
    const brief = testPolicy({ name: "brief", schedule: every(300) });
    const { scheduler, queued, inspect } = replica([brief], async () => start - 600_000);
    await inspect(0, 300);
    scheduler.adopt([]);
    await inspect(590, 600);
    scheduler.adopt([brief]);
    await inspect(605);
    expect(queued).toEqual(["brief 300", "brief 600"]);
  });

  it("forgets no policy that a newer list may have again, here or on another replica", async () => {
    const again = testPolicy({ name: "again", schedule: every(10_000) });
    let newestSinceMs = async () => Number.POSITIVE_INFINITY;
    const { scheduler, inspect } = replica([again], () => newestSinceMs());
    await inspect(0);
    scheduler.adopt([]);
    await inspect(10, 620);
    expect(await hasMark("again")).toBe(true);
    newestSinceMs = async () => {
      scheduler.adopt([again]);
      return start;
    };
    await inspect(630, 631);
    expect(await ledger.holdings("again")).toMatchObject({ watermarkMs: start, keptSinceMs: start });
  });

  it("forgets no policy before its set has been the newest for ten minutes", async () => {
    const gone = testPolicy({ name: "left", schedule: every(10_000) });
    const { scheduler, inspect } = replica([gone], async () => start + 600_000);
    await inspect(0);
    scheduler.adopt([]);
    await inspect(10, 620);
    expect(await hasMark("left")).toBe(true);
    await inspect(1_210);
    expect(await hasMark("left")).toBe(false);
  });

  it("begins anew with a policy that the newest set did not have for ten minutes", async () => {
    const [away, home] = ["away", "home"].map((name) => testPolicy({ name, schedule: every(60) }));
    if (away === undefined || home === undefined) throw new Error("two policies");
    await replica([away, home]).inspect(0, 60);
    await replica([home]).inspect(120, 1_200);
    await replica([home], async () => start + 601_000).inspect(1_200);
    expect(await ledger.policies()).toContain("away");
    await replica([home], async () => start + 600_000).inspect(1_200);
    await replica([away, home]).inspect(7_210, 7_260);
    expect(await records("away")).toEqual(["60 started", "7260 started"]);
  });

  it("forgets no policy that a reload brings before it has looked at it", async () => {
    const [stays, young] = ["stays-on", "brought"].map((name) => testPolicy({ name, schedule: every(60) }));
    if (stays === undefined || young === undefined) throw new Error("two policies");
    await replica([stays, young]).inspect(0);
    const alsoTidy = vi.fn(async () => {});
    const reload = async () => {
      late.scheduler.adopt([stays, young]);
      return start - 600_000;
    };
    const late: ReturnType<typeof replica> = replica([stays], reload, alsoTidy);
    await late.inspect(0);
    expect(await ledger.policies()).toContain("brought");
    expect(alsoTidy.mock.calls).toEqual([[{ nowMs: start, isNewest: false }]]);
  });

  it("leaves no slot that an audit calls lost, though a change skips some", async () => {
    const other = testPolicy({ name: "audited-other", schedule: every(100) });
    const slow = testPolicy({ name: "audited", schedule: every(10) });
    const quick = testPolicy({ name: "audited", schedule: every(2) });
    const { scheduler, inspect } = replica([other, slow], isNewest);
    const audit = async (policy: Policy, second: number) => {
      const nowMs = start + second * 1_000;
      const input: AuditInput = { ...(await ledger.holdings("audited")), fromMs: undefined, toMs: nowMs, nowMs };
      const found = auditSlots(policy, input);
      return { slots: found?.slots, findings: found?.findings };
    };
    await inspect(0, 10);
    expect(await audit(slow, 10)).toEqual({ slots: 1, findings: [] });
    scheduler.adopt([other, quick]);
    await inspect(25, 26, 28);
    expect(await audit(quick, 28)).toEqual({ slots: 2, findings: [] });
    scheduler.adopt([other]);
    await inspect(30);
    scheduler.adopt([other, quick]);
    await inspect(45, 46);
    expect(await audit(quick, 46)).toEqual({ slots: 11, findings: [] });
    scheduler.adopt([other]);
    await inspect(48, 650);
    scheduler.adopt([other, quick]);
    await inspect(655, 656);
    expect(await audit(quick, 656)).toEqual({ slots: 1, findings: [] });
  });

  it("keeps what it has until Redis can tell the marks of the new list", async () => {
    const old = testPolicy({ name: "steady", schedule: every(10) });
    const { scheduler, queued, inspect } = replica([old]);
    await inspect(0);
    const { redis } = store;
    await redis.rename(store.key("schedules"), store.key("schedules-away"));
    await redis.set(store.key("schedules"), "not a hash");
    scheduler.adopt([old, testPolicy({ name: "next", schedule: every(10) })]);
    await expect(inspect(10)).rejects.toThrow("WRONGTYPE");
    await redis.rename(store.key("schedules-away"), store.key("schedules"));
    await inspect(12, 20);
    expect(queued).toEqual(["steady 10", "steady 20", "next 20"]);
  });
});
