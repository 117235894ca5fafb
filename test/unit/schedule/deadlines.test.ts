import { describe, expect, it } from "vitest";
import type { Expectation, Policy, Schedule } from "../../../src/config/policy-set.ts";
import type { DeadlineState } from "../../../src/model/deadline.ts";
import {
  deadlineOfSlot,
  deadlinesOf,
  freshDeadlines,
  judgeDeadlines,
  madeAt,
  problemOfDeadline,
} from "../../../src/schedule/deadlines.ts";
import { testPolicy } from "../../support/policies.ts";

const at = (text: string) => Date.parse(`${text}Z`);
const short = (instantMs: number) => new Date(instantMs).toISOString().slice(5, 16);
const dst = { gap: "next", overlap: "first" } as const;
const cron = (expression: string, timezone = "Europe/Vienna"): Schedule => ({
  ...{ kind: "cron", expressions: [expression], timezone, dst, spreadMs: 0 },
});
const bySix: Expectation = { kind: "successBy", at: "06:00", on: "*" };
const closed = { timezone: "Europe/Vienna", blackouts: [], holidays: [] };

function policyOf(expect: Expectation, schedule = cron("30 2 * * *"), changes: Partial<Policy> = {}): Policy {
  return testPolicy({ name: "nightly", schedule, expect, closed, ...changes });
}

function shown(policy: Policy, after: string, until: string): string[] {
  const { deadlines } = deadlinesOf(policy, { afterMs: at(after), untilMs: at(until) });
  return deadlines.map(({ fromMs, atMs }) => `${short(fromMs)} – ${short(atMs)}`);
}

describe("the deadlines of a policy", () => {
  it("are at that time of each day with a slot, for the slots since midnight", () => {
    const policy = policyOf(bySix, cron("30 2 * * 1-5"));
    // 2026-11-21 is a Saturday.
    expect(shown(policy, "2026-11-20T12:00", "2026-11-24T12:00")).toEqual([
      "11-22T23:00 – 11-23T05:00",
      "11-23T23:00 – 11-24T05:00",
    ]);
  });

  it("are on the named weekdays only", () => {
    const policy = policyOf({ ...bySix, on: "1,3" });
    expect(shown(policy, "2026-11-20T12:00", "2026-11-26T12:00")).toEqual([
      "11-22T23:00 – 11-23T05:00",
      "11-24T23:00 – 11-25T05:00",
    ]);
  });

  it("are so long after each slot", () => {
    const policy = policyOf({ kind: "within", withinMs: 7_200_000 });
    expect(shown(policy, "2026-11-20T12:00", "2026-11-22T12:00")).toEqual([
      "11-21T01:30 – 11-21T03:30",
      "11-22T01:30 – 11-22T03:30",
    ]);
  });

  it("leave out holidays, and days whose slots a blackout closes", () => {
    const blackouts = [{ cron: "0 2 * * 1", durationMs: 3_600_000 }];
    const holidays = ["2026-11-24"];
    for (const [expected, first] of [
      [bySix, "11-24T23:00 – 11-25T05:00"],
      [{ kind: "within", withinMs: 3_600_000 } as const, "11-25T01:30 – 11-25T02:30"],
    ] as const) {
      const policy = policyOf(expected, undefined, { closed: { ...closed, blackouts, holidays } });
      expect(shown(policy, "2026-11-22T12:00", "2026-11-25T12:00")).toEqual([first]);
    }
  });

  it("keep an open slot of a day that a blackout closes in part", () => {
    const blackouts = [{ cron: "0 2 * * 1", durationMs: 3_600_000 }];
    const policy = policyOf(bySix, cron("30 2,4 * * *"), { closed: { ...closed, blackouts } });
    expect(shown(policy, "2026-11-22T12:00", "2026-11-23T12:00")).toEqual(["11-22T23:00 – 11-23T05:00"]);
  });

  it("move behind a gap of the clocks, and never fall out", () => {
    const skipping: Schedule = { ...cron("0 1 * * *"), dst: { gap: "skip", overlap: "both" } } as Schedule;
    const policy = policyOf({ ...bySix, at: "02:30" }, skipping);
    expect(shown(policy, "2027-03-27T12:00", "2027-03-28T12:00")).toEqual(["03-27T23:00 – 03-28T01:00"]);
    expect(shown(policy, "2027-10-30T12:00", "2027-10-31T12:00")).toEqual(["10-30T22:00 – 10-31T00:30"]);
  });

  it("come in bounded portions, and none is lost between two", () => {
    const policy = policyOf({ kind: "within", withinMs: 60_000 }, { kind: "every", everyMs: 10_000, spreadMs: 0 });
    const untilMs = at("2026-11-21T05:00");
    const found: number[] = [];
    let afterMs = at("2026-11-21T00:00");
    while (afterMs < untilMs) {
      const { deadlines, doneMs } = deadlinesOf(policy, { afterMs, untilMs });
      expect(deadlines.length).toBeLessThanOrEqual(100);
      found.push(...deadlines.map(({ atMs }) => atMs));
      afterMs = doneMs;
    }
    expect(found).toHaveLength(1_800);
    expect(new Set(found).size).toBe(1_800);
  });

  it("are known of a slot, and of one after the time of day there is none", () => {
    const policy = policyOf(bySix, cron("30 2,14 * * *"));
    const found = deadlineOfSlot(policy, at("2026-11-21T01:30"));
    expect(found && short(found.atMs)).toBe("11-21T05:00");
    expect(deadlineOfSlot(policy, at("2026-11-21T13:30"))).toBeUndefined();
  });
});

describe("a deadline is met", () => {
  const end = (target: string, slotMs: number, endedMs: number) => ({ target, slotMs, endedMs });
  it("when the last of all sync jobs has ended well, whichever slot it was", () => {
    expect(madeAt(100, ["1", "2"], [end("1", 100, 110), end("2", 200, 230), end("1", 200, 240)])).toBe(230);
  });
  it("by no slot from before, however late it ended", () => {
    expect(madeAt(100, ["1"], [end("1", 90, 120)])).toBeUndefined();
    expect(madeAt(100, ["1", "2"], [end("1", 100, 120)])).toBeUndefined();
  });
});

describe("judging deadlines", () => {
  const policy = policyOf(bySix);
  const dayMs = 86_400_000;
  const first = { fromMs: at("2026-11-20T23:00"), atMs: at("2026-11-21T05:00") };
  const days = [0, 1, 2].map((day) => ({ fromMs: first.fromMs + day * dayMs, atMs: first.atMs + day * dayMs }));
  const fresh = freshDeadlines(bySix, at("2026-11-20T12:00"));
  /** `ends`: hours after the first midnight at which it ended well. */
  const judge = (before: DeadlineState, deadlines: typeof days, ends: readonly number[], untilMs?: number) => {
    const made = ({ fromMs }: { fromMs: number }) =>
      ends.map((hours) => first.fromMs + hours * 3_600_000).find((endMs) => endMs >= fromMs);
    const doneMs = untilMs ?? deadlines.at(-1)?.atMs ?? 0;
    const judged = judgeDeadlines(policy, before, { deadlines, doneMs }, made);
    const told = judged.findings.map((one) =>
      one.finding === "late" ? `late ${short(one.late.atMs)}` : `made up ${short(one.endedWellMs)}`,
    );
    return { ...judged, told };
  };

  it("tells nothing of those that were met", () => {
    const { told, state } = judge(fresh, days, [3, 27, 51]);
    expect(told).toEqual([]);
    expect(state).toMatchObject({ late: null, judgedMs: days[2]?.atMs });
  });

  it("tells each missed day once, and the end once, since the first of them", () => {
    const { told, state } = judge(fresh, days, []);
    expect(told).toEqual(["late 11-21T05:00", "late 11-22T05:00", "late 11-23T05:00"]);
    expect(state.late).toMatchObject({ sinceMs: first.atMs, atMs: days[2]?.atMs });
    const end = judge(state, [], [55], at("2026-11-23T06:00"));
    expect(end.told).toEqual(["made up 11-23T06:00"]);
    expect(end.state.late).toBeNull();
  });

  it("tells after a downtime what was late and made up for meanwhile", () => {
    expect(judge(fresh, days, [9, 30.5, 50]).told).toEqual([
      "late 11-21T05:00",
      "made up 11-21T08:00",
      "late 11-22T05:00",
      "made up 11-22T05:30",
    ]);
  });

  it("tells one deadline a day of a policy with many", () => {
    const hours = Array.from({ length: 30 }, (_, hour) => ({
      fromMs: first.fromMs + hour * 3_600_000,
      atMs: first.fromMs + (hour + 1) * 3_600_000,
    }));
    expect(judge(fresh, hours, []).told).toEqual(["late 11-21T00:00", "late 11-21T23:00"]);
  });

  it.each([[[9, 30.5]], [[30]], [[29.99, 30.01]], [[60]]])("gives the same in one portion and in many: %j", (ends) => {
    const untilMs = first.fromMs + 61 * 3_600_000;
    const whole = judge(fresh, days, ends, untilMs);
    let state = fresh;
    const told: string[] = [];
    for (let hour = 0; hour <= 61; hour += 1) {
      const doneMs = first.fromMs + hour * 3_600_000;
      const due = days.filter(({ atMs }) => atMs > state.judgedMs && atMs <= doneMs);
      // Ends are known as soon as they come: up to an hour before their time is judged.
      const part = judge(
        state,
        due,
        ends.filter((hours) => hours <= hour + 1),
        doneMs,
      );
      told.push(...part.told);
      state = part.state;
    }
    expect(told).toEqual(whole.told);
    expect(state).toEqual(whole.state);
  });
});

describe("a deadline is refused", () => {
  const problem = (expect: Expectation, schedule: Schedule) => problemOfDeadline(policyOf(expect, schedule))?.message;
  it("when no slot lies before it", () => {
    const message = "no slot of this policy lies between midnight and 06:00 (Europe/Vienna)";
    expect(problem(bySix, cron("0 7 * * *"))).toBe(message);
    expect(problem({ ...bySix, on: "6,0" }, cron("30 2 * * 1-5"))).toBe(message);
  });
  it("when a named weekday has no slot before it", () => {
    const message = "on Sunday, Saturday no slot of this policy lies between midnight and 06:00 (Europe/Vienna)";
    expect(problem({ ...bySix, on: "0-6" }, cron("30 2 * * 1-5"))).toBe(message);
  });
  it.each([
    [bySix, cron("30 2 * * 1-5")],
    [bySix, cron("30 2 1 1 *")],
    [{ ...bySix, on: "1-5" }, cron("30 2 * * *")],
    [{ ...bySix, on: "1" }, cron("30 2 1-7 * *")],
    [bySix, { kind: "every", everyMs: 86_400_000 * 3, spreadMs: 0 }],
    [bySix, { kind: "once", at: "2020-12-01T05:00:00", timezone: "UTC", dst, spreadMs: 0 }],
  ] as const)("not where some day has one: %j %j", (expected, schedule) => {
    expect(problem(expected, schedule)).toBeUndefined();
  });
});
