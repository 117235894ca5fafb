// `syncline status --at 06:00`: had everything succeeded by then? From outcomes and slots in Redis.
import { describe, expect, it } from "vitest";
import type { Policy } from "../../src/config/policy-set.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import type { SlotRecord } from "../../src/model/slot-record.ts";
import { taskId } from "../../src/model/task.ts";
import { History } from "../../src/store/history.ts";
import { redisTimeMs } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import { runHere } from "../support/commands-here.ts";
import { keepSet } from "../support/kept-set.ts";
import { testOutcome } from "../support/outcomes.ts";
import { testPolicy } from "../support/policies.ts";
import { redisForTest, storeForTest } from "../support/redis.ts";

const redis = redisForTest();
const store = await storeForTest(redis);
const status = (...args: string[]) =>
  runHere(["status", ...args, "--prefix", redis.prefix, "--redis-url", redis.url], {});

const hourMs = 3_600_000;
const midnightMs = Math.floor((await redisTimeMs(store)) / (24 * hourMs) - 1) * 24 * hourMs;
const ledger = new SlotLedger(store);

/** A policy at 02:00 UTC, with its slots of that day and how its tasks ended, at hours. */
interface Story {
  readonly policy: Policy;
  readonly slots: readonly (Partial<SlotRecord> & { readonly hour: number })[];
  /** No scheduler has seen the policy. */
  readonly isUnseen?: true;
  readonly ends: readonly (Partial<Outcome> & { readonly slotHour: number; readonly hour: number })[];
}

const daily = (hour: number): Policy["schedule"] => ({
  kind: "cron",
  expressions: [`0 ${hour} * * *`],
  timezone: "UTC",
  dst: { gap: "next", overlap: "first" },
  spreadMs: 0,
});
const nightly = (name: string, changes: Partial<Policy> = {}) => testPolicy({ name, schedule: daily(2), ...changes });
const atEight = (name: string) => nightly(name, { schedule: daily(20) });

async function tell({ policy, slots, ends, isUnseen }: Story): Promise<void> {
  const { name } = policy;
  const startMs = midnightMs - 24 * hourMs;
  if (isUnseen === undefined) await ledger.openWatermarks([{ policy: name, schedule: "x" }], startMs);
  const records = slots.map(({ hour, ...record }): SlotRecord => {
    return {
      state: "started",
      detail: "on-time",
      kind: "run",
      targets: ["42"],
      ...record,
      slotMs: midnightMs + hour * hourMs,
    };
  });
  const newWatermarkMs = midnightMs + 23 * hourMs;
  if (slots.length > 0)
    await ledger.record([{ policy: name, expectedWatermarkMs: startMs, newWatermarkMs, records, tasks: [] }]);
  for (const { slotHour, hour, ...end } of ends) {
    const [slot, finishedAt] = [slotHour, hour].map((at) => new Date(midnightMs + at * hourMs).toISOString());
    const named = { taskId: `${name}__run__${end.target ?? "42"}__${slotHour}`, policy: name };
    await new History(store).record(testOutcome({ ...named, slot: slot ?? "", finishedAt: finishedAt ?? "", ...end }));
  }
}

const twoAt = [{ hour: 2 }];
const endedAt = (hour: number, end: Partial<Outcome> = {}) => [{ slotHour: 2, hour, ...end }];
const failed = { status: "failed", reason: "run-failed" } as const;
const overMasks = { kind: "run", fromMasks: { name: "*" } } as const;
const jobs = { kind: "run", syncJobs: [42, 43] } as const;
const other = { kind: "run", syncJobs: [43] } as const;

describe("syncline status --at", () => {
  it("says which policies had not succeeded by then, and why, of those that were due", async () => {
    const stories: readonly Story[] = [
      { policy: nightly("well"), slots: twoAt, ends: endedAt(3) },
      {
        policy: nightly("later-good"),
        slots: [{ hour: 1 }, ...twoAt],
        ends: [{ slotHour: 1, hour: 1.5, ...failed }, ...endedAt(3)],
      },
      { policy: nightly("failed"), slots: twoAt, ends: endedAt(3, failed) },
      { policy: nightly("late"), slots: twoAt, ends: endedAt(7) },
      { policy: nightly("open"), slots: twoAt, ends: [] },
      { policy: nightly("half", { action: jobs }), slots: [{ hour: 2, targets: ["42", "43"] }], ends: endedAt(3) },
      { policy: nightly("grown", { action: jobs }), slots: twoAt, ends: endedAt(3) },
      { policy: nightly("swapped", { action: other }), slots: twoAt, ends: endedAt(3, failed) },
      { policy: nightly("swapped-after-all-was-well", { action: other }), slots: twoAt, ends: endedAt(3) },
      {
        policy: nightly("conflicts"),
        slots: twoAt,
        ends: endedAt(3, { status: "conflicts", reason: "new-conflicts" }),
      },
      { policy: nightly("overlapped"), slots: twoAt, ends: endedAt(3, { status: "skipped", reason: "overlap" }) },
      {
        policy: nightly("missed"),
        slots: [{ hour: 1 }, { hour: 2, state: "missed", detail: "outside-window" }],
        ends: [{ slotHour: 1, hour: 1.5 }],
      },
      {
        policy: nightly("paused"),
        slots: [{ hour: 2, state: "skipped", detail: "paused", note: "migration" }],
        ends: [],
      },
      { policy: nightly("closed"), slots: [{ hour: 2, state: "skipped", detail: "holiday" }], ends: [] },
      {
        policy: nightly("missed-then-closed"),
        slots: [
          { hour: 1 },
          { hour: 2, state: "missed", detail: "outside-window" },
          { hour: 3, state: "skipped", detail: "blackout" },
        ],
        ends: [{ slotHour: 1, hour: 1.5 }],
      },
      {
        policy: nightly("open-then-closed"),
        slots: [...twoAt, ...[3, 4].map((hour) => ({ hour, state: "skipped", detail: "holiday" }) as const)],
        ends: [],
      },
      { policy: nightly("unplanned"), slots: [], ends: [] },
      { policy: atEight("evening"), slots: [{ hour: 20 }], ends: [{ slotHour: 20, hour: 21 }] },
      { policy: testPolicy({ name: "by-hand", schedule: undefined }), slots: [], ends: [] },
      {
        policy: atEight("tried-by-hand"),
        slots: [],
        ends: endedAt(3, { ...failed, origin: "manual" }),
      },
      {
        policy: nightly("masks", { action: overMasks }),
        slots: [{ hour: 2, targets: ["masks"] }],
        ends: endedAt(3, { target: "7" }),
      },
      {
        policy: nightly("half-masks", { action: overMasks }),
        slots: [{ hour: 2, targets: ["masks"] }],
        ends: endedAt(3, { target: "7" }),
      },
      { policy: nightly("unseen"), slots: [], ends: [], isUnseen: true },
      { policy: nightly("fresh"), slots: [], ends: [], isUnseen: true },
    ];
    await ledger.openWatermarks([{ policy: "fresh", schedule: "x" }], midnightMs + 5 * hourMs);
    await keepSet(
      store,
      stories.map(({ policy }) => policy),
    );
    for (const story of stories) await tell(story);
    const into = ["7", "8"].map((job) => `half-masks__run__${job}__2`);
    await new StartJournal(store).noteFannedOut("half-masks__run__masks__2", into);

    const six = await status("--at", "yesterday 06:00");
    expect([six.code, six.err]).toEqual([1, ""]);
    expect(six.out).toMatch(
      /^at \S+ 06:00:00 UTC, since the midnight before: 5 of 19 policies due had succeeded; 4 policies had nothing due; 1 policy is planned only since later\n/,
    );
    const rows = six.out
      .split("\n")
      .slice(2)
      .map((line) => line.split(/ {2,}/));
    expect(Object.fromEntries(rows)).toEqual({
      failed: "sync job 42 failed (run-failed)",
      late: "slot 02:00 UTC had not ended; its last end is succeeded, 07:00 UTC",
      open: "slot 02:00 UTC had not ended",
      half: "sync job 43 had not ended",
      swapped: "sync job 42 failed (run-failed)",
      conflicts: "sync job 42 conflicts (new-conflicts)",
      overlapped: "sync job 42 skipped (overlap)",
      missed: "slot 02:00 UTC missed (outside-window)",
      "missed-then-closed": "slot 02:00 UTC missed (outside-window)",
      "open-then-closed": "slot 02:00 UTC had not ended",
      paused: "slot 02:00 UTC skipped (paused): migration",
      unplanned: "slot 02:00 UTC was not planned",
      "half-masks": "sync job 8 had not ended",
      unseen: "slot 02:00 UTC was due, and no scheduler knows the policy here",
    });
    const all = JSON.parse((await status("--at", "yesterday 08:00", "--json", "late", "evening", "closed")).out);
    expect(all).toMatchObject({ v: 1, ok: true });
    expect(all.policies.map(({ verdict }: { verdict: string }) => verdict)).toEqual([
      "succeeded",
      "nothing-due",
      "nothing-due",
    ]);
    expect((await status("--at", "yesterday 06:00", "well", "later-good")).code).toBe(0);
    expect((await status("--at", "yesterday 00:30", "well")).out).toContain(
      "0 of 0 policies due had succeeded; 1 policy had",
    );
    expect(await status("--at", "+1h")).toMatchObject({ code: 2, err: expect.stringMatching(/still to come/) });
    expect(await status("--at", "six")).toMatchObject({ code: 2, err: expect.stringMatching(/is no time: write/) });
  });

  it("names the time of each zone, which may lie on another day", async () => {
    // These zones are 25 hours apart.
    const zones = ["Pacific/Kiritimati", "Pacific/Niue"];
    const policies = zones.map((timezone, index) => testPolicy({ name: `p${index}`, timezone }));
    await keepSet(store, policies);
    const { out } = await status("--at", "00:00");
    const named = /^at (\S+) 00:00:00 GMT\+14, (\S+) 00:00:00 GMT-11, since the midnight before: /;
    expect(out).toMatch(named);
    const [, east, west] = named.exec(out) ?? [];
    expect(east).not.toBe(west);
  });

  it("knows the sync jobs of a slot over masks, whatever was run by hand since", async () => {
    const over = (name: string) => nightly(name, { action: overMasks });
    const idOf = (name: string, target: string, hour: number, origin: Outcome["origin"] = "schedule") =>
      taskId({ policy: name, kind: "run", target, slotMs: midnightMs + hour * hourMs, origin });
    const end = (name: string, target: string, slotHour: number, changes: Partial<Outcome> = {}) => {
      return {
        slotHour,
        hour: slotHour + 0.2,
        target,
        taskId: idOf(name, target, slotHour, changes.origin),
        ...changes,
      };
    };
    const overTwo = [{ hour: 2, targets: ["masks"] }];
    const byHand = { origin: "manual" } as const;
    const [went, begun, lost] = ["went-on", "begun", "lost-later"];
    const stories: readonly Story[] = [
      { policy: over(went), slots: overTwo, ends: [end(went, "42", 2, failed), end(went, "42", 5, byHand)] },
      { policy: over(begun), slots: overTwo, ends: [end(begun, "42", 1, byHand)] },
      {
        policy: over(lost),
        slots: overTwo,
        ends: [
          end(lost, "42", 2),
          end(lost, "43", 2),
          end(lost, "masks", 4, { status: "not-started", reason: "server-error" }),
          end(lost, "42", 5, byHand),
        ],
      },
    ];
    await keepSet(
      store,
      stories.map(({ policy }) => policy),
    );
    for (const story of stories) {
      const { name } = story.policy;
      await tell(story);
      await new StartJournal(store).noteFannedOut(
        idOf(name, "masks", 2),
        ["42", "43"].map((target) => idOf(name, target, 2)),
      );
    }
    const at = new Date(midnightMs + 6 * hourMs).toISOString();
    const told = JSON.parse((await status("--at", at, "--json")).out);
    expect(told.policies.map(({ why }: { why: string }) => why)).toEqual([
      "sync job 43 had not ended",
      "sync job 43 had not ended",
      "sync jobs of masks not-started (server-error)",
    ]);
  });

  it("does not take a policy for new whose records of that time are dropped", async () => {
    const minutely = nightly("minutely", { schedule: { kind: "every", everyMs: 60_000, spreadMs: 0 } });
    await keepSet(store, [minutely]);
    const [expectedWatermarkMs, newWatermarkMs] = [midnightMs - 1, midnightMs + 23 * hourMs];
    await ledger.openWatermarks([{ policy: "minutely", schedule: "x" }], expectedWatermarkMs);
    const records = Array.from({ length: 23 * 60 + 1 }, (_, minute) => ({
      ...{ slotMs: midnightMs + minute * 60_000, state: "missed", detail: "outside-window" },
    })) satisfies readonly SlotRecord[];
    await ledger.record([{ policy: "minutely", expectedWatermarkMs, newWatermarkMs, records, tasks: [] }]);
    const { code, out } = await status("--at", new Date(midnightMs + 6 * hourMs).toISOString(), "--json");
    const why = expect.stringMatching(/^not known: its slots are kept only since .*06:20 UTC$/);
    expect([code, JSON.parse(out)]).toMatchObject([1, { ok: false, policies: [{ verdict: "not", why }] }]);
  });

  it("says of a time before a change of the schedule whether its records are dropped", async () => {
    const begunMs = midnightMs + 12 * hourMs;
    const change = async (name: string, schedule: Policy["schedule"], since: number) => {
      await ledger.openWatermarks([{ policy: name, schedule: "old" }], midnightMs - 24 * hourMs);
      const slot = (slotMs: number) => ({ slotMs, state: "missed", detail: "outside-window" }) as const;
      const old = { policy: name, expectedWatermarkMs: midnightMs - 24 * hourMs, newWatermarkMs: begunMs, tasks: [] };
      await ledger.record([{ ...old, records: [slot(midnightMs - hourMs), slot(midnightMs + 5 * hourMs)] }]);
      await ledger.openWatermarks([{ policy: name, schedule: "new", from: "old" }], begunMs);
      const records = Array.from({ length: since }, (_, minute) => slot(begunMs + (minute + 1) * 1_000));
      const newWatermarkMs = begunMs + since * 1_000;
      await ledger.record([{ policy: name, expectedWatermarkMs: begunMs, newWatermarkMs, records, tasks: [] }]);
      return nightly(name, { schedule });
    };
    await keepSet(store, [
      await change("kept", daily(2), 9),
      await change("dropped", daily(2), 999),
      await change("all-dropped", daily(2), 1_000),
      await change("rarer", daily(20), 1_000),
    ]);
    const at = async (hour: number) => {
      const { out } = await status("--at", new Date(midnightMs + hour * hourMs).toISOString(), "--json");
      return JSON.parse(out).policies.map(({ verdict, why }: Record<string, string>) => `${verdict} ${why}`);
    };
    const none = expect.stringMatching(/^not not known: its slots are kept only since .*05:00 UTC$/);
    const missed = "not slot 05:00 UTC missed (outside-window)";
    expect(await at(6)).toEqual([missed, missed, none, none]);
    const fresh = expect.stringMatching(/^new planned since .*12:00 UTC$/);
    expect(await at(4)).toEqual([fresh, fresh, none, none]);
  });

  it("remembers a success before any number of skipped runs", async () => {
    const skipped = { status: "skipped", reason: "overlap" } as const;
    const hours = [0, 1, 2, 3, 4, 5].map((hour) => ({ hour }));
    const ends = hours.map(({ hour }) => ({ slotHour: hour, hour: hour + 0.2, ...(hour > 0 ? skipped : {}) }));
    const held = nightly("held", { schedule: { kind: "every", everyMs: hourMs, spreadMs: 0 } });
    await keepSet(store, [held]);
    await tell({ policy: held, slots: hours, ends });
    const at = new Date(midnightMs + 5.5 * hourMs).toISOString();
    expect(await status("--at", at)).toMatchObject({ code: 0, out: expect.stringContaining("1 of 1 policy") });
  });

  it("looks behind a thousand skipped runs, or says that older ends are not kept", async () => {
    const skipped = { status: "skipped", reason: "overlap" } as const;
    const often = nightly("often", { schedule: { kind: "every", everyMs: 10_000, spreadMs: 0 } });
    const forgotten = nightly("forgotten");
    await keepSet(store, [often, forgotten]);
    await tell({ policy: often, slots: [{ hour: 0 }], ends: [] });
    await tell({ policy: forgotten, slots: twoAt, ends: endedAt(3, skipped) });
    await store.redis.hset(store.key("outcomes-kept"), "forgotten", midnightMs + hourMs);
    const history = new History(store, { limits: { count: 5_000, forMs: 31 * 24 * hourMs } });
    const ends = Array.from({ length: 1_100 }, (_, index) => {
      const slot = new Date(midnightMs + index * 10_000).toISOString();
      const named = { taskId: `often__run__42__${index}`, policy: "often", slot, finishedAt: slot };
      return history.record(testOutcome({ ...named, ...(index > 0 ? skipped : {}) }));
    });
    await Promise.all(ends);
    const at = new Date(midnightMs + 5 * hourMs).toISOString();
    const { out } = await status("--at", at);
    expect(out).toContain("1 of 2 policies due had succeeded");
    expect(out).toContain("sync job 42 skipped (overlap), or its end is no longer kept: all are since 01:00 UTC");
  });
});
