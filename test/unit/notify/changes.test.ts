import { describe, expect, it } from "vitest";
import type { NotifyRule } from "../../../src/config/policy-set.ts";
import type { Outcome } from "../../../src/model/outcome.ts";
import { parseTaskId } from "../../../src/model/task.ts";
import {
  beginMs,
  changeRule,
  NotifyFixture,
  notifiedPolicy,
  policyOver,
  silentRule,
} from "../../support/notify-fixture.ts";

const failed: Partial<Outcome> = { status: "failed", reason: "run-failed" };
const unreachable: Partial<Outcome> = { status: "failed", reason: "unreachable" };

/** One policy whose tasks end so, a minute apart; what was told. */
async function storyOf(rule: Partial<NotifyRule>, endings: readonly Partial<Outcome>[]): Promise<string[]> {
  const fixture = new NotifyFixture([notifiedPolicy("nightly", [{ ...silentRule, ...rule }])]);
  for (const ending of endings) {
    fixture.ended("nightly", ending);
    await fixture.after(60_000);
  }
  return fixture.delivered.map(({ notice }) => notice.title);
}

describe("what a sink is told by a bare name", () => {
  it("is a failure once, however often it comes again, and then its end", async () => {
    expect(await storyOf(changeRule, [{}, failed, failed, failed, {}, {}])).toEqual([
      "nightly: failing (run-failed), sync job 42",
      "nightly: recovered after 3m (was failing)",
    ]);
  });

  it("is every change between bad states, too", async () => {
    const blocked = { status: "blocked", reason: "no-evidence" } as const;
    const unknown = { status: "unknown", reason: "answer-lost" } as const;
    const conflicts = { status: "conflicts", reason: "new-conflicts", newConflicts: 3 } as const;
    const settled = { stillConflicts: 0 };
    expect(await storyOf(changeRule, [blocked, unknown, conflicts, { status: "skipped" }, settled])).toEqual([
      "nightly: blocked (no-evidence), sync job 42",
      "nightly: unknown (answer-lost), sync job 42",
      "nightly: conflicts (3 new), sync job 42",
      "nightly: recovered after 4m (was conflicts)",
    ]);
  });

  it("is no recovery while the conflicts are open, also after something worse", async () => {
    const found = { status: "conflicts", reason: "new-conflicts", newConflicts: 3 } as const;
    const still = (stillConflicts: number) => ({ newConflicts: 0, stillConflicts });
    expect(await storyOf(changeRule, [found, still(3), still(1), still(0), still(0)])).toEqual([
      "nightly: conflicts (3 new), sync job 42",
      "nightly: recovered after 3m (was conflicts)",
    ]);
    // How many are left was not counted: that is said, also where something worse came between.
    const uncounted = "; whether the earlier conflicts are settled was not counted";
    expect((await storyOf(changeRule, [found, {}])).slice(1)).toEqual([
      `nightly: ended well after 1m (was conflicts)${uncounted}`,
    ]);
    expect((await storyOf(changeRule, [found, failed, {}])).slice(2)).toEqual([
      `nightly: recovered after 2m (was failing)${uncounted}`,
    ]);
    expect(await storyOf(changeRule, [found, failed, failed, still(3), still(0)])).toEqual([
      "nightly: conflicts (3 new), sync job 42",
      "nightly: failing (run-failed), sync job 42",
      "nightly: conflicts (3 new), sync job 42",
      "nightly: recovered after 4m (was conflicts)",
    ]);
    // They were there before the first run: this one brought none.
    expect(await storyOf(changeRule, [still(3), failed, still(3)])).toEqual([
      "nightly: failing (run-failed), sync job 42",
      "nightly: recovered after 1m (was failing)",
    ]);
  });

  it("is no recovery by an outage that ends while the conflicts are open", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("nightly"), notifiedPolicy("other")]);
    fixture.ended("nightly", { status: "conflicts", reason: "new-conflicts", newConflicts: 3 });
    await fixture.after(60_000);
    for (const policy of ["nightly", "other"]) fixture.ended(policy, unreachable);
    await fixture.after(60_000);
    for (const policy of ["nightly", "other"]) fixture.ended(policy, { newConflicts: 0, stillConflicts: 3 });
    await fixture.after(60_000);
    expect(fixture.published()).toEqual([
      "ops failing nightly",
      "ops service-down service:main",
      "ops service-up service:main",
    ]);
  });

  it("takes as many open conflicts as the policy does", async () => {
    const policy = notifiedPolicy("nightly");
    const fixture = new NotifyFixture([{ ...policy, follow: { ...policy.follow, conflictsMax: 2 } }]);
    fixture.ended("nightly", { status: "conflicts", reason: "new-conflicts", newConflicts: 3 });
    await fixture.after(60_000);
    fixture.ended("nightly", { newConflicts: 1, stillConflicts: 2 });
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops failing nightly"]);
    fixture.ended("nightly", { newConflicts: 0, stillConflicts: 2 });
    await fixture.after(60_000);
    expect(fixture.titles().slice(1)).toEqual(["nightly: recovered after 2m (was conflicts)"]);
  });

  it("is a change by hand that an apply policy corrected, once each, in any state", async () => {
    const drift = { reason: "drift-corrected", target: "syncJob-4" } as const;
    expect(await storyOf(changeRule, [{}, drift, {}, drift])).toEqual([
      "nightly: drift corrected, syncJob-4",
      "nightly: drift corrected, syncJob-4",
    ]);
    expect(await storyOf({ recovery: true, unknown: true }, [drift])).toEqual([]);
    expect(await storyOf({ drift: true }, [failed, drift])).toEqual(["nightly: drift corrected, syncJob-4"]);
  });

  it("is cut with an ellipsis where a title or a detail is too long", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("x".repeat(400), [{ ...changeRule, every: true }])]);
    fixture.ended("x".repeat(400), { ...failed, detail: "y".repeat(9_000) });
    await fixture.after(60_000);
    for (const { notice } of fixture.delivered) expect(notice.title).toMatch(/^x{299}…$/);
    expect(fixture.delivered.map(({ notice }) => String(notice.data["detail"]).match(/…$/)?.index)).toEqual([
      3_999, 499,
    ]);
  });

  it("is nothing while nothing changes", async () => {
    expect(await storyOf(changeRule, [{}, { status: "accepted" }, { status: "skipped" }, {}])).toEqual([]);
  });

  it("is a missed slot, and that the next one worked", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("nightly")]);
    fixture.missed("nightly");
    await fixture.after(60_000);
    fixture.missed("nightly");
    fixture.ended("nightly");
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops failing nightly", "ops recovered nightly"]);
    expect(fixture.delivered[0]?.notice).toMatchObject({ data: { state: "missed", reason: "catch-up-window" } });
    // The slot had no task; the one that worked had.
    expect(fixture.delivered.map(({ notice }) => parseTaskId(String(notice.data["task"]))?.policy)).toEqual([
      undefined,
      "nightly",
    ]);
    expect(fixture.delivered[0]?.notice.data).not.toHaveProperty("task");
  });

  it("does not flap when one of several sync jobs fails night after night", async () => {
    const fixture = new NotifyFixture([policyOver("nightly", 1, 2, 3)]);
    for (let night = 0; night < 4; night += 1) {
      const slot = new Date(beginMs + night * 86_400_000).toISOString();
      fixture.ended("nightly", { target: "1", slot });
      fixture.ended("nightly", { target: "2", slot, ...failed });
      fixture.ended("nightly", { target: "3", slot });
      await fixture.after(86_400_000);
    }
    expect(fixture.published()).toEqual(["ops failing nightly"]);
  });

  it("is no recovery while one of two sync jobs hangs and the other one succeeds", async () => {
    const fixture = new NotifyFixture([policyOver("often", 11, 4)]);
    const hang = { target: "11", status: "timed-out", reason: "deadline" } as const;
    // Every 20 s; sync job 11 is given up after 50 s, and the slots meanwhile are skipped for it.
    for (let round = 0; round < 4; round += 1) {
      const slot = new Date(fixture.nowMs).toISOString();
      for (let slots = 0; slots < 3; slots += 1) {
        fixture.ended("often", { target: "4" });
        if (slots > 0) fixture.ended("often", { target: "11", status: "skipped", reason: "overlap" });
        if (slots === 2) {
          await fixture.after(10_000);
          fixture.ended("often", { ...hang, slot });
          await fixture.after(10_000);
        } else await fixture.after(20_000);
      }
    }
    expect(fixture.titles()).toEqual(["often: failing (deadline), sync job 11"]);
    fixture.ended("often", { target: "11" });
    await fixture.after(1_000);
    expect(fixture.titles().slice(1)).toEqual(["often: recovered after 3m (was failing)"]);
  });

  it("says of no sync job that its conflicts are settled where they were not counted", async () => {
    const fixture = new NotifyFixture([policyOver("two", 11, 4)]);
    for (const target of ["11", "4"]) fixture.ended("two", { target, status: "conflicts", reason: "new-conflicts" });
    fixture.ended("two", { target: "4" });
    await fixture.after(60_000);
    fixture.ended("two", { target: "11", stillConflicts: 0 });
    await fixture.after(60_000);
    expect(fixture.titles().at(-1)).toMatch(/^two: ended well .*was not counted$/);
  });

  it("is one notice a change with its task's data; a muted one follows another", async () => {
    const fixture = new NotifyFixture([policyOver("a", 11, 4)]);
    fixture.ended("a", { target: "4", status: "unknown", reason: "answer-lost" });
    fixture.ended("a", { target: "11", status: "failed", reason: "unreachable" });
    fixture.ended("a", { target: "4", status: "unknown", reason: "answer-lost" });
    await fixture.after(25_000);
    fixture.ended("a", { target: "11", status: "conflicts", reason: "new-conflicts", newConflicts: 2 });
    await fixture.after(10_000);
    const said = fixture.delivered.map(({ notice: { title, data } }) => [title, data["status"], data["target"]]);
    expect(said).toEqual([
      ["a: unknown (answer-lost), sync job 4", "unknown", "4"],
      ["a: conflicts (2 new), sync job 11", "conflicts", "11"],
      ["a: unknown (answer-lost), sync job 4", "unknown", "4"],
    ]);
  });

  it("has the remaining data and an id of its own, when something worse is over", async () => {
    const fixture = new NotifyFixture([policyOver("a", 11, 4)]);
    fixture.ended("a", { target: "4", status: "unknown", reason: "redis-loss" });
    await fixture.after(60_000);
    fixture.ended("a", { target: "11", ...failed });
    await fixture.after(60_000);
    fixture.ended("a", { target: "11" });
    await fixture.after(60_000);
    const said = fixture.delivered.map(({ notice: { title, data } }) => [title, data["status"], data["task"]]);
    expect(said).toEqual([
      ["a: unknown (redis-loss), sync job 4", "unknown", "a__run__42__1"],
      ["a: failing (run-failed), sync job 11", "failed", "a__run__42__2"],
      ["a: unknown (redis-loss), sync job 4", "unknown", "a__run__42__1"],
    ]);
    expect(new Set(fixture.delivered.map(({ notice }) => notice.id)).size).toBe(3);
  });
});

describe("a sync job that the policy does not name any more", () => {
  it("is forgotten two minutes later, which is told as no recovery", async () => {
    const fixture = new NotifyFixture([policyOver("nightly", 11, 4)]);
    fixture.ended("nightly", { target: "11", ...failed });
    fixture.ended("nightly", { target: "4" });
    await fixture.after(60_000);
    fixture.policies = [policyOver("nightly", 4), policyOver("other", 11)];
    for (let minute = 0; minute < 4; minute += 1) {
      fixture.ended("nightly", { target: "4" });
      await fixture.after(60_000);
    }
    expect(fixture.titles()).toEqual([
      "nightly: failing (run-failed), sync job 11",
      "nightly: sync job 11 is not in the policy any more; it is not known to have recovered (was failing)",
    ]);
    expect(fixture.delivered[1]?.notice).toMatchObject({ kind: "removed", data: { target: "11", status: "failed" } });
    expect(fixture.parts.policies.size).toBe(0);
  });

  it("leaves what else is bad, told with its own data, and its end", async () => {
    const fixture = new NotifyFixture([policyOver("nightly", 11, 4)]);
    fixture.ended("nightly", { target: "4", status: "unknown", reason: "redis-loss" });
    fixture.ended("nightly", { target: "11", ...failed });
    await fixture.after(60_000);
    fixture.policies = [policyOver("nightly", 4)];
    for (let minute = 0; minute < 3; minute += 1) await fixture.after(60_000);
    fixture.ended("nightly", { target: "4" });
    await fixture.after(60_000);
    expect(fixture.titles()).toEqual([
      "nightly: unknown (redis-loss), sync job 4",
      "nightly: failing (run-failed), sync job 11",
      "nightly: unknown (redis-loss), sync job 4",
      "nightly: recovered after 4m (was unknown)",
    ]);
  });

  it("is told to who was told of it, and hears of recoveries", async () => {
    const rules = [
      { ...silentRule, failuresInRow: 1 },
      { ...silentRule, sink: "ends", recovery: true },
      { ...silentRule, sink: "boss", failuresInRow: 1, recovery: true },
    ];
    const fixture = new NotifyFixture([notifiedPolicy("a", rules, { kind: "run", syncJobs: [11, 4] })]);
    fixture.ended("a", { target: "11", ...failed });
    fixture.ended("a", { target: "4", status: "blocked", reason: "approval-waiting" });
    await fixture.after(1_000);
    fixture.policies = [notifiedPolicy("a", rules, { kind: "run", syncJobs: [4] })];
    for (let minute = 0; minute < 3; minute += 1) await fixture.after(60_000);
    fixture.ended("a", { target: "4" });
    await fixture.after(1_000);
    expect(fixture.published()).toEqual(["ops failing a", "boss failing a", "boss removed a", "ends recovered a"]);
  });

  it("is one that newer masks do not name; an unread mask keeps all; its end recovers", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("m", [changeRule], { kind: "run", fromMasks: {} })]);
    const slot = async (...syncJobs: string[]) => {
      fixture.masksRead("m", syncJobs);
      await fixture.after(60_000);
    };
    await slot("11", "4");
    fixture.ended("m", { target: "11", ...failed });
    await slot("11", "4");
    for (let rounds = 0; rounds < 4; rounds += 1) {
      fixture.ended("m", { target: "masks", status: "not-started", reason: "refused" });
      await fixture.after(60_000);
    }
    await slot("4", "5");
    fixture.ended("m", { target: "5", ...failed });
    await fixture.after(60_000);
    fixture.ended("m", { target: "masks", status: "not-started", reason: "refused" });
    await fixture.after(60_000);
    fixture.ended("m", { target: "5" });
    await slot("4", "5");
    expect(fixture.titles()).toEqual([
      "m: failing (run-failed), sync job 11",
      "m: sync job 11 is not in the policy any more; it is not known to have recovered (was failing)",
      "m: failing (run-failed), sync job 5",
      "m: recovered after 2m (was failing)",
    ]);
  });

  it.each([
    ["failing, is not known to have recovered", failed, ["ops removed m"]],
    ["well, holds up no recovery", { newConflicts: 1 }, ["ops recovered m", "ends recovered m"]],
  ])("that left masks when they can be read again, %s", async (_, ending, told) => {
    const rules = [changeRule, { ...silentRule, sink: "ends", recovery: true }];
    const fixture = new NotifyFixture([notifiedPolicy("m", rules, { kind: "run", fromMasks: {} })]);
    fixture.masksRead("m", ["11", "4"]);
    fixture.ended("m", { target: "masks", status: "not-started", reason: "refused" });
    await fixture.after(60_000);
    fixture.ended("m", { target: "11", ...ending });
    await fixture.after(60_000);
    fixture.masksRead("m", ["4"]);
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops failing m", ...told]);
    expect(fixture.parts.policies.get("m")).not.toContain("failing");
  });
});

describe("the single rules", () => {
  it("failure N fires at the Nth bad slot in a row; recovery only after a failure", async () => {
    const rule = { failuresInRow: 3, recovery: true };
    expect(await storyOf(rule, [failed, failed, {}, failed, failed])).toEqual([]);
    expect(await storyOf(rule, [failed, failed, failed, failed, {}])).toEqual([
      "nightly: failing (run-failed), sync job 42, 3 slots in a row",
      "nightly: recovered after 4m (was failing)",
    ]);
    expect(await storyOf({ failuresInRow: 1 }, [failed, {}, failed])).toHaveLength(2);
  });

  it("counts slots, not the tasks of one", async () => {
    const slot = new Date(beginMs).toISOString();
    const tasks = ["1", "2", "3"].map((target) => ({ ...failed, target, slot }));
    expect(await storyOf({ failuresInRow: 2 }, tasks)).toEqual([]);
  });

  it("recovery alone tells the end of whatever was wrong", async () => {
    expect(await storyOf({ recovery: true }, [failed, {}, {}])).toEqual(["nightly: recovered after 1m (was failing)"]);
  });

  it("conflicts N tells above the number, whatever the outcome is called", async () => {
    const found = (newConflicts: number) => ({ newConflicts });
    const judged = { status: "conflicts", reason: "new-conflicts" } as const;
    expect(await storyOf({ conflicts: 10 }, [found(10), found(11), found(12), found(0), found(11)])).toEqual([
      "nightly: conflicts (11 new), sync job 42",
      "nightly: conflicts (11 new), sync job 42",
    ]);
    expect(await storyOf({ conflicts: "judged" }, [found(11)])).toEqual([]);
    const rule = { conflicts: 10, recovery: true };
    const left = (newConflicts: number, stillConflicts: number) => ({ ...judged, newConflicts, stillConflicts });
    expect(await storyOf(rule, [left(11, 0), left(1, 11), { newConflicts: 0, stillConflicts: 12 }])).toHaveLength(1);
    expect(await storyOf(rule, [left(11, 0), { newConflicts: 0, stillConflicts: 9 }])).toHaveLength(2);
    // The eleven were not counted: that is said.
    const [, end] = await storyOf(rule, [left(11, 0), { ...judged, newConflicts: 1 }]);
    expect(end).toMatch(/ended well .*\(was conflicts\); whether the earlier conflicts are settled was not counted/);
  });

  it.each([
    ["blocked", { status: "blocked", reason: "no-evidence" }],
    ["unknown", { status: "unknown", reason: "no-evidence" }],
    ["missed", { status: "missed", reason: "too-late" }],
  ] as const)("%s is told where it is asked for, and nowhere else", async (word, ending) => {
    expect(await storyOf({ [word]: true }, [failed, ending, ending])).toHaveLength(1);
    expect(await storyOf({ failuresInRow: 1 }, [ending])).toEqual([]);
  });

  it("every tells each outcome with its fields, also a skipped one, in their order", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("nightly", [{ ...silentRule, every: true }])]);
    fixture.ended("nightly");
    fixture.ended("nightly", { status: "skipped", reason: "overlap" });
    fixture.ended("nightly", unreachable);
    fixture.missed("nightly");
    await fixture.after(1_000);
    const said = fixture.delivered.map(({ notice }) => [notice.kind, notice.data["status"], notice.data["reason"]]);
    expect(said).toEqual([
      ["outcome", "succeeded", "completed"],
      ["outcome", "skipped", "overlap"],
      ["outcome", "failed", "unreachable"],
      ["outcome", "missed", "catch-up-window"],
    ]);
  });

  it("silence tells once, and its end to who hears of recoveries", async () => {
    const fixture = new NotifyFixture([
      notifiedPolicy("nightly", [
        { ...silentRule, stale: true },
        { ...silentRule, sink: "boss", stale: true, recovery: true },
      ]),
    ]);
    fixture.stale = new Map([["nightly", beginMs - 7_200_000]]);
    await fixture.after(1_000);
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops stale nightly", "boss stale nightly"]);
    expect(fixture.delivered[0]?.notice.title).toBe("nightly: no success for 2h, two intervals or more");
    fixture.stale = new Map();
    fixture.ended("nightly");
    await fixture.after(1_000);
    expect(fixture.published().slice(2)).toEqual(["boss recovered nightly"]);
  });

  it("token-expiring tells once for each token", async () => {
    const fixture = new NotifyFixture([
      notifiedPolicy("nightly", [{ ...silentRule, tokenExpiring: true }]),
      notifiedPolicy("other"),
    ]);
    fixture.tokens = new Map([["main", beginMs + 600_000]]);
    await fixture.after(0);
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops token-expiring service:main"]);
    expect(fixture.delivered[0]?.notice.title).toBe("the token of service main expires in 10m and cannot be renewed");
  });

  it("token-expiring tells a rule that is added while the token expires", async () => {
    const fixture = new NotifyFixture([notifiedPolicy("nightly")]);
    fixture.tokens = new Map([["main", beginMs + 600_000]]);
    await fixture.after(0);
    fixture.policies = [notifiedPolicy("nightly", [{ ...silentRule, tokenExpiring: true }])];
    await fixture.after(60_000);
    expect(fixture.published()).toEqual(["ops token-expiring service:main"]);
  });
});

describe("each sink", () => {
  it("hears the end of what it was told when no rule names it any more, and no more", async () => {
    const rules = ["hr", "gone", "fin"].map((sink) => ({ ...changeRule, sink }));
    const fixture = new NotifyFixture([notifiedPolicy("payroll", rules.slice(0, 2))]);
    fixture.sinkNames = ["hr"];
    const ends = async (ending: Partial<Outcome>) => {
      fixture.ended("payroll", ending);
      await fixture.after(60_000);
    };
    await ends(failed);
    fixture.policies = [notifiedPolicy("payroll", rules.slice(2))];
    for (const ending of [{ status: "blocked", reason: "no-evidence" } as const, {}, failed]) await ends(ending);
    expect(fixture.published()).toEqual([
      "hr failing payroll",
      "gone failing payroll",
      "fin failing payroll",
      "fin recovered payroll",
      "hr recovered payroll",
      "fin failing payroll",
    ]);
  });

  it("follows its own rules only", async () => {
    const fixture = new NotifyFixture([
      notifiedPolicy("nightly", [changeRule, { ...silentRule, sink: "boss", failuresInRow: 2, recovery: true }]),
    ]);
    for (const ending of [failed, failed, {}]) {
      fixture.ended("nightly", ending);
      await fixture.after(60_000);
    }
    expect(fixture.published()).toEqual([
      "ops failing nightly",
      "boss failing nightly",
      "ops recovered nightly",
      "boss recovered nightly",
    ]);
  });
});
