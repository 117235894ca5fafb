import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Schedule } from "../../../src/config/policy-set.ts";
import { createCalendar } from "../../../src/schedule/calendar.ts";
import { createSlotSource, dueSlots, slotsPerRoundMax, spreadOffsetMs } from "../../../src/schedule/slots.ts";
import { testPolicy } from "../../support/policies.ts";

const cron = (expression: string, timezone = "UTC"): Schedule => ({
  kind: "cron",
  expressions: [expression],
  timezone,
  dst: { gap: "next", overlap: "first" },
  spreadMs: 0,
});
const slots = (schedule: Schedule, from: string, until: string) =>
  dueSlots(createCalendar(schedule), Date.parse(from), Date.parse(until)).map((slotMs) =>
    new Date(slotMs).toISOString().slice(0, 19),
  );

describe("the calendar", () => {
  it("runs a local time that falls into the gap at the first instant after it", () => {
    expect(slots(cron("30 2 * * *", "Europe/Vienna"), "2027-03-27T00:00:00Z", "2027-03-30T00:00:00Z")).toEqual([
      "2027-03-27T01:30:00",
      "2027-03-28T01:00:00",
      "2027-03-29T00:30:00",
    ]);
  });

  it("runs a local time that comes twice once, the first time", () => {
    expect(slots(cron("30 2 * * *", "Europe/Vienna"), "2027-10-30T12:00:00Z", "2027-10-31T12:00:00Z")).toEqual([
      "2027-10-31T00:30:00",
    ]);
  });

  it("keeps elapsed time for an hourly schedule over both changes", () => {
    expect(slots(cron("0 * * * *", "Europe/Vienna"), "2027-03-28T00:00:00Z", "2027-03-28T03:00:00Z")).toHaveLength(3);
    expect(slots(cron("0 * * * *", "Europe/Vienna"), "2027-10-30T23:00:00Z", "2027-10-31T03:00:00Z")).toHaveLength(4);
  });

  it("takes day of month or day of week, whichever matches", () => {
    expect(slots(cron("0 0 13 * 5"), "2026-11-01T00:00:00Z", "2026-11-15T00:00:00Z")).toEqual([
      "2026-11-06T00:00:00",
      "2026-11-13T00:00:00",
    ]);
  });

  it("counts `every` in elapsed time from 1970, the same wherever it is computed", () => {
    expect(
      slots({ kind: "every", everyMs: 600_000, spreadMs: 0 }, "2026-11-21T00:00:01Z", "2026-11-21T00:20:00Z"),
    ).toEqual(["2026-11-21T00:10:00", "2026-11-21T00:20:00"]);
  });

  it("merges a list of expressions without repeating an instant", () => {
    const both: Schedule = {
      ...cron("0 6 * * *"),
      kind: "cron",
      expressions: ["0 6 * * *", "0 */6 * * *"],
    } as Schedule;
    expect(slots(both, "2026-11-21T00:00:00Z", "2026-11-21T12:00:00Z")).toEqual([
      "2026-11-21T06:00:00",
      "2026-11-21T12:00:00",
    ]);
  });

  it("never yields a slot twice or out of order, wherever a look begins and ends", () => {
    const calendar = createCalendar(cron("*/7 * * * * *"));
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 90_000 }), { minLength: 1, maxLength: 20 }), (steps) => {
        const start = Date.parse("2026-11-21T00:00:00Z");
        let watermarkMs = start;
        let nowMs = start;
        const found: number[] = [];
        for (const stepMs of steps) {
          nowMs += stepMs;
          const due = dueSlots(calendar, watermarkMs, nowMs);
          found.push(...due);
          watermarkMs = due.at(-1) ?? watermarkMs;
        }
        expect(found).toEqual(dueSlots(calendar, start, nowMs));
      }),
      { numRuns: 200 },
    );
  });

  it("bounds what one look yields", () => {
    expect(dueSlots(createCalendar({ kind: "every", everyMs: 1_000, spreadMs: 0 }), 0, 10_000_000)).toHaveLength(
      slotsPerRoundMax,
    );
  });
});

describe("the spread of a policy", () => {
  it("moves every slot by the same whole seconds, inside the spread", () => {
    const spreadMs = 600_000;
    const offsetMs = spreadOffsetMs("contracts-nightly", spreadMs);
    expect(offsetMs).toBe(spreadOffsetMs("contracts-nightly", spreadMs));
    expect(offsetMs % 1_000).toBe(0);
    expect(offsetMs).toBeLessThan(spreadMs);
    const source = createSlotSource(
      testPolicy({ name: "contracts-nightly", schedule: { ...cron("0 3 * * *"), spreadMs } as Schedule }),
    );
    expect(source?.next(Date.parse("2026-11-21T00:00:00Z"))).toBe(Date.parse("2026-11-21T03:00:00Z") + offsetMs);
  });

  it("stays what it was in every version: these are golden", () => {
    expect([spreadOffsetMs("a", 60_000), spreadOffsetMs("contracts-nightly", 600_000)]).toEqual([39_000, 237_000]);
  });
});
