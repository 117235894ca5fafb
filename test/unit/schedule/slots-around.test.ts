import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import { slotsAround, slotsUpTo } from "../../../src/schedule/explain-slot.ts";
import { spreadOffsetMs } from "../../../src/schedule/slots.ts";
import { parseWallTime } from "../../../src/schedule/zone.ts";
import { testPolicy } from "../../support/policies.ts";

const nightly = (changes: Partial<Policy> = {}, spreadMs = 0) =>
  testPolicy({
    schedule: {
      kind: "cron",
      expressions: ["30 2 * * *"],
      timezone: "Europe/Vienna",
      dst: { gap: "next", overlap: "first" },
      spreadMs,
    },
    timezone: "Europe/Vienna",
    ...changes,
  });

function ask(policy: Policy, text: string) {
  const wall = parseWallTime(text, "Europe/Vienna");
  if (wall === undefined) throw new Error(text);
  const found = slotsAround(policy, { text, widthMs: 60_000, ...wall });
  const iso = (instantMs?: number) => (instantMs === undefined ? undefined : new Date(instantMs).toISOString());
  return { ...found, slot: iso(found.slotMs), previous: iso(found.previousMs), next: iso(found.nextMs) };
}

describe("the slots around a time", () => {
  it("finds the slot that is meant, also when seconds are left out", () => {
    expect(ask(nightly(), "2026-11-21T02:30")).toMatchObject({
      isSlot: true,
      slot: "2026-11-21T01:30:00.000Z",
      previous: "2026-11-21T01:30:00.000Z",
      next: "2026-11-22T01:30:00.000Z",
      reasons: [],
    });
  });

  it("names the slots before and after a time that is none, and takes the nearest", () => {
    expect(ask(nightly(), "2026-11-21T16:00")).toMatchObject({
      isSlot: false,
      slot: "2026-11-22T01:30:00.000Z",
      previous: "2026-11-21T01:30:00.000Z",
      next: "2026-11-22T01:30:00.000Z",
      reasons: ["its schedule has no slot at this time"],
    });
  });

  it("says that clocks never show the time, or show it twice", () => {
    const spring = ask(nightly(), "2027-03-28T02:30");
    expect(spring.isSlot).toBe(false);
    expect(spring.reasons).toEqual([
      "clocks in Europe/Vienna never show 2027-03-28T02:30: they go forward then (dst.gap is next)",
    ]);
    expect(spring.slot?.startsWith("2027-03-28T01:")).toBe(true);
    const autumn = ask(nightly(), "2027-10-31T02:30");
    expect(autumn).toMatchObject({ isSlot: true, slot: "2027-10-31T00:30:00.000Z" });
    expect(autumn.reasons[0]).toContain("twice, at 2027-10-31T00:30:00.000Z and 2027-10-31T01:30:00.000Z");
  });

  it("says where the spread has moved a slot", () => {
    const spread = nightly({}, 600_000);
    const offsetMs = spreadOffsetMs(spread.name, 600_000);
    const found = ask(spread, "2026-11-21T02:30");
    expect(offsetMs).toBeGreaterThan(60_000);
    expect(found.slotMs).toBe(Date.parse("2026-11-21T01:30:00Z") + offsetMs);
    expect(found.reasons).toEqual([expect.stringContaining("its spread moves the slot of this time by ")]);
  });

  it("says that a time without a slot lies in a closed time anyway", () => {
    const policy = nightly({ timezone: "Europe/Vienna", closed: { blackouts: [], holidays: ["2026-12-25"] } });
    expect(ask(policy, "2026-12-25T12:00").reasons).toEqual([
      "its schedule has no slot at this time",
      "it lies in a closed time anyway: holiday (2026-12-25)",
    ]);
  });

  it("takes the newest slot when no time is said", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 90_000 }),
        fc.integer({ min: 1_900_000_000, max: 2_000_000_000 }),
        (every, at) => {
          const policy = testPolicy({ schedule: { kind: "every", everyMs: every * 1_000, spreadMs: 0 } });
          const slotMs = Math.floor(at / every) * every * 1_000;
          expect(slotsUpTo(policy, at * 1_000)).toMatchObject({
            slotMs,
            previousMs: slotMs,
            nextMs: slotMs + every * 1_000,
          });
        },
      ),
    );
  });
});
