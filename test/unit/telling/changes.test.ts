import { describe, expect, it } from "vitest";
import type { NotifyRule } from "../../../src/config/policy-set.ts";
import type { Outcome } from "../../../src/tasks/outcome.ts";
import { beginMs, changeRule, silentRule, TellingHouse, toldPolicy } from "../../support/telling-house.ts";

const failed: Partial<Outcome> = { status: "failed", reason: "run-failed" };
const unreachable: Partial<Outcome> = { status: "failed", reason: "unreachable" };

/** One policy whose tasks end so, a minute apart; what was told. */
async function storyOf(rule: Partial<NotifyRule>, endings: readonly Partial<Outcome>[]): Promise<string[]> {
  const house = new TellingHouse([toldPolicy("nightly", [{ ...silentRule, ...rule }])]);
  for (const ending of endings) {
    house.ended("nightly", ending);
    await house.after(60_000);
  }
  return house.delivered.map(({ notice }) => notice.title);
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
    expect(await storyOf(changeRule, [blocked, unknown, conflicts, { status: "skipped" }, {}])).toEqual([
      "nightly: blocked (no-evidence), sync job 42",
      "nightly: unknown (answer-lost), sync job 42",
      "nightly: conflicts (3 new), sync job 42",
      "nightly: recovered after 4m (was conflicts)",
    ]);
  });

  it("is what somebody changed by hand and an apply policy set again, once each time, whatever the state", async () => {
    const drift = { reason: "drift-mended", target: "syncJob-4" } as const;
    expect(await storyOf(changeRule, [{}, drift, {}, drift])).toEqual([
      "nightly: drift mended, syncJob-4",
      "nightly: drift mended, syncJob-4",
    ]);
    expect(await storyOf({ recovery: true, unknown: true }, [drift])).toEqual([]);
    expect(await storyOf({ drift: true }, [failed, drift])).toEqual(["nightly: drift mended, syncJob-4"]);
  });

  it("is nothing while nothing changes", async () => {
    expect(await storyOf(changeRule, [{}, { status: "accepted" }, { status: "skipped" }, {}])).toEqual([]);
  });

  it("is a missed slot, and that the next one worked", async () => {
    const house = new TellingHouse([toldPolicy("nightly")]);
    house.missed("nightly");
    await house.after(60_000);
    house.missed("nightly");
    house.ended("nightly");
    await house.after(60_000);
    expect(house.told()).toEqual(["ops failing nightly", "ops recovered nightly"]);
    expect(house.delivered[0]?.notice).toMatchObject({ data: { state: "missed", reason: "catch-up-window" } });
  });

  it("does not flap when one of several sync jobs fails night after night", async () => {
    const house = new TellingHouse([toldPolicy("nightly")]);
    for (let night = 0; night < 4; night += 1) {
      const slot = new Date(beginMs + night * 86_400_000).toISOString();
      house.ended("nightly", { target: "1", slot });
      house.ended("nightly", { target: "2", slot, ...failed });
      house.ended("nightly", { target: "3", slot });
      await house.after(86_400_000);
    }
    expect(house.told()).toEqual(["ops failing nightly"]);
  });

  it("lets go of a sync job that the policy does not have any more", async () => {
    const house = new TellingHouse([toldPolicy("nightly")]);
    house.ended("nightly", { target: "1", ...failed });
    await house.after(60_000);
    for (let slot = 0; slot < 2; slot += 1) {
      house.ended("nightly", { target: "2" });
      await house.after(60_000);
    }
    expect(house.told()).toEqual(["ops failing nightly", "ops recovered nightly"]);
  });
});

describe("the single rules", () => {
  it("failure N tells when it is the Nth slot in a row, and recovery only who heard of it", async () => {
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
    expect(await storyOf({ conflicts: 10 }, [found(10), found(11), found(12), found(0), found(11)])).toEqual([
      "nightly: conflicts (11 new), sync job 42",
      "nightly: conflicts (11 new), sync job 42",
    ]);
    expect(await storyOf({ conflicts: "judged" }, [found(11)])).toEqual([]);
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
    const house = new TellingHouse([toldPolicy("nightly", [{ ...silentRule, every: true }])]);
    house.ended("nightly");
    house.ended("nightly", { status: "skipped", reason: "overlap" });
    house.ended("nightly", unreachable);
    house.missed("nightly");
    await house.after(1_000);
    const said = house.delivered.map(({ notice }) => [notice.kind, notice.data["status"], notice.data["reason"]]);
    expect(said).toEqual([
      ["outcome", "succeeded", "completed"],
      ["outcome", "skipped", "overlap"],
      ["outcome", "failed", "unreachable"],
      ["outcome", "missed", "catch-up-window"],
    ]);
  });

  it("silence tells once, and its end to who hears of recoveries", async () => {
    const house = new TellingHouse([
      toldPolicy("nightly", [
        { ...silentRule, silence: true },
        { ...silentRule, sink: "boss", silence: true, recovery: true },
      ]),
    ]);
    house.silences = new Map([["nightly", beginMs - 7_200_000]]);
    await house.after(1_000);
    await house.after(60_000);
    expect(house.told()).toEqual(["ops silent nightly", "boss silent nightly"]);
    expect(house.delivered[0]?.notice.title).toBe("nightly: no success for 2h, two intervals or more");
    house.silences = new Map();
    house.ended("nightly");
    await house.after(1_000);
    expect(house.told().slice(2)).toEqual(["boss recovered nightly"]);
  });

  it("token-expiring tells once for each token", async () => {
    const house = new TellingHouse([
      toldPolicy("nightly", [{ ...silentRule, tokenExpiring: true }]),
      toldPolicy("other"),
    ]);
    house.tokens = new Map([["main", beginMs + 600_000]]);
    await house.after(0);
    await house.after(60_000);
    expect(house.told()).toEqual(["ops token-expiring service:main"]);
    expect(house.delivered[0]?.notice.title).toBe("the token of service main expires in 10m and cannot be renewed");
  });
});

describe("each sink", () => {
  it("hears by its own rules, and nobody else's", async () => {
    const house = new TellingHouse([
      toldPolicy("nightly", [changeRule, { ...silentRule, sink: "boss", failuresInRow: 2, recovery: true }]),
    ]);
    for (const ending of [failed, failed, {}]) {
      house.ended("nightly", ending);
      await house.after(60_000);
    }
    expect(house.told()).toEqual([
      "ops failing nightly",
      "boss failing nightly",
      "ops recovered nightly",
      "boss recovered nightly",
    ]);
  });
});
