// Checks a cron expression, and says what is wrong and what to write instead. The loader of
// policies calls it (through policyChecks in cli/shared-options.ts), so no wrong expression reaches
// a calendar.
import { nearestWord, zoneHint } from "../core/nearest-word.ts";
import { wallPattern } from "./cron-pattern.ts";

const macros = ["@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"];

/** Habits from other crons, each with what to write here; the first match is reported. */
const habits: readonly (readonly [RegExp, string])[] = [
  [/^\d{4}-\d\d-\d\dT/, "a cron expression names no single date: run the policy once with `syncline run`"],
  [/(^|[\s,])H([\s,/(]|$)/, "H is not known: write a number, and spread policies with schedule.spread"],
  [/(^|\s)\+/, '"+" is not known: day of month and weekday match either way; the second Friday is "5#2"'],
  [/(^|[\s,])\d+\/\d+/, "a step needs a range or *: write 5-59/10 instead of 5/10"],
  [/(^|[\s,])L-\d/, "days before the last are not known: L is the last day, LW the last weekday"],
];

/** A fixed "now", so that a file is right or wrong on every day. */
const judgedFromMs = Date.UTC(2026, 0, 1);

/**
 * Describes in one line what is wrong with an expression or its zone; undefined when it has slots
 * to come.
 */
export function checkCron(expression: string, timezone: string): string | undefined {
  const text = expression.trim();
  return (
    problemOfZone(timezone) ?? problemOfMacro(text) ?? problemOfHabit(text) ?? problemOfFields(text) ?? problemOf(text)
  );
}

function problemOfZone(timezone: string): string | undefined {
  try {
    new Intl.DateTimeFormat("en", { timeZone: timezone });
    return undefined;
  } catch {
    return `the time zone ${timezone} is not known: ${zoneHint(timezone)}`;
  }
}

function problemOfMacro(text: string): string | undefined {
  if (!text.startsWith("@") || macros.includes(text.toLowerCase())) return undefined;
  if (text.toLowerCase() === "@reboot") return "@reboot is no instant: run the policy with `syncline run`";
  if (/^@every\b/i.test(text)) return "@every is not known: use schedule.every, such as every: 10m";
  const near = nearestWord(text, macros);
  return `${text} is no macro: ${near === undefined ? `there are ${macros.join(" ")}` : `did you mean ${near}?`}`;
}

function problemOfHabit(text: string): string | undefined {
  return habits.find(([pattern]) => pattern.test(text))?.[1];
}

function problemOfFields(text: string): string | undefined {
  if (text.startsWith("@")) return undefined;
  const count = text === "" ? 0 : text.split(/\s+/).length;
  if (count === 5 || count === 6) return undefined;
  const year = count === 7 ? "; a year cannot be named" : "";
  return `five or six fields are needed, these are ${count}${year}`;
}

function problemOf(text: string): string | undefined {
  try {
    if (wallPattern(text).next(judgedFromMs) !== undefined) return undefined;
    return "never comes due: there is no such date; check day and month";
  } catch (error) {
    return inOurWords(error instanceof Error ? error.message : String(error));
  }
}

const ranges: Readonly<Record<string, string>> = {
  second: "a second is 0 to 59",
  minute: "a minute is 0 to 59",
  hour: "an hour is 0 to 23",
  day: "a day of the month is 1 to 31",
  nearestWeekdays: "a day of the month is 1 to 31",
  month: "a month is 1 to 12, or JAN to DEC",
  dayOfWeek: "a weekday is 0 to 7 (0 and 7 are Sunday), or SUN to SAT",
};

/**
 * croner counts days and months from 0 and has its own names: the message uses the expression's
 * instead.
 */
function inOurWords(message: string): string {
  const part = /(?:Invalid value for (\w+)|(\w+) is not a number)/.exec(message);
  const range = ranges[part?.[1] ?? part?.[2] ?? ""];
  if (range !== undefined) return range;
  const backwards = /From value is larger than to value: '(.*)'/.exec(message)?.[1];
  if (backwards !== undefined) return `the range ${backwards} runs backwards: write two, such as 22-23,0-5`;
  const strange = /configuration entry \d+ \((.*)\) contains illegal/.exec(message)?.[1];
  if (strange !== undefined) return `"${strange}" is not understood: write numbers, * , - / and the letters L W #`;
  return message.replace(/^CronPattern: /, "").replace(/^Syntax error, /, "");
}
