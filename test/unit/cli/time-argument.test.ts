import { describe, expect, it } from "vitest";
import {
  checkTimezone,
  parseInterval,
  parsePast,
  parseTime,
  readTime,
  timezoneFor,
} from "../../../src/cli/time-argument.ts";
import { testPolicy } from "../../support/policies.ts";

const nowMs = Date.parse("2026-11-21T08:00:00Z");
const baseMs = Date.parse("2027-03-01T00:00:00Z");
const context = { nowMs, baseMs, timezone: "Europe/Vienna", side: "future" } as const;
const read = (text: string) => new Date(parseTime(text, "--from", context)).toISOString();
const readPast = (text: string, at = "2026-11-21T08:00:00Z") =>
  new Date(
    parseTime(text, "--since", { nowMs: Date.parse(at), timezone: "Europe/Vienna", side: "past" }),
  ).toISOString();

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
    expect(read("7d")).toBe("2027-03-08T00:00:00.000Z");
    expect(read("-90m")).toBe("2027-02-28T22:30:00.000Z");
    expect(readPast("7d")).toBe("2026-11-14T08:00:00.000Z");
    expect(readPast("+7d")).toBe("2026-11-28T08:00:00.000Z");
  });

  it.each(["99999999d", "9999-12-31T23:59:59-05:00"])("%s is too far away", (text) => {
    expect(() => read(text)).toThrow(`"${text}" is too far away: the last year is 9999`);
  });

  it("of day is the newest one in the past, and the next one in the future", () => {
    // 09:00 in Vienna.
    expect(readPast("09:00")).toBe("2026-11-21T08:00:00.000Z");
    expect(readPast("09:00:01")).toBe("2026-11-20T08:00:01.000Z");
    // 01:00 in Vienna.
    expect(read("01:00")).toBe("2027-03-02T00:00:00.000Z");
    expect(read("01:01")).toBe("2027-03-01T00:01:00.000Z");
    // The clocks of this day go from 02:00 to 03:00.
    expect(readPast("02:30", "2027-03-28T12:00:00Z")).toBe("2027-03-28T01:30:00.000Z");
  });

  it("in words is a local day, with a time of day if one is given", () => {
    expect(readPast("yesterday")).toBe("2026-11-19T23:00:00.000Z");
    expect(readPast("yesterday 02:30")).toBe("2026-11-20T01:30:00.000Z");
    expect(readPast("today")).toBe("2026-11-20T23:00:00.000Z");
    expect(read("tomorrow 06:00")).toBe("2026-11-22T05:00:00.000Z");
    // It is the 22nd in Vienna already.
    expect(readPast("today", "2026-11-21T23:30:00Z")).toBe("2026-11-21T23:00:00.000Z");
    expect(readTime("2027-03-28", context)).toMatchObject({ widthMs: 23 * 3_600_000 });
  });

  it("ends a look back after its beginning, or is refused", () => {
    const past = (since: string | undefined, until?: string) => {
      const { fromMs, toMs } = parsePast({ since, until }, { nowMs, timezone: "Europe/Vienna" });
      return [fromMs, toMs].map((atMs) => (Number.isFinite(atMs) ? new Date(atMs).toISOString() : atMs));
    };
    expect(past("yesterday", "06:00")).toEqual(["2026-11-19T23:00:00.000Z", "2026-11-21T05:00:00.000Z"]);
    expect(past("08:00", "12:00")).toEqual(["2026-11-21T07:00:00.000Z", "2026-11-21T11:00:00.000Z"]);
    expect(past(undefined)).toEqual([Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]);
    expect(() => past("1d", "2d")).toThrow(
      "--until is not after --since: 2026-11-20 09:00:00 CET to 2026-11-19 09:00:00 CET",
    );
  });

  it("of day may be either of two in a repeated hour", () => {
    // The clocks of this day go from 03:00 to 02:00 at 01:00Z: 02:30 is at 00:30Z and at 01:30Z.
    const next = (at: string) => {
      const now = { nowMs: Date.parse(at), timezone: "Europe/Vienna", side: "future" } as const;
      return new Date(parseTime("02:30", "--until", now)).toISOString();
    };
    expect(next("2026-10-25T00:10:00Z")).toBe("2026-10-25T00:30:00.000Z");
    expect(next("2026-10-25T01:10:00Z")).toBe("2026-10-25T01:30:00.000Z");
    expect(readPast("02:30", "2026-10-25T01:10:00Z")).toBe("2026-10-25T00:30:00.000Z");
    expect(readPast("02:30", "2026-10-25T01:40:00Z")).toBe("2026-10-25T01:30:00.000Z");
  });

  it("is the instant after a gap, and the first of two in a repeated hour", () => {
    expect(read("2027-03-28T02:30")).toBe("2027-03-28T01:30:00.000Z");
    expect(read("2027-10-31T02:30")).toBe("2027-10-31T00:30:00.000Z");
  });

  it("is refused with the option's name and the forms there are", () => {
    for (const text of [
      "",
      "morgen",
      "yesterday 2",
      "+7",
      "+1w",
      "2026-13-01",
      "2026-02-30",
      "2026-11-31T06:00:00+01:00",
      "2026-12-01T25:00",
      "6:00",
    ])
      expect(() => parseTime(text, "--from", context)).toThrow(`--from "${text}" is no time: write now, 02:30, 7d`);
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

  it("stands in the zone that is given, or that all policies share", () => {
    const vienna = testPolicy({ timezone: "Europe/Vienna" });
    expect(timezoneFor(undefined, [vienna, vienna])).toBe("Europe/Vienna");
    expect(timezoneFor("Asia/Tokyo", [vienna])).toBe("Asia/Tokyo");
    expect(timezoneFor(undefined, [vienna, testPolicy()])).toBe(timezoneFor(undefined));
    expect(checkTimezone("Europe/Vienna")).toBe("Europe/Vienna");
    expect(() => checkTimezone("Europe/Wien")).toThrow("--timezone Europe/Wien is no zone");
  });
});
