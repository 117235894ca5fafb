// Calendar files as Outlook, Google and Apple write them, and what cannot be read, by line.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import ICAL from "ical.js";
import { describe, expect, it } from "vitest";
import type { CalendarEvent, EventCalendar } from "../../../src/config/policy-set.ts";
import { readCalendar } from "../../../src/schedule/calendar-file.ts";
import { createClosedTimes } from "../../../src/schedule/closed-times.ts";
import { testPolicy } from "../../support/policies.ts";

const nowMs = Date.UTC(2026, 10, 23);

function eventsOf(text: string): readonly CalendarEvent[] {
  const found = readCalendar(text, nowMs);
  if ("problems" in found) throw new Error(JSON.stringify(found.problems));
  return found.events;
}

const fileOf = (name: string) => readFileSync(new URL(`./calendars/${name}.ics`, import.meta.url), "utf8");
const shown = (name: string, title: string) =>
  eventsOf(fileOf(name)).flatMap((event) => (event.name === title ? [`${event.from} ${event.to}`] : []));

describe("a calendar file of Outlook", () => {
  it("closes whole days by a yearly rule, from two years back to ten ahead", () => {
    const days = shown("outlook", "Weihnachten, 25. und 26.");
    expect([days[0], days.at(-1), days.length]).toEqual(["2025-12-25 2025-12-27", "2036-12-25 2036-12-27", 12]);
  });

  it("reads its own zones over clock changes, without EXDATE and moved events", () => {
    expect(shown("outlook", "Wartung")).toEqual([
      "2026-03-06T21:00:00.000Z 2026-03-07T05:00:00.000Z",
      "2026-04-03T20:00:00.000Z 2026-04-04T04:00:00.000Z",
      "2026-08-07T20:00:00.000Z 2026-08-08T04:00:00.000Z",
      "2026-09-04T20:00:00.000Z 2026-09-05T04:00:00.000Z",
      "2026-10-02T20:00:00.000Z 2026-10-03T04:00:00.000Z",
      "2026-11-06T21:00:00.000Z 2026-11-07T05:00:00.000Z",
      "2026-12-04T21:00:00.000Z 2026-12-05T05:00:00.000Z",
    ]);
    expect(shown("outlook", "Wartung (verschoben)")).toEqual(["2026-07-10T18:00:00.000Z 2026-07-10T21:00:00.000Z"]);
  });
});

describe("a calendar file of Google", () => {
  it("has single days, a yearly rule without one year, and no cancelled event", () => {
    expect(shown("google", "Thanksgiving Day")).toEqual(["2026-11-26 2026-11-27"]);
    const years = shown("google", "Independence Day").map((days) => days.slice(0, 4));
    expect(years.slice(0, 3)).toEqual(["2026", "2027", "2029"]);
    expect(shown("google", "Christmas Eve")).toEqual([]);
  });

  it("moves a single event that is named by another zone", () => {
    expect(shown("google", "Deploy freeze")).toEqual(["2026-10-31T03:30:00.000Z 2026-10-31T05:30:00.000Z"]);
    expect(shown("google", "Deploy freeze, early")).toEqual(["2026-11-07T01:00:00.000Z 2026-11-07T02:00:00.000Z"]);
  });
});

describe("a calendar file of Apple", () => {
  it("ends at the time that clocks show, also in the night of a clock change", () => {
    expect(shown("apple", "Nightly backup 🎄")).toEqual([
      "2026-03-27T23:00:00.000Z 2026-03-28T04:00:00.000Z",
      "2026-03-28T23:00:00.000Z 2026-03-29T03:00:00.000Z",
      "2026-03-29T22:00:00.000Z 2026-03-30T03:00:00.000Z",
    ]);
  });

  it("has the last working days of months, further dates, and times of no zone", () => {
    expect(shown("apple", "Stocktaking").map((days) => days.slice(0, 10))).toEqual([
      "2026-01-30",
      "2026-02-27",
      "2026-03-31",
      "2026-05-06",
      "2026-05-20",
    ]);
    expect(shown("apple", "Lunch")).toEqual(["2026-06-30T12:00:00 2026-06-30T13:00:00"]);
  });
});

const event = (...lines: string[]) =>
  ["BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "SUMMARY:x", ...lines, "END:VEVENT", "END:VCALENDAR"].join("\r\n");
const dates = (...lines: string[]) => eventsOf(event(...lines)).map(({ from }) => from.slice(0, 10));

describe("times of several zones", () => {
  const vienna = "TZID=Europe/Vienna";
  const times = (...lines: string[]) =>
    eventsOf(event(...lines)).map(({ from, to }) => `${from.slice(0, 16)} ${to.slice(0, 16)}`);

  it("a further date counts in its own zone", () => {
    const own = [`DTSTART;${vienna}:20260105T100000`, `DTEND;${vienna}:20260105T110000`];
    const further = ["RDATE:20260106T180000Z", "RDATE;TZID=America/New_York:20260107T100000"];
    expect(times(...own, ...further, `RDATE;${vienna}:20260708T100000`)).toEqual([
      "2026-01-05T09:00 2026-01-05T10:00",
      "2026-01-06T18:00 2026-01-06T19:00",
      "2026-01-07T15:00 2026-01-07T16:00",
      "2026-07-08T08:00 2026-07-08T09:00",
    ]);
  });

  it("a duration counts hours as they pass, and days as clocks show them", () => {
    const saturday = `DTSTART;${vienna}:20270327T220000`;
    expect(times(saturday, "DURATION:PT8H")).toEqual(["2027-03-27T21:00 2027-03-28T05:00"]);
    expect(times(saturday, "DURATION:P1D")).toEqual(["2027-03-27T21:00 2027-03-28T20:00"]);
    const friday = `DTSTART;${vienna}:20270326T220000`;
    expect(times(friday, "DURATION:P1DT8H")).toEqual(["2027-03-26T21:00 2027-03-28T05:00"]);
    expect(times("DTSTART:20270327T220000", "DURATION:PT8H")).toEqual(["2027-03-27T22:00 2027-03-28T06:00"]);
  });

  it("an end in another zone is compared as an instant", () => {
    const start = `DTSTART;${vienna}:20270327T230000`;
    expect(times(start, "DTEND:20270327T223000Z", "RRULE:FREQ=DAILY;COUNT=2")).toEqual([
      "2027-03-27T22:00 2027-03-27T22:30",
      "2027-03-28T21:00 2027-03-28T21:30",
    ]);
    expect(
      readCalendar(event("DTSTART;TZID=America/New_York:20260105T100000", "DTEND:20260105T120000Z"), nowMs),
    ).toEqual({
      problems: [{ line: 6, message: expect.stringContaining("it ends when it begins"), hint: "give it a DTEND" }],
    });
  });
});

describe("recurrence", () => {
  it("has a 29 February in leap years only, and no 30 February ever", () => {
    expect(dates("DTSTART;VALUE=DATE:20240229", "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29")).toEqual([
      "2024-02-29",
      "2028-02-29",
      "2032-02-29",
      "2036-02-29",
    ]);
    expect(dates("DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30")).toEqual(["2026-01-01"]);
    expect(dates("DTSTART;VALUE=DATE:20260106", "RRULE:FREQ=DAILY;INTERVAL=7;BYDAY=MO")).toEqual(["2026-01-06"]);
    for (const rule of ["MONTHLY;INTERVAL=100000000;BYMONTHDAY=1", "YEARLY;INTERVAL=100000000", "DAILY;BYSETPOS=2"])
      expect(dates("DTSTART;VALUE=DATE:20260106", `RRULE:FREQ=${rule}`)).toEqual(["2026-01-06"]);
  });

  it("counts from the first event, and ends with the day of UNTIL", () => {
    const start = "DTSTART;TZID=Europe/Vienna:20200106T220000";
    expect(dates(start, "DURATION:PT2H", "RRULE:FREQ=YEARLY;COUNT=5")).toEqual(["2024-01-06"]);
    expect(dates(start, "DURATION:PT2H", "RRULE:FREQ=YEARLY;UNTIL=20250106")).toEqual(["2024-01-06", "2025-01-06"]);
    expect(dates(start, "DURATION:PT2H", "RRULE:FREQ=YEARLY;UNTIL=20250106T205959Z")).toEqual(["2024-01-06"]);
  });

  it("agrees with another implementation on the rules that people write", () => {
    const nth = fc.constantFrom("1", "2", "3", "4", "-1");
    const day = fc.constantFrom("MO", "TU", "WE", "TH", "FR", "SA", "SU");
    const rules = fc.oneof(
      fc.tuple(nth, day, fc.integer({ min: 1, max: 12 })).map(([n, d, m]) => `FREQ=YEARLY;BYMONTH=${m};BYDAY=${n}${d}`),
      fc
        .tuple(nth, day, fc.integer({ min: 1, max: 4 }))
        .map(([n, d, i]) => `FREQ=MONTHLY;INTERVAL=${i};BYDAY=${n}${d}`),
      fc
        .tuple(
          fc.subarray(["MO", "TU", "WE", "TH", "FR", "SA", "SU"], { minLength: 1 }),
          fc.integer({ min: 1, max: 5 }),
        )
        .map(([d, i]) => `FREQ=WEEKLY;INTERVAL=${i};BYDAY=${d}`),
      fc.integer({ min: 1, max: 60 }).map((i) => `FREQ=DAILY;INTERVAL=${i}`),
      fc.integer({ min: 1, max: 3 }).map((i) => `FREQ=YEARLY;INTERVAL=${i}`),
    );
    const starts = fc.integer({ min: 0, max: 2_000 }).map((days) => new Date(Date.UTC(2024, 0, 1) + days * 86_400_000));
    fc.assert(
      fc.property(rules, starts, fc.option(fc.integer({ min: 1, max: 40 })), (rule, start, count) => {
        const text = count === null ? rule : `${rule};COUNT=${count}`;
        const first = start.toISOString().slice(0, 10);
        fc.pre(!first.endsWith("02-29"));
        const iterator = ICAL.Recur.fromString(text).iterator(ICAL.Time.fromDateString(first));
        const expected: string[] = [];
        for (let next = iterator.next(); next && next.year <= 2036; next = iterator.next()) expected.push(String(next));
        const found = dates(`DTSTART;VALUE=DATE:${first.replaceAll("-", "")}`, `RRULE:${text}`);
        // The start counts as an event, whether or not the rule has it.
        expect(found).toEqual([...new Set([first, ...expected])]);
      }),
      { numRuns: 300 },
    );
  });
});

describe("what closes", () => {
  const calendar = (text: string) => ({ name: "c", hash: "", events: eventsOf(text) });
  const closed = (name: string, as: "holiday" | "blackout", timezone: string) =>
    createClosedTimes(
      testPolicy({
        timezone,
        closed: { blackouts: [], holidays: [], calendars: [{ as, calendar: calendar(fileOf(name)) }] },
      }),
    );

  it("a whole day is closed in the zone of the policy, and says its name", () => {
    for (const [timezone, from, to] of [
      ["America/New_York", "2026-11-26T05:00:00Z", "2026-11-27T05:00:00Z"],
      ["Asia/Tokyo", "2026-11-25T15:00:00Z", "2026-11-26T15:00:00Z"],
    ] as const) {
      const closedAt = closed("google", "holiday", timezone);
      expect(closedAt(Date.parse(from))).toEqual({
        reason: "holiday",
        note: "c: Thanksgiving Day",
        untilMs: Date.parse(to),
      });
      expect(closedAt(Date.parse(to) - 1)).toBeDefined();
      expect([closedAt(Date.parse(from) - 1), closedAt(Date.parse(to))]).toEqual([undefined, undefined]);
    }
  });

  it("an event with hours is closed from its begin to before its end", () => {
    const closedAt = closed("outlook", "blackout", "Asia/Tokyo");
    const at = (instant: string) => closedAt(Date.parse(instant))?.note;
    expect(at("2026-03-06T21:00:00Z")).toBe("c: Wartung");
    expect([at("2026-03-06T20:59:59Z"), at("2026-03-07T05:00:00Z")]).toEqual([undefined, undefined]);
  });

  it("a day without midnight begins after the gap", () => {
    const closedAt = createClosedTimes(
      testPolicy({
        timezone: "Africa/Cairo",
        closed: {
          blackouts: [],
          holidays: [],
          calendars: [{ as: "holiday", calendar: calendar(event("DTSTART;VALUE=DATE:20260424")) }],
        },
      }),
    );
    // Clocks in Cairo go from 00:00 to 01:00 on 24 April.
    expect(closedAt(Date.parse("2026-04-23T21:59:59Z"))).toBeUndefined();
    expect(closedAt(Date.parse("2026-04-23T22:00:00Z"))).toBeDefined();
    expect(closedAt(Date.parse("2026-04-24T20:59:59Z"))).toBeDefined();
    expect(closedAt(Date.parse("2026-04-24T21:00:00Z"))).toBeUndefined();
  });

  it("events without an end in sight close until then, all at once", () => {
    const endless = (...ends: string[]) => {
      const events = ends.map((end) => `BEGIN:VEVENT\nDTSTART;VALUE=DATE:20260101\n${end}\nEND:VEVENT\n`);
      return calendar(`BEGIN:VCALENDAR\n${events.join("")}END:VCALENDAR\n`);
    };
    const endOf = (text: EventCalendar) =>
      createClosedTimes(
        testPolicy({ closed: { blackouts: [], holidays: [], calendars: [{ as: "holiday", calendar: text }] } }),
      )(Date.UTC(2027, 0))?.untilMs;
    const last = Date.parse("9999-12-31T00:00:00Z");
    expect(endOf(endless("DURATION:P3650000D"))).toBe(last);
    expect(endOf(endless(...Array.from({ length: 30 }, () => "DTEND;VALUE=DATE:99991231")))).toBe(last);
  });
});

describe("what cannot be read", () => {
  const cases: [what: string, text: string, line: number, message: string][] = [
    ["a text", "hello", 1, "this is no calendar"],
    ["an empty file", "", 0, "this is no calendar: no VCALENDAR stands in it"],
    ["a cut file", "BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:x\n", 0, "this is no calendar"],
    ["a broken line", "BEGIN:VCALENDAR\nVERSION:2.0\ngarbage\nEND:VCALENDAR", 3, "this is no calendar"],
    ["an event without a start", event(), 3, 'event "x": it has no DTSTART'],
    ["a month 13", event("DTSTART:20261301T100000"), 5, "is no date"],
    ["a date in another form", event("DTSTART;VALUE=DATE:2026-12-25"), 5, "is no date"],
    ["an event without an end", event("DTSTART:20261224T100000"), 3, "it ends when it begins"],
    ["an unknown zone", event("DTSTART;TZID=Mars:20261224T100000", "DURATION:PT1H"), 5, 'the zone "Mars" is neither'],
    ["an hourly rule", event("DTSTART;VALUE=DATE:20261224", "RRULE:FREQ=HOURLY"), 6, "FREQ=HOURLY is not"],
    ["a rule by weeks", event("DTSTART;VALUE=DATE:20261224", "RRULE:FREQ=YEARLY;BYWEEKNO=20"), 6, "BYWEEKNO is not"],
    [
      "a range of moved events",
      event("DTSTART;VALUE=DATE:20261224", "RECURRENCE-ID;RANGE=THISANDFUTURE;VALUE=DATE:20261225"),
      6,
      "RANGE is not understood",
    ],
  ];

  it.each(cases)("%s is told with its line", (_, text, line, message) => {
    expect(readCalendar(text, nowMs)).toMatchObject({
      problems: [{ line, message: expect.stringContaining(message) }],
    });
  });

  it("more than 5,000 times or 2,000 events are an error, never a part of them", () => {
    const daily = (uid: number) =>
      `BEGIN:VEVENT\nUID:${uid}\nSUMMARY:daily\nDTSTART;VALUE=DATE:20200101\nRRULE:FREQ=DAILY\nEND:VEVENT\n`;
    const two = `BEGIN:VCALENDAR\n${daily(1)}${daily(2)}END:VCALENDAR\n`;
    expect(readCalendar(two, nowMs)).toMatchObject({
      problems: [
        { line: 12, message: expect.stringMatching(/^event "daily": more than 5000 events from 2024 to 2036/) },
      ],
    });
    const many = `BEGIN:VCALENDAR\n${"BEGIN:VEVENT\nDTSTART;VALUE=DATE:20260101\nEND:VEVENT\n".repeat(2_001)}END:VCALENDAR\n`;
    expect(readCalendar(many, nowMs)).toMatchObject({ problems: [{ line: 6_002 }] });
  });
});
