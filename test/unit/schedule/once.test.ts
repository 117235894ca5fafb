import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Schedule } from "../../../src/config/policy-set.ts";
import { createCalendar } from "../../../src/schedule/calendar.ts";
import { dstDays } from "../../../src/schedule/dst-days.ts";
import { slotsAround, slotsUpTo } from "../../../src/schedule/explain-slot.ts";
import { createSlotSource, dueSlots, spreadOffsetMs } from "../../../src/schedule/slots.ts";
import { parseWallTime } from "../../../src/schedule/zone.ts";
import { allRules } from "../../support/oracle-check.ts";
import { testPolicy } from "../../support/policies.ts";

type Once = Extract<Schedule, { readonly kind: "once" }>;

const once = (at: string, changes: Partial<Once> = {}): Once => ({
  kind: "once",
  at,
  timezone: "Europe/Vienna",
  dst: { gap: "next", overlap: "first" },
  spreadMs: 0,
  ...changes,
});
const slotsOf = (schedule: Schedule) =>
  dueSlots(createCalendar(schedule), Date.UTC(2000), Date.UTC(2100)).map((slotMs) => new Date(slotMs).toISOString());

describe("a schedule that is one time", () => {
  it("has one slot ever, at its local time", () => {
    expect(slotsOf(once("2026-12-01T06:00:00"))).toEqual(["2026-12-01T05:00:00.000Z"]);
    expect(slotsOf(once("2027-06-01T06:00:00"))).toEqual(["2027-06-01T04:00:00.000Z"]);
  });

  it("follows the DST rule in the hour that is left out", () => {
    const gap = (rule: "next" | "skip") =>
      slotsOf(once("2027-03-28T02:30:00", { dst: { gap: rule, overlap: "first" } }));
    expect(gap("next")).toEqual(["2027-03-28T01:00:00.000Z"]);
    expect(gap("skip")).toEqual([]);
  });

  it("follows the DST rule, and takes the first instant where a cron would take both", () => {
    const overlap = (rule: "first" | "second" | "both") =>
      slotsOf(once("2027-10-31T02:30:00", { dst: { gap: "next", overlap: rule } }));
    expect(overlap("first")).toEqual(["2027-10-31T00:30:00.000Z"]);
    expect(overlap("second")).toEqual(["2027-10-31T01:30:00.000Z"]);
    expect(overlap("both")).toEqual(["2027-10-31T00:30:00.000Z"]);
  });

  it("is the slot that `explain` means, whatever time is asked for", () => {
    const policy = testPolicy({ schedule: once("2026-12-01T06:00:00") });
    const slotMs = Date.parse("2026-12-01T05:00:00Z");
    expect(slotsUpTo(policy, slotMs + 86_400_000)).toMatchObject({ previousMs: slotMs, nextMs: undefined, slotMs });
    expect(slotsUpTo(policy, slotMs - 86_400_000)).toMatchObject({ previousMs: undefined, nextMs: slotMs, slotMs });
    const asked = {
      text: "2027-03-28T02:30",
      widthMs: 60_000,
      instants: [],
      nearMs: Date.parse("2027-03-28T01:30:00Z"),
    };
    expect(slotsAround(policy, asked)).toMatchObject({
      slotMs,
      isSlot: false,
      reasons: ["clocks in Europe/Vienna never show 2027-03-28T02:30: they go forward then (dst.gap is next)"],
    });
  });

  it("is moved by its spread, and `plan --dst` shows what a clock change does to it", () => {
    const policy = testPolicy({ schedule: once("2027-10-31T02:30:00", { spreadMs: 600_000 }) });
    const offsetMs = spreadOffsetMs("nightly", 600_000);
    const slotMs = Date.parse("2027-10-31T00:30:00Z") + offsetMs;
    expect(createSlotSource(policy)?.due(0, Date.UTC(2100))).toEqual([slotMs]);
    expect(dstDays(policy, Date.UTC(2027, 0), Date.UTC(2028, 0))).toMatchObject([
      { date: "2027-10-31", kind: "overlap", walls: [Date.UTC(2027, 9, 31, 2, 30) + offsetMs], slots: [slotMs] },
    ]);
  });

  const walls = fc
    .date({ min: new Date(Date.UTC(2026, 0)), max: new Date(Date.UTC(2030, 0)), noInvalidDate: true })
    .map((date) => date.toISOString().slice(0, 19));
  // Times around shifts of these zones would be rare by chance alone.
  const nearShifts = fc
    .tuple(
      fc.constantFrom("2027-03-28T0", "2027-10-31T0", "2027-04-04T0", "2027-10-03T0"),
      fc.integer({ min: 0, max: 4 * 60 - 1 }),
    )
    .map(([day, minute]) => `${day}${Math.floor(minute / 60)}:${String(minute % 60).padStart(2, "0")}:00`);
  const zones = fc.constantFrom(
    "UTC",
    "Europe/Vienna",
    "Australia/Lord_Howe",
    "Pacific/Kiritimati",
    "America/St_Johns",
  );

  it("has exactly the slot that an independent reading of the clock gives", () => {
    fc.assert(
      fc.property(fc.oneof(walls, nearShifts), zones, fc.constantFrom(...allRules), (at, timezone, dst) => {
        const read = parseWallTime(at, timezone);
        const slots = dueSlots(createCalendar(once(at, { timezone, dst })), 0, Date.UTC(2100));
        const shown = read?.instants ?? [];
        if (shown.length > 0) expect(slots).toEqual([dst.overlap === "second" ? shown.at(-1) : shown[0]]);
        else expect(slots).toHaveLength(dst.gap === "next" ? 1 : 0);
      }),
      { numRuns: 500 },
    );
  });

  it("is found once, however the time is cut into looks", () => {
    const cuts = fc.array(fc.integer({ min: Date.UTC(2026, 0), max: Date.UTC(2030, 0) }), { maxLength: 30 });
    fc.assert(
      fc.property(fc.oneof(walls, nearShifts), zones, cuts, (at, timezone, instants) => {
        const source = createSlotSource(testPolicy({ schedule: once(at, { timezone, spreadMs: 3_600_000 }) }));
        const marks = [0, ...instants.toSorted((a, b) => a - b), Date.UTC(2100)];
        const found = marks.slice(1).flatMap((untilMs, index) => source?.due(marks[index] ?? 0, untilMs) ?? []);
        expect(found).toEqual(source?.due(0, Date.UTC(2100)));
        expect(found).toHaveLength(1);
      }),
      { numRuns: 300 },
    );
  });
});
