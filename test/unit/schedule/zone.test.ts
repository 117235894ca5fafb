import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseWallTime } from "../../../src/schedule/zone.ts";

const instants = (text: string, zone: string) =>
  parseWallTime(text, zone)?.instants.map((instantMs) => new Date(instantMs).toISOString());

describe("a time on the wall", () => {
  it("is one instant on a common day", () => {
    expect(instants("2026-11-21T02:30", "Europe/Vienna")).toEqual(["2026-11-21T01:30:00.000Z"]);
    expect(instants("2026-11-21 02:30:15", "America/St_Johns")).toEqual(["2026-11-21T06:00:15.000Z"]);
    expect(instants("2026-11-21T02:30", "UTC")).toEqual(["2026-11-21T02:30:00.000Z"]);
  });

  it("is none in the hour that spring omits, and two in the one autumn repeats", () => {
    expect(instants("2027-03-28T02:30", "Europe/Vienna")).toEqual([]);
    expect(parseWallTime("2027-03-28T02:30", "Europe/Vienna")?.nearMs).toBe(Date.parse("2027-03-28T01:30:00Z"));
    expect(instants("2027-10-31T02:30", "Europe/Vienna")).toEqual([
      "2027-10-31T00:30:00.000Z",
      "2027-10-31T01:30:00.000Z",
    ]);
    expect(instants("2027-10-03T02:15", "Australia/Lord_Howe")).toEqual([]);
  });

  it("is refused when it is no time or no date", () => {
    for (const text of ["2027-02-29T02:30", "2027-02-28T24:30", "2027-02-28", "now", "2027-02-28T02:30Z", ""])
      expect(parseWallTime(text, "Europe/Vienna")).toBeUndefined();
  });

  it("finds every instant again by what clocks show then", () => {
    const zones = [
      "Europe/Vienna",
      "America/New_York",
      "Australia/Lord_Howe",
      "Asia/Kathmandu",
      "Pacific/Chatham",
      "UTC",
    ];
    fc.assert(
      fc.property(
        fc.integer({ min: Date.parse("2020-01-01") / 1_000, max: Date.parse("2037-12-31") / 1_000 }),
        fc.constantFrom(...zones),
        (seconds, zone) => {
          const shown = new Date(seconds * 1_000).toLocaleString("sv-SE", { timeZone: zone });
          expect(parseWallTime(shown, zone)?.instants).toContain(seconds * 1_000);
        },
      ),
    );
  });
});
