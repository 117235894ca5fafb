// Slots over clock changes, worked out by hand from the zones' published rules: no code computed
// these. Zones whose governments often change their minds are shown in a year that is over.
import { expect, it } from "vitest";
import type { DstRule } from "../../../src/config/policy-set.ts";
import { createCalendar } from "../../../src/schedule/calendar.ts";
import { dueSlots } from "../../../src/schedule/slots.ts";

interface Golden {
  readonly zone: string;
  readonly cron: string;
  readonly rule?: Partial<DstRule>;
  /** UTC, the first instant excluded and the last included. */
  readonly between: readonly [string, string];
  readonly slots: readonly string[];
}

const next = { gap: "next" } as const;
const skip = { gap: "skip" } as const;
const first = { overlap: "first" } as const;
const second = { overlap: "second" } as const;
const both = { overlap: "both" } as const;

const spring: readonly [string, string] = ["2027-03-27T12:00", "2027-03-29T12:00"];
const autumn: readonly [string, string] = ["2027-10-30T12:00", "2027-10-31T12:00"];

const golden: Readonly<Record<string, Golden[]>> = {
  "Vienna, 02:00 → 03:00 on 28 March 2027 (01:00Z)": [
    {
      zone: "Europe/Vienna",
      cron: "30 2 * * *",
      rule: next,
      between: spring,
      slots: ["2027-03-28T01:00", "2027-03-29T00:30"],
    },
    { zone: "Europe/Vienna", cron: "30 2 * * *", rule: skip, between: spring, slots: ["2027-03-29T00:30"] },
    {
      zone: "Europe/Vienna",
      cron: "*/20 2 * * *",
      rule: next,
      between: ["2027-03-28T00:00", "2027-03-28T12:00"],
      slots: ["2027-03-28T01:00"],
    },
    {
      zone: "Europe/Vienna",
      cron: "30 2,14 * * *",
      rule: next,
      between: ["2027-03-28T00:00", "2027-03-28T18:00"],
      slots: ["2027-03-28T01:00", "2027-03-28T12:30"],
    },
    {
      zone: "Europe/Vienna",
      cron: "0 2,3 * * *",
      rule: next,
      between: ["2027-03-28T00:00", "2027-03-28T12:00"],
      slots: ["2027-03-28T01:00"],
    },
    {
      zone: "Europe/Vienna",
      cron: "7 * * * *",
      rule: skip,
      between: ["2027-03-28T00:00", "2027-03-28T03:00"],
      slots: ["2027-03-28T00:07", "2027-03-28T01:07", "2027-03-28T02:07"],
    },
    {
      zone: "Europe/Vienna",
      cron: "0 */2 * * *",
      rule: skip,
      between: ["2027-03-27T22:00", "2027-03-28T02:00"],
      slots: ["2027-03-27T23:00", "2027-03-28T01:00", "2027-03-28T02:00"],
    },
  ],
  "Vienna, 03:00 → 02:00 on 31 October 2027 (01:00Z)": [
    { zone: "Europe/Vienna", cron: "30 2 * * *", rule: first, between: autumn, slots: ["2027-10-31T00:30"] },
    { zone: "Europe/Vienna", cron: "30 2 * * *", rule: second, between: autumn, slots: ["2027-10-31T01:30"] },
    {
      zone: "Europe/Vienna",
      cron: "30 2 * * *",
      rule: both,
      between: autumn,
      slots: ["2027-10-31T00:30", "2027-10-31T01:30"],
    },
    {
      zone: "Europe/Vienna",
      cron: "*/20 2 * * *",
      rule: second,
      between: autumn,
      slots: ["2027-10-31T01:00", "2027-10-31T01:20", "2027-10-31T01:40"],
    },
    {
      zone: "Europe/Vienna",
      cron: "0 * * * *",
      rule: second,
      between: ["2027-10-30T23:00", "2027-10-31T03:00"],
      slots: ["2027-10-31T00:00", "2027-10-31T01:00", "2027-10-31T02:00", "2027-10-31T03:00"],
    },
    {
      zone: "Europe/Vienna",
      cron: "0 */2 * * *",
      rule: first,
      between: ["2027-10-30T20:00", "2027-10-31T03:00"],
      slots: ["2027-10-30T22:00", "2027-10-31T00:00", "2027-10-31T01:00", "2027-10-31T03:00"],
    },
  ],
  "London, 01:00 → 02:00 and back": [
    {
      zone: "Europe/London",
      cron: "15 1 * * *",
      rule: next,
      between: spring,
      slots: ["2027-03-28T01:00", "2027-03-29T00:15"],
    },
    {
      zone: "Europe/London",
      cron: "15 1 * * *",
      rule: both,
      between: autumn,
      slots: ["2027-10-31T00:15", "2027-10-31T01:15"],
    },
  ],
  "New York, 14 March 07:00Z and 7 November 06:00Z": [
    {
      zone: "America/New_York",
      cron: "30 2 * * *",
      rule: next,
      between: ["2027-03-13T12:00", "2027-03-15T12:00"],
      slots: ["2027-03-14T07:00", "2027-03-15T06:30"],
    },
    {
      zone: "America/New_York",
      cron: "30 1 * * *",
      rule: first,
      between: ["2027-11-06T12:00", "2027-11-07T12:00"],
      slots: ["2027-11-07T05:30"],
    },
    {
      zone: "America/New_York",
      cron: "30 1 * * *",
      rule: second,
      between: ["2027-11-06T12:00", "2027-11-07T12:00"],
      slots: ["2027-11-07T06:30"],
    },
  ],
  "Lord Howe, by 30 minutes: 02:00 → 02:30 (2 October 15:30Z), 02:00 → 01:30 (3 April 15:00Z)": [
    {
      zone: "Australia/Lord_Howe",
      cron: "15 2 * * *",
      rule: next,
      between: ["2027-10-02T12:00", "2027-10-03T16:00"],
      slots: ["2027-10-02T15:30", "2027-10-03T15:15"],
    },
    {
      zone: "Australia/Lord_Howe",
      cron: "0 * * * *",
      rule: skip,
      between: ["2027-10-02T14:00", "2027-10-02T17:00"],
      slots: ["2027-10-02T14:30", "2027-10-02T15:30", "2027-10-02T16:00", "2027-10-02T17:00"],
    },
    {
      zone: "Australia/Lord_Howe",
      cron: "45 1 * * *",
      rule: both,
      between: ["2027-04-03T12:00", "2027-04-03T18:00"],
      slots: ["2027-04-03T14:45", "2027-04-03T15:15"],
    },
    {
      zone: "Australia/Lord_Howe",
      cron: "*/15 * * * *",
      rule: first,
      between: ["2027-04-03T14:30", "2027-04-03T15:30"],
      slots: ["2027-04-03T14:45", "2027-04-03T15:00", "2027-04-03T15:15", "2027-04-03T15:30"],
    },
  ],
  "Casablanca and El Aaiun, back for Ramadan: 03:00 → 02:00 on 23 February, 02:00 → 03:00 on 6 April 2025 (02:00Z)": [
    {
      zone: "Africa/Casablanca",
      cron: "30 2 * * *",
      rule: first,
      between: ["2025-02-22T12:00", "2025-02-23T12:00"],
      slots: ["2025-02-23T01:30"],
    },
    {
      zone: "Africa/Casablanca",
      cron: "30 2 * * *",
      rule: second,
      between: ["2025-02-22T12:00", "2025-02-23T12:00"],
      slots: ["2025-02-23T02:30"],
    },
    {
      zone: "Africa/El_Aaiun",
      cron: "30 2 * * *",
      rule: next,
      between: ["2025-04-05T12:00", "2025-04-07T12:00"],
      slots: ["2025-04-06T02:00", "2025-04-07T01:30"],
    },
  ],
  "Beirut, at midnight: 00:00 → 01:00 (29 March 2025 22:00Z), 00:00 → 23:00 the day before (25 October 21:00Z)": [
    {
      zone: "Asia/Beirut",
      cron: "@daily",
      rule: next,
      between: ["2025-03-29T00:00", "2025-03-30T22:00"],
      slots: ["2025-03-29T22:00", "2025-03-30T21:00"],
    },
    {
      zone: "Asia/Beirut",
      cron: "0 0 30 3 *",
      rule: skip,
      between: ["2025-03-01T00:00", "2026-04-01T00:00"],
      slots: ["2026-03-29T21:00"],
    },
    {
      zone: "Asia/Beirut",
      cron: "30 23 * * *",
      rule: first,
      between: ["2025-10-25T12:00", "2025-10-26T12:00"],
      slots: ["2025-10-25T20:30"],
    },
    {
      zone: "Asia/Beirut",
      cron: "@daily",
      rule: both,
      between: ["2025-10-25T12:00", "2025-10-26T12:00"],
      slots: ["2025-10-25T22:00"],
    },
  ],
  "Cairo, at midnight: 24 April 22:00Z and 30 October 21:00Z, 2025": [
    {
      zone: "Africa/Cairo",
      cron: "@midnight",
      rule: next,
      between: ["2025-04-24T12:00", "2025-04-25T22:00"],
      slots: ["2025-04-24T22:00", "2025-04-25T21:00"],
    },
    {
      zone: "Africa/Cairo",
      cron: "15 23 * * *",
      rule: both,
      between: ["2025-10-30T12:00", "2025-10-31T12:00"],
      slots: ["2025-10-30T20:15", "2025-10-30T21:15"],
    },
  ],
  "Asunción, at midnight, while it still shifted: 1 October 2023 04:00Z, 24 March 2024 03:00Z": [
    {
      zone: "America/Asuncion",
      cron: "0 0 1 * *",
      rule: next,
      between: ["2023-09-15T00:00", "2023-10-15T00:00"],
      slots: ["2023-10-01T04:00"],
    },
    {
      zone: "America/Asuncion",
      cron: "30 23 * * *",
      rule: second,
      between: ["2024-03-23T12:00", "2024-03-24T12:00"],
      slots: ["2024-03-24T03:30"],
    },
  ],
  "Santiago, at midnight: 7 September 2025 04:00Z": [
    {
      zone: "America/Santiago",
      cron: "30 0 * * *",
      rule: next,
      between: ["2025-09-06T12:00", "2025-09-08T12:00"],
      slots: ["2025-09-07T04:00", "2025-09-08T03:30"],
    },
  ],
  "Havana, 00:00 → 01:00 and 01:00 → 00:00 (9 March and 2 November 2025 05:00Z)": [
    {
      zone: "America/Havana",
      cron: "@daily",
      rule: next,
      between: ["2025-03-08T12:00", "2025-03-10T12:00"],
      slots: ["2025-03-09T05:00", "2025-03-10T04:00"],
    },
    {
      zone: "America/Havana",
      cron: "@daily",
      rule: both,
      between: ["2025-11-01T12:00", "2025-11-02T12:00"],
      slots: ["2025-11-02T04:00", "2025-11-02T05:00"],
    },
    {
      zone: "America/Havana",
      cron: "30 0 * * *",
      rule: second,
      between: ["2025-11-01T12:00", "2025-11-02T12:00"],
      slots: ["2025-11-02T05:30"],
    },
  ],
  "Troll, by two hours: 01:00 → 03:00 and back (01:00Z)": [
    {
      zone: "Antarctica/Troll",
      cron: "30 1,2 * * *",
      rule: next,
      between: ["2027-03-28T00:00", "2027-03-28T23:00"],
      slots: ["2027-03-28T01:00"],
    },
    {
      zone: "Antarctica/Troll",
      cron: "30 2 * * *",
      rule: both,
      between: ["2027-10-31T00:00", "2027-10-31T12:00"],
      slots: ["2027-10-31T00:30", "2027-10-31T02:30"],
    },
  ],
  "Chatham, 02:45 → 03:45 (25 September 14:00Z)": [
    {
      zone: "Pacific/Chatham",
      cron: "0 3 * * *",
      rule: next,
      between: ["2027-09-25T12:00", "2027-09-26T14:00"],
      slots: ["2027-09-25T14:00", "2027-09-26T13:15"],
    },
  ],
  "Apia, which left out 30 December 2011 (from −10 to +14 at 10:00Z)": [
    {
      zone: "Pacific/Apia",
      cron: "0 12 * * *",
      rule: next,
      between: ["2011-12-29T12:00", "2011-12-30T23:00"],
      slots: ["2011-12-29T22:00", "2011-12-30T10:00", "2011-12-30T22:00"],
    },
    {
      zone: "Pacific/Apia",
      cron: "0 12 * * *",
      rule: skip,
      between: ["2011-12-29T12:00", "2011-12-30T23:00"],
      slots: ["2011-12-29T22:00", "2011-12-30T22:00"],
    },
    {
      zone: "Pacific/Apia",
      cron: "@hourly",
      rule: skip,
      between: ["2011-12-30T08:00", "2011-12-30T12:00"],
      slots: ["2011-12-30T09:00", "2011-12-30T10:00", "2011-12-30T11:00", "2011-12-30T12:00"],
    },
  ],
};

const cases = Object.entries(golden).flatMap(([title, rows]) => rows.map((row) => ({ title, ...row })));

it.each(cases)("$title: $cron $rule", ({ zone, cron, rule, between: [from, until], slots }) => {
  const dst = { gap: "next", overlap: "first", ...rule } as const;
  const calendar = createCalendar({ kind: "cron", expressions: [cron], timezone: zone, dst, spreadMs: 0 });
  const found = dueSlots(calendar, Date.parse(`${from}Z`), Date.parse(`${until}Z`));
  expect(found.map((slotMs) => new Date(slotMs).toISOString())).toEqual(slots.map((slot) => `${slot}:00.000Z`));
});
