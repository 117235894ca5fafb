// The wall times of a cron expression, on a clock without a zone, and what is wrong with one: the
// single door to croner. A wall time is written as the UTC instant that shows the same date and
// time. croner knows nothing of zones and clock shifts here: dst-rule.ts does.

import { CronDate, CronPattern } from "croner";
import { dayMs } from "../core/duration.ts";
import { isZone } from "../core/instant.ts";
import { nearestWord, zoneHint } from "../core/nearest-word.ts";

/** The wall times that one cron expression names. */
export interface WallPattern {
  /** The first matching wall time after this one; undefined: none before the year 3000. */
  next(afterWallMs: number): number | undefined;
  /** Whether the hour field is no plain list: then elapsed time counts over a clock shift. */
  readonly isSubDaily: boolean;
}

const patterns = new Map<string, WallPattern>();
const patternsMax = 20_000;
const utcOffsetMinutes = 0;
/** croner looks no further than the year 3000. */
const searchedUntilMs = Date.UTC(2999, 11, 30);
/** Day of month or day of week, when both are restricted: the rule of Vixie cron. */
const matching = { domAndDow: false };

/**
 * The wall times of an expression of 5 or 6 fields or a macro; the same object for the same text.
 * @throws Error in croner's words when the expression is wrong; `checkCron` says it in ours.
 */
export function wallPattern(expression: string): WallPattern {
  const known = patterns.get(expression);
  if (known !== undefined) return known;
  const pattern = toWallPattern(expression);
  if (patterns.size >= patternsMax) patterns.clear();
  patterns.set(expression, pattern);
  return pattern;
}

function toWallPattern(expression: string): WallPattern {
  const pattern = new CronPattern(expression, undefined, { mode: "5-or-6-parts" });
  // croner keeps a number for each of 10,000 years (80 KB) and reads none of them here.
  pattern.year = [];
  const fitsEachDay = pattern.starDOM && pattern.starDOW && pattern.month.every((fits) => fits === 1);
  // A day whose date fits: its other times need no search by croner, which takes 25 µs.
  let dayStartMs = Number.NaN;
  return {
    next: (afterWallMs) => {
      if (fitsEachDay) dayStartMs = Math.floor(afterWallMs / dayMs) * dayMs;
      const sinceMs = afterWallMs - dayStartMs;
      const laterMs = sinceMs >= 0 && sinceMs < dayMs ? laterThatDay(pattern, sinceMs) : undefined;
      if (laterMs !== undefined) return dayStartMs + laterMs;
      const firstMs = fitsEachDay && dayStartMs < searchedUntilMs ? laterThatDay(pattern, -1_000) : undefined;
      if (firstMs !== undefined) return dayStartMs + dayMs + firstMs;
      const next = new CronDate(new Date(afterWallMs), utcOffsetMinutes).increment(pattern, matching, false);
      if (next === null) return undefined;
      dayStartMs = Math.floor(next.getTime() / dayMs) * dayMs;
      return next.getTime();
    },
    isSubDaily: !/^[\d,]+$/.test(pattern.pattern.trim().split(/\s+/).at(-4) ?? ""),
  };
}

/** The first time of a day that the pattern names after this one; both in ms since its midnight. */
function laterThatDay({ hour, minute, second }: CronPattern, afterMs: number): number | undefined {
  const from = Math.floor(afterMs / 1_000) + 1;
  for (let h = hour.indexOf(1, Math.floor(from / 3_600)); h !== -1; h = hour.indexOf(1, h + 1)) {
    const ofHour = Math.max(0, from - h * 3_600);
    for (let m = minute.indexOf(1, Math.floor(ofHour / 60)); m !== -1; m = minute.indexOf(1, m + 1)) {
      const s = second.indexOf(1, Math.max(0, ofHour - m * 60));
      if (s !== -1) return (h * 3_600 + m * 60 + s) * 1_000;
    }
  }
  return undefined;
}

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

/** What is wrong with an expression or its zone, in one line; undefined: it has slots to come. */
export function checkCron(expression: string, timezone: string): string | undefined {
  const text = expression.trim();
  return (
    problemOfZone(timezone) ?? problemOfMacro(text) ?? problemOfHabit(text) ?? problemOfFields(text) ?? problemOf(text)
  );
}

function problemOfZone(timezone: string): string | undefined {
  return isZone(timezone) ? undefined : `the time zone ${timezone} is not known: ${zoneHint(timezone)}`;
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

/** croner counts from 0 and has its own names: the message uses the expression's instead. */
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
