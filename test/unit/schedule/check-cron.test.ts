import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkCron } from "../../../src/schedule/cron-pattern.ts";

describe("checking a cron expression", () => {
  it.each([
    "30 2 * * *",
    "  15   30 2 * * * ",
    "0 0 ? * MON-FRI",
    "*/15 8-18 * jan,JUL 1-5",
    "0 0 L * *",
    "0 0 LW * *",
    "0 0 15W,L * *",
    "0 0 * * 5L",
    "0 0 * * FRI#2",
    "0 0 29 2 *",
    "0 0 * * 7",
    "@hourly",
    "@DAILY",
    "@midnight",
    "@weekly",
    "@monthly",
    "@yearly",
    "@annually",
  ])("finds nothing wrong with %s", (expression) => {
    expect(checkCron(expression, "Europe/Vienna")).toBeUndefined();
  });

  it.each([
    ["0 0 30 2 *", "never comes due: there is no such date; check day and month"],
    ["0 0 31 4,6,9,11 *", "never comes due: there is no such date; check day and month"],
    ["0 0 31W 2 *", "never comes due: there is no such date; check day and month"],
    ["", "five or six fields are needed, these are 0"],
    ["0 0 * *", "five or six fields are needed, these are 4"],
    ["0 0 0 1 1 * 2027", "five or six fields are needed, these are 7; a year cannot be named"],
    ["61 2 * * *", "a minute is 0 to 59"],
    ["0 24 * * *", "an hour is 0 to 23"],
    ["0 0 0 * *", "a day of the month is 1 to 31"],
    ["0 0 1 13 *", "a month is 1 to 12, or JAN to DEC"],
    ["0 0 * * 8", "a weekday is 0 to 7 (0 and 7 are Sunday), or SUN to SAT"],
    ["0 22-2 * * *", "the range 22-2 runs backwards: write two, such as 22-23,0-5"],
    ["5/10 * * * *", "a step needs a range or *: write 5-59/10 instead of 5/10"],
    ["a b c d e", '"a" is not understood: write numbers, * , - / and the letters L W #'],
    ["H 2 * * *", "H is not known: write a number, and spread policies with schedule.spread"],
    ["0 0 13 * +5", '"+" is not known: day of month and weekday match either way; the second Friday is "5#2"'],
    ["0 0 L-3 * *", "days before the last are not known: L is the last day, LW the last weekday"],
    ["@dayly", "@dayly is no macro: did you mean @daily?"],
    ["@reboot", "@reboot is no instant: run the policy with `syncline run`"],
    ["@every 5m", "@every is not known: use schedule.every, such as every: 10m"],
    ["2027-01-01T00:00:00", "a cron expression names no single date: run the policy once with `syncline run`"],
  ])("says what is wrong with %j and what to do", (expression, problem) => {
    expect(checkCron(expression, "UTC")).toBe(problem);
  });

  it("refuses an unknown zone, and names the one that was meant", () => {
    expect(checkCron("0 0 * * *", "Europe/Viena")).toBe(
      "the time zone Europe/Viena is not known: did you mean Europe/Vienna?",
    );
  });

  it("never throws, whatever the text", { timeout: 60_000 }, () => {
    const piece = fc.constantFrom(
      "*",
      "?",
      "/",
      "-",
      ",",
      "#",
      "L",
      "W",
      "@",
      "+",
      " ",
      "5",
      "31",
      "0",
      "99",
      "MON",
      "é",
      "\t",
      ":",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const said = checkCron(pieces.join(""), "UTC");
        expect(said === undefined || said.length > 0).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });
});
