import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import { createDeliveryProcess, judgeReceipt } from "../../../src/notify/process-delivery.ts";
import { noticeOf } from "../../support/receiver.ts";

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

  it("does not wait for the receiver of a sink that was changed meanwhile", async () => {
    const receipt = { type: "later", reason: "x", afterMs: 600_000 } as const;
    const sink = { deliver: async () => receipt, close: () => {} };
    const to = { kind: "file", path: "x", bytesMax: 1, filesMax: 1 } as const;
    const inForce = { settings: { name: "ops", to, giveUpAfterMs: 60_000, queueMax: 1 }, sink };
    for (const [next, afterMs] of [
      [inForce, 600_000],
      [undefined, 600_000],
      [{ ...inForce }, 250],
    ] as const) {
      const answers = [inForce, next];
      const attempt = createDeliveryProcess({ name: "ops", current: () => answers.shift(), log: silentLog });
      const delivery = { v: 1, notice: noticeOf("a"), sinceMs: Date.now() } as const;
      const verdict = await attempt(delivery, { tries: 1, signal: new AbortController().signal });
      expect(verdict).toEqual({ verdict: "later", reason: "x", afterMs });
    }
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
      isRefused: true,
    });
  });
});
