import { describe, expect, it } from "vitest";
import { PolicySlots } from "../../../src/app/policy-slots.ts";
import { testPolicy } from "../../support/policies.ts";

const at = (text: string) => Date.parse(text);

describe("where a policy stands", () => {
  it("says the next slot again and again until it has passed", () => {
    const { first, follower, manual } = policies();
    const slots = new PolicySlots();
    expect(slots.nextMs(first, at("2026-11-20T12:00:00Z"))).toBe(at("2026-11-23T02:30:00Z"));
    expect(slots.nextMs(first, at("2026-11-23T02:29:59Z"))).toBe(at("2026-11-23T02:30:00Z"));
    expect(slots.nextMs(first, at("2026-11-23T02:30:00Z"))).toBe(at("2026-11-24T02:30:00Z"));
    expect(slots.nextMs(follower, at("2026-11-20T12:00:00Z"))).toBe(at("2026-11-23T02:30:00Z"));
    expect(slots.nextMs(manual, at("2026-11-20T12:00:00Z"))).toBeUndefined();
  });

  it("is stale at the third slot after its last success, over a weekend too", () => {
    const { first, manual } = policies();
    const slots = new PolicySlots();
    // Friday's slot went well: Monday and Tuesday may fail, Wednesday's slot finds it stale.
    expect(slots.thirdSlotMs(first, "stale", at("2026-11-20T02:35:00Z"))).toBe(at("2026-11-25T02:30:00Z"));
    expect(slots.thirdSlotMs(first, "stale", at("2026-11-23T02:35:00Z"))).toBe(at("2026-11-26T02:30:00Z"));
    expect(slots.thirdSlotMs(manual, "stale", at("2026-11-20T02:35:00Z"))).toBeUndefined();
  });
});

function policies() {
  const schedule = {
    kind: "cron",
    expressions: ["30 2 * * 1-5"],
    timezone: "UTC",
    dst: { gap: "next", overlap: "first" },
    spreadMs: 0,
  } as const;
  const after = { policy: "first", on: ["succeeded"], withinMs: 3_600_000, root: { name: "first", schedule } } as const;
  return {
    first: testPolicy({ name: "first", schedule }),
    follower: testPolicy({ name: "follower", schedule: undefined, after }),
    manual: testPolicy({ name: "manual", schedule: undefined }),
  };
}
