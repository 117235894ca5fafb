import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DstRule, Schedule } from "../../../src/config/policy-set.ts";
import { dstDays } from "../../../src/schedule/dst-days.ts";
import { createSlotSource } from "../../../src/schedule/slots.ts";
import { allRules, fixedExpressions, subDailyExpressions } from "../../support/oracle-check.ts";
import { testPolicy } from "../../support/policies.ts";

const policyWith = (cron: string | readonly string[], timezone: string, dst: Partial<DstRule> = {}, spreadMs = 0) => {
  const expressions = typeof cron === "string" ? [cron] : cron;
  const rule = { gap: "next", overlap: "first", ...dst } as const;
  return testPolicy({ name: "p", schedule: { kind: "cron", expressions, timezone, dst: rule, spreadMs } });
};
const year = [Date.parse("2026-11-21T00:00:00Z"), Date.parse("2027-11-21T00:00:00Z")] as const;
const shown = (policy: ReturnType<typeof testPolicy>, [fromMs, untilMs] = year) =>
  dstDays(policy, fromMs, untilMs).map(({ date, kind, walls, slots }) => [
    date,
    kind,
    walls.map((wallMs) => new Date(wallMs).toISOString().slice(11, 16)).join(" "),
    slots.map((slotMs) => new Date(slotMs).toISOString().slice(0, 16)).join(" "),
  ]);

describe("the dates on which a clock change affects a policy", () => {
  it("name what would have been and what is, in spring and autumn", () => {
    expect(shown(policyWith("30 2 * * *", "Europe/Vienna"))).toEqual([
      ["2027-03-28", "gap", "02:30", "2027-03-28T01:00"],
      ["2027-10-31", "overlap", "02:30", "2027-10-31T00:30"],
    ]);
  });

  it("say when slots are dropped, or kept twice", () => {
    expect(shown(policyWith("*/20 2 * * *", "Europe/Vienna", { gap: "skip", overlap: "both" }))).toEqual([
      ["2027-03-28", "gap", "02:00 02:20 02:40", ""],
      [
        "2027-10-31",
        "overlap",
        "02:00 02:20 02:40",
        "2027-10-31T00:00 2027-10-31T00:20 2027-10-31T00:40 2027-10-31T01:00 2027-10-31T01:20 2027-10-31T01:40",
      ],
    ]);
  });

  it("are the local ones, also where clocks change at midnight", () => {
    expect(shown(policyWith("30 23 * * *", "Asia/Beirut"), [year[0], Date.parse("2027-12-31T00:00:00Z")])).toEqual([
      ["2027-10-30", "overlap", "23:30", "2027-10-30T20:30"],
    ]);
  });

  it("are none for slots beside the hour, other days, intervals and UTC", () => {
    expect(shown(policyWith("0 12 * * *", "Europe/Vienna"))).toEqual([]);
    expect(shown(policyWith("30 2 * * 1-5", "Europe/Vienna"))).toEqual([]);
    expect(shown(policyWith("* * * * *", "UTC"))).toEqual([]);
    expect(shown(testPolicy({ schedule: { kind: "every", everyMs: 600_000, spreadMs: 0 } }))).toEqual([]);
    expect(shown(testPolicy({ schedule: undefined }))).toEqual([]);
  });

  it("look at each expression of a list by itself, and move with the spread", () => {
    const policy = testPolicy({
      name: "a",
      schedule: { ...(policyWith(["0 2 * * *", "0 * * * *"], "Europe/Vienna").schedule as Schedule), spreadMs: 60_000 },
    });
    const days = dstDays(policy, year[0], Date.parse("2027-04-01T00:00:00Z"));
    expect(days.map(({ expression }) => expression)).toEqual(["0 2 * * *", "0 * * * *"]);
    expect(days.map(({ slots }) => new Date(slots[0] ?? 0).toISOString())).toEqual([
      "2027-03-28T01:00:39.000Z",
      "2027-03-28T01:00:39.000Z",
    ]);
  });

  it("never say anything else than the calendar fires", { timeout: 60_000 }, () => {
    const expression = fc.constantFrom(...fixedExpressions, ...subDailyExpressions);
    const zone = fc.constantFrom(
      "Europe/Vienna",
      "Australia/Lord_Howe",
      "Asia/Beirut",
      "America/Havana",
      "Antarctica/Troll",
      "Africa/Cairo",
    );
    fc.assert(
      fc.property(
        expression,
        zone,
        fc.constantFrom(...allRules),
        fc.integer({ min: 2020, max: 2036 }),
        (cron, timezone, rule, from) => {
          const policy = policyWith(cron, timezone, rule);
          const source = createSlotSource(policy);
          for (const { walls, slots, shift } of dstDays(policy, Date.UTC(from, 0, 1), Date.UTC(from + 1, 0, 1))) {
            for (const slotMs of slots) expect(source?.next(slotMs - 1)).toBe(slotMs);
            const unshifted = walls.flatMap((wallMs) => [wallMs - shift.beforeMs, wallMs - shift.afterMs]);
            const shownTwice = shift.beforeMs > shift.afterMs;
            for (const instantMs of shownTwice ? unshifted : [])
              expect(source?.next(instantMs - 1) === instantMs).toBe(slots.includes(instantMs));
          }
        },
      ),
      { numRuns: 200 },
    );
  });
});
