import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defaultTiming, type FollowedRun, nextCheckMs } from "../../../src/tasks/timing.ts";

const day = 86_400_000;
const run: FollowedRun = {
  nowMs: 0,
  sentAtMs: 0,
  deadlineMs: day,
  finishSeenAtMs: undefined,
  attributable: true,
  patienceMs: 300_000,
};

/** How often a run looks in this time after its start. */
function looksIn(forMs: number, changes: Partial<FollowedRun>): number {
  let looks = 0;
  for (let nowMs = 1_000; nowMs < forMs; nowMs = nextCheckMs({ ...run, ...changes, nowMs }, defaultTiming)) looks += 1;
  return looks;
}

describe("the pace of a followed run", () => {
  it("costs one look a minute where a walk wakes it, and four where none can", () => {
    expect(looksIn(3_600_000, {})).toBe(60);
    expect(looksIn(3_600_000, { attributable: false })).toBeGreaterThan(230);
  });

  it.each([
    ["young", { nowMs: 1_000 }, 61_000],
    ["young, and nothing says whose activities are", { nowMs: 10_000, attributable: false }, 12_000],
    ["an hour old", { nowMs: 3_600_000 }, 3_660_000],
    ["an hour old, and nothing says whose activities are", { nowMs: 3_600_000, attributable: false }, 3_615_000],
    ["an hour old and just finished", { nowMs: 3_600_000, finishSeenAtMs: 3_600_000 }, 3_601_000],
    ["of little patience", { nowMs: 1_000, patienceMs: 10_000 }, 3_000],
    ["at its deadline soon", { nowMs: 3_600_000, deadlineMs: 3_610_000 }, 3_610_000],
    ["just past its deadline", { nowMs: 3_600_000, deadlineMs: 3_600_000 }, 3_601_000],
    ["long past its deadline", { nowMs: 3_600_000, deadlineMs: 3_550_000 }, 3_610_000],
  ])("of one that is %s", (_, changes, expected) => {
    expect(nextCheckMs({ ...run, ...changes }, defaultTiming)).toBe(expected);
  });

  it("never stands still, and never sleeps beyond its bound or its deadline", () => {
    const instant = fc.integer({ min: 0, max: day });
    fc.assert(
      fc.property(instant, instant, instant, fc.boolean(), (nowMs, ageMs, deadlineMs, attributable) => {
        const next = nextCheckMs({ ...run, nowMs, sentAtMs: nowMs - ageMs, deadlineMs, attributable }, defaultTiming);
        const longest = attributable ? 60_000 : 15_000;
        return next > nowMs && next <= nowMs + longest && (nowMs >= deadlineMs || next <= deadlineMs);
      }),
    );
  });
});
