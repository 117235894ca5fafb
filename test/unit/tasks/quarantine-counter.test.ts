import { describe, expect, it } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import { weightOf } from "../../../src/model/outcome.ts";
import type { CountedEnding } from "../../../src/store/pauses.ts";
import { createQuarantineCounter } from "../../../src/tasks/recorder.ts";
import { testOutcome } from "../../support/outcomes.ts";

describe("what an outcome says of its policy", () => {
  const cases = [
    ["succeeded", "completed", "success"],
    ["conflicts", "new-conflicts", "success"],
    ["accepted", "answered", "success"],
    ["failed", "run-failed", "bad"],
    ["failed", "expectation-not-met", "success"],
    ["timed-out", "deadline", "bad"],
    ["unknown", "answer-lost", "bad"],
    ["not-started", "refused", "bad"],
    ["skipped", "overlap", "nothing"],
    ["missed", "throttled", "nothing"],
    ["blocked", "completed", "nothing"],
  ] as const;
  it.each(cases)("%s (%s): %s", (status, reason, weight) => {
    expect(weightOf({ status, reason })).toBe(weight);
  });

  it("is counted only for a policy that has a rule", async () => {
    const counted: CountedEnding[] = [];
    const counts = {
      count: async (ending: CountedEnding) => {
        counted.push(ending);
        return "nothing" as const;
      },
    };
    const ruleOf = (policy: string) => (policy === "nightly" ? { after: 2, forMs: 60_000 } : undefined);
    const watch = createQuarantineCounter(counts, ruleOf, silentLog);
    await watch(testOutcome({ policy: "other", status: "failed", reason: "run-failed" }));
    await watch(testOutcome({ status: "skipped", reason: "overlap" }));
    await watch(testOutcome({ status: "unknown", reason: "redis-loss" }));
    await watch(testOutcome({ status: "failed", reason: "run-failed", detail: "activity 7 did not succeed" }));
    expect(counted).toEqual([
      {
        policy: "nightly",
        slotMs: Date.UTC(2026, 10, 21, 2, 30),
        isSuccess: false,
        note: "the last ended failed (run-failed): activity 7 did not succeed",
      },
    ]);
  });
});
