import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { judgeReceipt } from "../../../src/notify/process-delivery.ts";

const state = { tries: 1, ageMs: 0, giveUpAfterMs: 60_000 };

describe("a delivery", () => {
  it("waits longer with each try, up to a minute", () => {
    const waits = [1, 2, 3, 7, 1_000].map((tries) =>
      judgeReceipt({ type: "later", reason: "x" }, { ...state, tries }, () => 1),
    );
    expect(waits.map((verdict) => verdict.verdict === "later" && verdict.afterMs)).toEqual([
      1_000, 2_000, 4_000, 60_000, 60_000,
    ]);
  });

  it("waits as long as the receiver says, and a little after a failure at once", () => {
    expect(judgeReceipt({ type: "later", reason: "x", afterMs: 900_000 }, state)).toMatchObject({ afterMs: 900_000 });
    expect(judgeReceipt({ type: "later", reason: "x" }, state, () => 0)).toMatchObject({ afterMs: 250 });
  });

  it("is given up only by time, and only when nothing was taken", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000 }), fc.integer({ min: 0, max: 200_000 }), (tries, ageMs) => {
        const receipt = { type: "later", reason: "x" } as const;
        const { verdict } = judgeReceipt(receipt, { tries, ageMs, giveUpAfterMs: 100_000 });
        expect(verdict).toBe(ageMs >= 100_000 ? "failed" : "later");
        expect(judgeReceipt({ type: "taken" }, { tries, ageMs, giveUpAfterMs: 0 })).toEqual({ verdict: "delivered" });
        expect(judgeReceipt({ type: "stopped" }, { tries, ageMs, giveUpAfterMs: 0 })).toEqual({ verdict: "back" });
      }),
    );
  });

  it("that is refused says how", () => {
    expect(judgeReceipt({ type: "refused", reason: "answered with status 422" }, state)).toEqual({
      verdict: "failed",
      reason: "answered with status 422",
    });
  });
});
