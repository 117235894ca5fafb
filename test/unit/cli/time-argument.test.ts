import { describe, expect, it } from "vitest";
import { checkTimezone, parseInterval, parseTime } from "../../../src/cli/time-argument.ts";

const nowMs = Date.parse("2026-11-21T08:00:00Z");
const baseMs = Date.parse("2027-03-01T00:00:00Z");
const context = { nowMs, baseMs, timezone: "Europe/Vienna" };
const read = (text: string) => new Date(parseTime(text, "--from", context)).toISOString();

describe("a zone that is not known", () => {
  it.each([
    ["Europe/Viena", "did you mean Europe/Vienna?"],
    ["Vienna", "did you mean Europe/Vienna?"],
    ["Amerca/New_Yrok", "did you mean America/New_York?"],
    ["Europe/Lissabon", "did you mean Europe/Lisbon?"],
    ["Europe/Wien", "write its English name in the tz database"],
    ["Europe/Munich", "write its English name in the tz database"],
    ["Asia/Delhi", "write its English name in the tz database"],
    ["CEST", "write its English name in the tz database"],
  ])("%s gets the zone of almost that city, or how zones are called", (zone, hint) => {
    expect(() => checkTimezone(zone)).toThrow(hint);
  });
});

describe("a time on the command line", () => {
  it("is an instant, a wall time, a date, now, or relative to its reference", () => {
    expect(read("now")).toBe("2026-11-21T08:00:00.000Z");
    expect(read("2026-12-01T06:00:00Z")).toBe("2026-12-01T06:00:00.000Z");
    expect(read("2026-12-01T06:00+05:30")).toBe("2026-12-01T00:30:00.000Z");
    expect(read("2026-12-01T06:00")).toBe("2026-12-01T05:00:00.000Z");
    expect(read("2027-07-01")).toBe("2027-06-30T22:00:00.000Z");
    expect(read("+7d")).toBe("2027-03-08T00:00:00.000Z");
    expect(read("-90m")).toBe("2027-02-28T22:30:00.000Z");
  });

  it("is the instant after a gap, and the first of two in a repeated hour", () => {
    expect(read("2027-03-28T02:30")).toBe("2027-03-28T01:30:00.000Z");
    expect(read("2027-10-31T02:30")).toBe("2027-10-31T00:30:00.000Z");
  });

  it("is refused with the option's name and the forms there are", () => {
    for (const text of ["", "tomorrow", "7d", "+7", "+1w", "2026-13-01", "2026-02-30", "2026-12-01T25:00", "06:00"])
      expect(() => parseTime(text, "--from", context)).toThrow(
        `--from "${text}" is no time: write now, 2026-12-01T06:00:00Z`,
      );
  });

  it("is one of two in an interval, whose second time counts from the first", () => {
    expect(parseInterval("+1d/+4h", "--outage", context)).toEqual({
      fromMs: Date.parse("2027-03-02T00:00:00Z"),
      toMs: Date.parse("2027-03-02T04:00:00Z"),
    });
    expect(() => parseInterval("+1d", "--outage", context)).toThrow('--outage "+1d" is no interval: write FROM/TO');
    expect(() => parseInterval("+1d/+1h/+2h", "--outage", context)).toThrow("is no interval");
    expect(() => parseInterval("+1d/-1h", "--outage", context)).toThrow("ends before it begins");
    expect(() => parseInterval("now/now", "--outage", context)).toThrow("ends before it begins");
  });

  it("stands in a zone that exists", () => {
    expect(checkTimezone("Europe/Vienna")).toBe("Europe/Vienna");
    expect(() => checkTimezone("Europe/Wien")).toThrow("--timezone Europe/Wien is no zone");
  });
});
