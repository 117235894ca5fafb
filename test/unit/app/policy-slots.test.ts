import { describe, expect, it } from "vitest";
import { PolicySlots } from "../../../src/app/policy-slots.ts";
import type { ClosedTimes } from "../../../src/config/policy-set.ts";
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

  it("is not stale by slots that a blackout or a holiday closed", () => {
    // 2026-11-20 is a Friday, in Vienna an hour ahead of UTC.
    const lastMs = at("2026-11-20T20:05:00Z");
    const third = (name: string, everyMs: number, closed: Partial<ClosedTimes>) => {
      const schedule = { kind: "every", everyMs, spreadMs: 0 } as const;
      const parts = { blackouts: [], holidays: [], ...closed };
      const policy = testPolicy({ name, schedule, timezone: "Europe/Vienna", closed: parts });
      const atMs = new PolicySlots().thirdSlotMs(policy, "stale", lastMs);
      return atMs === undefined ? "never" : new Date(atMs).toISOString();
    };
    const hour = 3_600_000;
    const friday = { blackouts: [{ cron: "0 22 * * 5", durationMs: 8 * hour }] };
    expect(third("hourly", hour, friday)).toBe("2026-11-21T07:00:00.000Z");
    expect(third("often", hour / 3, friday)).toBe("2026-11-21T05:00:00.000Z");
    // Saturday is a holiday from 23:00 UTC on Friday.
    expect(third("hourly", hour, { holidays: ["2026-11-21"] })).toBe("2026-11-21T23:00:00.000Z");
    const events = [{ from: "2026-11-20T21:00:00Z", to: "2027-01-20T21:00:00Z", name: "freeze" }];
    const frozen = { calendars: [{ as: "blackout", calendar: { name: "changes", hash: "", events } }] } as const;
    expect(third("hourly", hour, frozen)).toBe("2027-01-20T23:00:00.000Z");
    expect(third("hourly", hour, { blackouts: [{ cron: "0 * * * *", durationMs: 2 * hour }] })).toBe("never");
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
