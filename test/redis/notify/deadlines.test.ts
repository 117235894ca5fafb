// Deadlines on a real Redis: what is late is told once a day, whichever replica dies when.
import { beforeEach, describe, expect, it } from "vitest";
import type { Policy, PolicySet, Schedule } from "../../../src/config/policy-set.ts";
import { outcomeLimitsDefault } from "../../../src/config/settings.ts";
import type { EnqueueNotices, Notice } from "../../../src/model/notice.ts";
import type { Outcome } from "../../../src/model/outcome.ts";
import type { SlotRecord } from "../../../src/model/slot-record.ts";
import { taskId } from "../../../src/model/task.ts";
import { Notifier, type NotifyStorePort } from "../../../src/notify/notifier.ts";
import { describeDeadline, judgeAll, readLate } from "../../../src/queries/deadlines.ts";
import { History } from "../../../src/store/history.ts";
import { NotifyStore } from "../../../src/store/notify-store.ts";
import type { Store } from "../../../src/store/redis.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { changeRule } from "../../support/notify-fixture.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { testPolicy } from "../../support/policies.ts";
import { storeForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

const at = (text: string) => Date.parse(`2026-11-${text}Z`);
const dst = { gap: "next", overlap: "first" } as const;
const schedule: Schedule = { kind: "cron", expressions: ["30 2 * * *"], timezone: "UTC", dst, spreadMs: 0 };
const nightly = testPolicy({
  schedule,
  action: { kind: "run", syncJobs: [42, 43] },
  expect: { kind: "successBy", at: "06:00", on: "*" },
  notify: [changeRule],
});
const slotMs = at("21T02:30");

const opened = await storeForTest();
let round = 0;
const store: Store = { ...opened, key: (...parts) => opened.key(`round-${round}`, ...parts) };
let nowMs = 0;
let policies: readonly Policy[] = [];
let delivered: Notice[] = [];
beforeEach(() => {
  round += 1;
  nowMs = at("20T12:00");
  policies = [nightly];
  delivered = [];
});

function notifierOf(owner: string, changes: { deliver?: EnqueueNotices; book?: Partial<NotifyStorePort> } = {}) {
  const book = new NotifyStore(store);
  let elapsedMs = 0;
  return new Notifier({
    notifyStore: {
      nowMs: async () => nowMs,
      take: (...args) => book.take(...args),
      leave: (one) => book.leave(one),
      read: (...args) => book.read(...args),
      texts: (...args) => book.texts(...args),
      save: (...args) => book.save(...args),
      remove: (...args) => book.remove(...args),
      noteLost: (count) => book.noteLost(count),
      ...changes.book,
    },
    owner,
    set: (): PolicySet => ({
      ...{ services: new Map(), sinks: new Map(), policies, byHand: nightly, contentHash: "", files: [] },
      notifications: { groupWaitMs: 30_000, muteTiming: undefined },
    }),
    policy: (name) => policies.find((policy) => policy.name === name),
    enqueueNotices: async (deliveries) => {
      await changes.deliver?.(deliveries);
      delivered.push(...deliveries.map(({ notice }) => notice));
    },
    breaker: async () => undefined,
    stalePolicies: async () => new Map(),
    judgeDeadlines: (watched, facts) => judgeAll(watched, facts, store),
    tokens: () => new Map(),
    // Each look is a minute later: every round of the notifier is due.
    clock: {
      ...{ nowMs: () => nowMs, sleep: async () => {}, every: () => () => {} },
      monotonicMs: () => {
        elapsedMs += 60_000;
        return elapsedMs;
      },
    },
    log: new TestLog(),
  });
}

/** One replica comes, looks, and goes. */
async function look(text: string, notifier = notifierOf("one")): Promise<void> {
  nowMs = at(text);
  while ((await notifier.runOnce()) === 0);
  await new NotifyStore(store).leave("one");
}

async function record(...records: readonly SlotRecord[]): Promise<void> {
  await recordOf("nightly", records);
}

async function recordOf(policy: string, records: readonly SlotRecord[]): Promise<void> {
  const ledger = new SlotLedger(store);
  const marks = await ledger.openWatermarks([{ policy, schedule: "s" }], at("20T00:00"));
  const newest = records.at(-1)?.slotMs ?? 0;
  const step = {
    expectedWatermarkMs: marks.get(policy)?.watermarkMs ?? 0,
    newWatermarkMs: newest,
    records,
    tasks: [],
  };
  await ledger.record([{ policy, ...step }]);
}

const idOf = (target: string, slot: number, origin: Outcome["origin"] = "schedule") =>
  taskId({ policy: "nightly", kind: "run", target, slotMs: slot, origin });

async function end(
  target: string,
  finished: string,
  changes: Parameters<typeof testOutcome>[0] = {},
  slot = slotMs,
  limits = outcomeLimitsDefault,
) {
  const id = idOf(target, slot, changes.origin);
  const times = { slot: new Date(slot).toISOString(), finishedAt: new Date(at(finished)).toISOString() };
  await new History(store, { limits }).record(testOutcome({ taskId: id, target, ...times, ...changes }));
}

const started: SlotRecord = { slotMs, state: "started", detail: "", kind: "run", targets: ["42", "43"] };
const told = () => [...new Map(delivered.map(({ id, kind, title }) => [id, `${kind} ${title}`])).values()];

describe("a deadline", () => {
  it("is late by an expectation that is not met", async () => {
    await look("20T12:00");
    await record(started);
    await end("42", "21T02:40");
    await end("43", "21T02:41", { status: "failed", reason: "expectation-not-met" });
    await look("21T06:01");
    expect(told()).toEqual(["late nightly: late for 06:00 UTC: sync job 43 failed (expectation-not-met)"]);
  });

  it("that every sync job met tells no sink, also when it is judged much later", async () => {
    await look("20T12:00");
    await record(started);
    await end("42", "21T02:40");
    await end("43", "21T05:59");
    await look("21T18:00");
    expect(told()).toEqual([]);
    expect(await describeDeadline(nightly, { slotMs, nowMs }, store)).toBe(
      "expected by 06:00, so by 06:00 UTC: kept at 05:59 UTC",
    );
  });

  it("is not known to be late once the ends of its time are dropped", async () => {
    await record(started);
    for (const target of ["42", "43"]) await end(target, "21T02:40");
    const limits = { count: 2, forMs: 86_400_000 };
    for (let run = 0; run < 14; run += 1)
      await end("42", "22T02:40", { origin: "manual" }, at("22T02:30") + run, limits);
    expect(await describeDeadline(nightly, { slotMs, nowMs: at("22T12:00") }, store)).toMatch(
      /^expected by 06:00, so by 06:00 UTC: not known whether it was kept, its ends are known since /,
    );
    const late = { fromMs: slotMs, sinceMs: slotMs, atMs: at("21T06:00"), why: "sync job 43 had not ended", toldMs: 0 };
    const state = JSON.stringify({ v: 1, expect: "x", judgedMs: late.atMs, late, sinks: [] });
    await store.redis.hset(store.key("notifications", "deadlines"), "nightly", state);
    expect(await describeDeadline(nightly, { slotMs, nowMs: at("22T12:00") }, store)).toBe(
      "expected by 06:00, so by 06:00 UTC: late, sync job 43 had not ended",
    );
  });

  it("is late while one sync job still runs, and made up for when it ends", async () => {
    await look("20T12:00");
    await record(started);
    await end("42", "21T02:40");
    await look("21T06:01");
    await look("21T06:02");
    expect(told()).toEqual(["late nightly: late for 06:00 UTC: sync job 43 had not ended"]);
    expect((await readLate(policies, store)).get("nightly")).toMatchObject({ sinceMs: at("21T06:00") });
    await end("43", "21T07:00");
    await look("21T07:01");
    await look("21T07:02");
    expect(told().slice(1)).toEqual(["recovered nightly: recovered, 1h after its deadline 06:00 UTC (was late)"]);
    expect((await readLate(policies, store)).size).toBe(0);
    expect(await describeDeadline(nightly, { slotMs, nowMs }, store)).toBe(
      "expected by 06:00, so by 06:00 UTC: late, sync job 43 had not ended; its last end is succeeded, 07:00 UTC; made up for 1h later",
    );
  });

  it.each([
    [
      "skipped",
      { slotMs, state: "skipped", detail: "paused", note: "stocktaking" },
      "slot 02:30 UTC skipped (paused): stocktaking",
    ],
    ["missed", { slotMs, state: "missed", detail: "outside-window" }, "slot 02:30 UTC missed (outside-window)"],
    ["started and lost", started, "slot 02:30 UTC had not ended"],
  ] as const)("is late when its slot was %s", async (_how, slot, why) => {
    await look("20T12:00");
    await record(slot);
    await look("21T06:01");
    expect(told()).toEqual([`late nightly: late for 06:00 UTC: ${why}`]);
  });

  it("is late when no scheduler planned the slot", async () => {
    await look("20T12:00");
    await new SlotLedger(store).openWatermarks([{ policy: "nightly", schedule: "s" }], at("20T00:00"));
    await look("21T06:01");
    expect(told()).toEqual(["late nightly: late for 06:00 UTC: slot 02:30 UTC was not planned"]);
  });

  it.each([
    { kind: "within", withinMs: 7_200_000 },
    { kind: "successBy", at: "06:00", on: "*" },
  ] as const)("is none of a follower whose own blackout skipped it: $kind", async (expected) => {
    const root = { name: "first", schedule };
    const after = { policy: "first", on: ["succeeded"], withinMs: 86_400_000, root } as const;
    const follower = testPolicy({ ...nightly, schedule: undefined, after, expect: expected });
    policies = [follower];
    await look("20T12:00");
    await recordOf("first", [started]);
    await record({ slotMs, state: "skipped", detail: "blackout", note: "0 3 * * * for 2h" });
    await look("21T06:01");
    expect(told()).toEqual([]);
    expect(await describeDeadline(follower, { slotMs, nowMs }, store)).toBeUndefined();
  });

  it("is none for slots from before the policy began", async () => {
    await look("21T04:00");
    await new SlotLedger(store).openWatermarks([{ policy: "nightly", schedule: "s" }], at("21T04:00"));
    await look("21T06:01");
    expect(told()).toEqual([]);
  });

  it("is met by conflicts and by a run by hand, and not by an unknown one", async () => {
    await look("20T12:00");
    await record(started);
    await end("42", "21T02:40", { status: "conflicts", reason: "new-conflicts", newConflicts: 2 });
    await end("43", "21T02:40", { status: "unknown", reason: "answer-lost", evidence: "none" });
    await look("21T06:01");
    expect(told()).toEqual(["late nightly: late for 06:00 UTC: sync job 43 unknown (answer-lost)"]);
    await end("43", "21T06:30", { origin: "manual", evidence: "inferred" }, at("21T06:20"));
    await look("21T06:31");
    expect(told().at(-1)).toBe("recovered nightly: recovered, 30m after its deadline 06:00 UTC (was late)");
  });

  it("over masks is met by a run by hand, too, whatever became of a later slot", async () => {
    const overMasks = testPolicy({ ...nightly, action: { kind: "run", fromMasks: {} } });
    policies = [overMasks];
    await look("20T12:00");
    await record({ ...started, targets: ["masks"] });
    const into = ["42", "43"].map((target) => idOf(target, slotMs));
    await new StartJournal(store).noteFannedOut(idOf("masks", slotMs), into);
    await end("42", "21T02:40", { status: "failed", reason: "run-failed" });
    await end("43", "21T02:40");
    await end("42", "21T05:10", { origin: "manual" }, at("21T05:00"));
    const kept = "expected by 06:00, so by 06:00 UTC: kept at 05:10 UTC";
    expect(await describeDeadline(overMasks, { slotMs, nowMs: at("21T05:11") }, store)).toBe(kept);
    await end("masks", "21T05:20", { status: "not-started", reason: "server-error" }, at("21T05:15"));
    await look("21T06:01");
    expect(told()).toEqual([]);
    expect(await describeDeadline(overMasks, { slotMs, nowMs }, store)).toBe(kept);
  });

  it("that came while no notifier ran is told late, saying so", async () => {
    await look("20T12:00");
    await record(started);
    await look("22T09:00");
    expect(told()).toEqual([
      "late nightly: late for 2026-11-21 06:00 UTC (reported 27h after the deadline): slot 02:30 UTC had not ended",
      "late nightly: late for 06:00 UTC (reported 3h after the deadline), late since 2026-11-21 06:00 UTC: slot 02:30 UTC was not planned",
    ]);
  });

  const over = (...syncJobs: number[]) => testPolicy({ ...nightly, action: { kind: "run", syncJobs } });

  it("is none for a sync job that came after its slot", async () => {
    await look("20T12:00");
    await record(started);
    await end("42", "21T02:40");
    await end("43", "21T02:50");
    for (const later of [over(42, 43, 44), over(44)]) {
      policies = [later];
      await look("21T06:01");
      expect(told()).toEqual([]);
      expect(await describeDeadline(later, { slotMs, nowMs }, store)).toMatch("kept at 02:50 UTC");
    }
  });

  it.each<[string, Policy, Parameters<typeof end>]>([
    ["beside one that failed", over(42, 43, 44), ["43", "21T07:00", { origin: "manual" }, at("21T06:30")]],
    ["in place of those that ran", over(44), ["44", "22T03:00", {}, at("22T02:30")]],
  ])("is made up for, also with a sync job that came later: %s", async (_where, later, good) => {
    await look("20T12:00");
    await record(started);
    await end("42", "21T02:40");
    await end("43", "21T02:50", { status: "failed", reason: "run-failed" });
    policies = [later];
    await look("21T06:01");
    expect(told()).toEqual(["late nightly: late for 06:00 UTC: sync job 43 failed (run-failed)"]);
    await end(...good);
    await look("22T03:01");
    expect(told().slice(1)).toEqual([expect.stringMatching(/^recovered nightly: recovered, /)]);
  });

  it("begins with its expectation: a reload in the morning judges no earlier hour", async () => {
    policies = [testPolicy({ ...nightly, expect: { kind: "successBy", at: "05:00", on: "*" } })];
    await look("20T12:00");
    await record(started);
    policies = [nightly];
    await look("21T05:30");
    expect(told()).toEqual([]);
    await look("21T06:01");
    expect(told()).toHaveLength(1);
    policies = [testPolicy({ ...nightly, expect: { kind: "successBy", at: "07:00", on: "*" } })];
    await look("21T06:30");
    await look("21T07:01");
    expect(told()).toHaveLength(1);
  });

  it("is forgotten when the policy expects nothing more", async () => {
    await look("20T12:00");
    await record(started);
    await look("21T06:01");
    const { expect: _none, ...rest } = nightly;
    policies = [rest];
    await look("21T06:30");
    expect(await new NotifyStore(store).texts("deadlines")).toEqual(new Map());
  });
});

describe("a notifier that dies around a deadline", () => {
  const dies = async () => {
    throw new Error("killed");
  };
  it.each([
    ["before it saves", { book: { save: dies } }],
    ["after it saved, before the hand-over", { deliver: dies }],
    ["after the hand-over", { book: { remove: dies } }],
  ] as const)("%s leaves one notice of each end, by its id", async (_when, changes) => {
    await look("20T12:00");
    await record(started);
    await end("42", "21T02:40");
    const kill = (text: string) => expect(look(text, notifierOf("one", changes))).rejects.toThrow("killed");
    await kill("21T06:01");
    await kill("21T06:02");
    await look("21T06:03");
    expect(told()).toHaveLength(1);
    await end("43", "21T07:00");
    await kill("21T07:01");
    await look("21T07:02");
    await look("21T07:03");
    expect(told()).toHaveLength(2);
  });

  it("or two at once tell it once", async () => {
    await look("20T12:00");
    await record(started);
    nowMs = at("21T06:01");
    const both = ["one", "two"].map((owner) => notifierOf(owner));
    await Promise.all(both.map((notifier) => notifier.runOnce()));
    await Promise.all(both.map((notifier) => notifier.runOnce()));
    expect(delivered).toHaveLength(1);
  });
});
