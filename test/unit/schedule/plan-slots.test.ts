import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { onTimeMs, planSlots } from "../../../src/schedule/plan-slots.ts";
import { testPolicy } from "../../support/policies.ts";

const minute = 60_000;
const slots = [10 * minute, 15 * minute, 20 * minute];

describe("planning due slots", () => {
  it("starts the newest for `latest`, standing for the older ones", () => {
    const plans = planSlots(testPolicy({ catchUp: "latest", catchUpWindowMs: 5 * minute }), slots, 20 * minute + 1_000);
    expect(plans).toEqual([
      { slotMs: 10 * minute, state: "coalesced", into: 20 * minute },
      { slotMs: 15 * minute, state: "coalesced", into: 20 * minute },
      { slotMs: 20 * minute, state: "started", covers: [10 * minute, 15 * minute] },
    ]);
  });

  it("misses all for `latest` when even the newest is older than the window", () => {
    const plans = planSlots(testPolicy({ catchUp: "latest", catchUpWindowMs: 5 * minute }), slots, 26 * minute);
    expect(plans.map(({ state }) => state)).toEqual(["missed", "missed", "missed"]);
  });

  it("starts each slot inside the window for `all`", () => {
    const plans = planSlots(testPolicy({ catchUp: "all", catchUpWindowMs: 6 * minute }), slots, 21 * minute);
    expect(plans.map(({ state }) => state)).toEqual(["missed", "started", "started"]);
  });

  it("starts only what is on time for `none`", () => {
    const policy = testPolicy({ catchUp: "none", catchUpWindowMs: 60 * minute });
    expect(planSlots(policy, slots, 20 * minute + onTimeMs).map(({ state }) => state)).toEqual([
      "missed",
      "missed",
      "started",
    ]);
    expect(planSlots(policy, slots, 20 * minute + onTimeMs + 1).map(({ state }) => state)).toEqual([
      "missed",
      "missed",
      "missed",
    ]);
  });

  it("gives every slot exactly one plan, and a coalesced one always names a started one", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 1, max: 5_000 }), { maxLength: 60 }),
        fc.constantFrom("latest" as const, "none" as const, "all" as const),
        fc.integer({ min: 1, max: 600_000 }),
        fc.integer({ min: 0, max: 600_000 }),
        (seconds, catchUp, catchUpWindowMs, lateMs) => {
          const due = seconds.map((second) => second * 1_000).sort((a, b) => a - b);
          const plans = planSlots(testPolicy({ catchUp, catchUpWindowMs }), due, (due.at(-1) ?? 0) + lateMs);
          expect(plans.map(({ slotMs }) => slotMs)).toEqual(due);
          const started = new Set(plans.filter(({ state }) => state === "started").map(({ slotMs }) => slotMs));
          for (const plan of plans) if (plan.state === "coalesced") expect(started.has(plan.into)).toBe(true);
          if (catchUp === "latest") expect(started.size).toBeLessThanOrEqual(1);
        },
      ),
    );
  });
});
