// The calendar against an independent oracle (test/support/cron-oracle.ts, dst-oracle.ts): a sample
// of some seconds. `npm run oracle` does every zone and every shift from 2020 to 2037. A failure
// prints fast-check's seed and the case.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCalendar } from "../../../src/schedule/calendar.ts";
import { cronOracle } from "../../support/cron-oracle.ts";
import { clockShifts } from "../../support/dst-oracle.ts";
import {
  allRules,
  deadlineTimes,
  findDeadlineMismatch,
  findMismatch,
  fixedExpressions,
  subDailyExpressions,
} from "../../support/oracle-check.ts";

const dayMs = 86_400_000;
const expressions = [...fixedExpressions, ...subDailyExpressions];
/** Zones whose clocks shift in an unusual way come up more often than one in 418. */
const unusual = [
  "Australia/Lord_Howe",
  "Africa/Casablanca",
  "Africa/El_Aaiun",
  "Antarctica/Troll",
  "Pacific/Chatham",
  "Asia/Beirut",
  "Africa/Cairo",
  "America/Havana",
  "America/Santiago",
  "Asia/Gaza",
];
const zone = fc.oneof(fc.constantFrom(...Intl.supportedValuesOf("timeZone")), fc.constantFrom(...unusual));

describe("the calendar and the oracle", () => {
  it("agree around a clock shift and around any other instant, from any watermark", {
    timeout: 60_000,
  }, () => {
    const place = fc.record({ timezone: zone, year: fc.integer({ min: 2020, max: 2037 }), pick: fc.nat() });
    const marks = fc.array(fc.integer({ min: -14_400, max: 14_400 }), { maxLength: 4 });
    fc.assert(
      fc.property(
        place,
        fc.shuffledSubarray(expressions, { minLength: 1, maxLength: 4 }),
        fc.constantFrom(...allRules),
        marks,
        ({ timezone, year, pick }, some, rule, marksSeconds) => {
          const yearMs = Date.UTC(year, 0, 1);
          const shifts = clockShifts(timezone, yearMs, Date.UTC(year + 1, 0, 1));
          const aroundMs = shifts[pick % shifts.length] ?? yearMs + (pick % 8_760) * 3_600_000;
          for (const expression of some) {
            const mismatch = findMismatch({ timezone, aroundMs, expression, rule, marksSeconds });
            expect(mismatch, `${expression} ${timezone} ${new Date(aroundMs).toISOString()}`).toBeUndefined();
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  it("agree on the deadlines around a clock shift, and since which midnight", { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(
        fc.record({ timezone: zone, year: fc.integer({ min: 2020, max: 2037 }), pick: fc.nat() }),
        fc.constantFrom(...expressions),
        fc.constantFrom(...allRules),
        fc.constantFrom(...deadlineTimes),
        fc.constantFrom("*", "0,6", "1-5"),
        ({ timezone, year, pick }, expression, rule, successBy, on) => {
          const yearMs = Date.UTC(year, 0, 1);
          const shifts = clockShifts(timezone, yearMs, Date.UTC(year + 1, 0, 1));
          const aroundMs = shifts[pick % shifts.length] ?? yearMs + (pick % 8_760) * 3_600_000;
          const mismatch = findDeadlineMismatch({ timezone, aroundMs, expression, rule, successBy, on });
          expect(
            mismatch,
            `${successBy} ${on} ${expression} ${timezone} ${new Date(aroundMs).toISOString()}`,
          ).toBeUndefined();
        },
      ),
      { numRuns: 150 },
    );
  });

  it("agree on which days match, with L, W, #, lists and the rule of either day", { timeout: 60_000 }, () => {
    const day = fc.integer({ min: 1, max: 31 });
    const weekday = fc.integer({ min: 0, max: 7 });
    const inMonth = fc.oneof(
      fc.constantFrom("*", "?", "L", "LW", "*/2", "*/7", "1-7", "10-20/3"),
      day.map(String),
      day.map((number) => `${number}W`),
      fc.tuple(day, day).map(([a, b]) => `${a},${b}W,L`),
    );
    const inWeek = fc.oneof(
      fc.constantFrom("*", "?", "*/2", "1-5", "0,6", "5-7"),
      weekday.map(String),
      weekday.map((number) => `${number}L`),
      fc.tuple(weekday, fc.integer({ min: 1, max: 5 })).map(([number, nth]) => `${number}#${nth}`),
      fc.tuple(weekday, weekday).map(([a, b]) => `${a}#1,${b}L`),
    );
    const inYear = fc.constantFrom("*", "*", "2", "1,6,12", "*/5", "4-9");
    const start = fc.integer({ min: Date.UTC(2020, 0, 1) / dayMs, max: Date.UTC(2037, 0, 1) / dayMs });
    fc.assert(
      fc.property(inMonth, inYear, inWeek, start, (dayOfMonth, month, dayOfWeek, startDay) => {
        const expression = `0 0 ${dayOfMonth} ${month} ${dayOfWeek}`;
        const oracle = cronOracle(expression);
        const days = Array.from({ length: 800 }, (_, index) => (startDay + index) * dayMs);
        const expected = days.filter((dayStart) => oracle.matchesMinute(dayStart));
        const calendar = createCalendar({
          kind: "cron",
          expressions: [expression],
          timezone: "UTC",
          dst: { gap: "next", overlap: "first" },
          spreadMs: 0,
        });
        const found: number[] = [];
        let slot = calendar.next(startDay * dayMs - 1);
        while (slot !== undefined && slot < (startDay + 800) * dayMs) {
          found.push(slot);
          slot = calendar.next(slot);
        }
        expect(found, expression).toEqual(expected);
      }),
      { numRuns: 200 },
    );
  });

  it("give one slot per elapsed interval where a shift is a multiple of it", {
    timeout: 60_000,
  }, () => {
    fc.assert(
      fc.property(
        zone,
        fc.constantFrom(5, 10, 15, 30),
        fc.integer({ min: 2020, max: 2037 }),
        (timezone, minutes, year) => {
          const calendar = createCalendar({
            kind: "cron",
            expressions: [`*/${minutes} * * * *`],
            timezone,
            dst: { gap: "skip", overlap: "second" },
            spreadMs: 0,
          });
          for (const shiftMs of clockShifts(timezone, Date.UTC(year, 0, 1), Date.UTC(year + 1, 0, 1))) {
            let slot = calendar.next(shiftMs - 3 * 3_600_000) ?? Number.POSITIVE_INFINITY;
            while (slot < shiftMs + 3 * 3_600_000) {
              const next = calendar.next(slot) ?? Number.POSITIVE_INFINITY;
              expect(next - slot, `${timezone} ${new Date(slot).toISOString()}`).toBe(minutes * 60_000);
              slot = next;
            }
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});
