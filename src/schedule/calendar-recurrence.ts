// The days of a recurrence rule (RFC 5545, 3.3.10); times of day are the caller's. Pure. It looks
// at the days of each period, so that no rule is endless.
import { dayMs } from "../core/duration.ts";

/** A rule. Weekdays count from Sunday, 0. Empty lists say nothing. */
export interface DayRule {
  readonly freq: "DAILY" | "WEEKLY" | "MONTHLY" | "YEARLY";
  readonly interval: number;
  readonly weekStart: number;
  /** `nth` 0: every such day of the period; -1: its last. */
  readonly byDay: readonly { readonly nth: number; readonly weekday: number }[];
  readonly byMonth: readonly number[];
  readonly byMonthDay: readonly number[];
  readonly bySetPos: readonly number[];
  readonly count: number | undefined;
}

/** Days since 1970 that count; `looks`: how many days may still be looked at. */
export interface DaySpan {
  readonly fromDay: number;
  readonly untilDay: number;
  readonly looks: { left: number };
}

const daysMax = { DAILY: 1, WEEKLY: 7, MONTHLY: 31, YEARLY: 366 };

/**
 * The days of a rule that begins on `startDay`, up to `untilDay`. Those before `fromDay` may be
 * left out. @throws RangeError when it would look at too many days.
 */
export function* daysOf(rule: DayRule, startDay: number, { fromDay, untilDay, looks }: DaySpan): Generator<number> {
  const { freq, interval, bySetPos, count } = rule;
  const periods = periodsOf(rule, startDay);
  const matches = dayFilter(rule, startDay);
  // Only a count needs the days before.
  const skipped = count === undefined ? Math.floor((fromDay - startDay) / (daysMax[freq] * interval)) - 1 : 0;
  let found = 0;
  for (let index = Math.max(0, skipped); found !== count; index += 1) {
    const spans = periods(index);
    // Not a number beyond the years that a date can have.
    if (!((spans[0]?.[0] ?? Number.NaN) <= untilDay)) return;
    const days: number[] = [];
    for (const [first, last] of spans) {
      looks.left -= last - first + 1;
      if (looks.left < 0) throw new RangeError("the rules of this file name too many days that do not exist");
      for (let day = first; day <= last; day += 1) if (matches(day)) days.push(day);
    }
    const isPlaced = (place: number) =>
      bySetPos.length === 0 || bySetPos.includes(place + 1) || bySetPos.includes(place - days.length);
    for (const [place, day] of days.entries()) {
      if (!isPlaced(place) || day < startDay || found === count) continue;
      if (day > untilDay) return;
      found += 1;
      yield day;
    }
  }
}

type Days = readonly [first: number, last: number];

/** The days of each period, from the one of `startDay` on; of a year the months that count. */
function periodsOf(rule: DayRule, startDay: number): (index: number) => readonly Days[] {
  const { freq, interval, weekStart, byMonth } = rule;
  const { year, month, weekday } = partsOf(startDay);
  const weekFirst = startDay - ((weekday - weekStart + 7) % 7);
  const months = byMonth.length > 0 ? byMonth.toSorted((a, b) => a - b) : isPlain(rule) ? [month + 1] : [];
  return (index) => {
    const step = index * interval;
    if (freq === "DAILY") return [[startDay + step, startDay + step]];
    if (freq === "WEEKLY") return [[weekFirst + 7 * step, weekFirst + 7 * step + 6]];
    if (freq === "MONTHLY") return [monthOf(year, month + step)];
    return months.length > 0 ? months.map((one) => monthOf(year + step, one - 1)) : [yearOf(year + step)];
  };
}

/** Whether the start alone says on which days a rule comes. */
function isPlain({ byDay, byMonthDay }: DayRule): boolean {
  return byDay.length + byMonthDay.length === 0;
}

function dayFilter(rule: DayRule, startDay: number): (day: number) => boolean {
  const { freq, byDay, byMonth, byMonthDay } = rule;
  const start = partsOf(startDay);
  return (day) => {
    const { year, month, date, weekday } = partsOf(day);
    if (byMonth.length > 0 && !byMonth.includes(month + 1)) return false;
    if (isPlain(rule)) return freq === "DAILY" || (freq === "WEEKLY" ? weekday === start.weekday : date === start.date);
    const inMonth = monthOf(year, month);
    if (byMonthDay.length > 0 && !byMonthDay.includes(date) && !byMonthDay.includes(day - inMonth[1] - 1)) return false;
    const [first, last] = freq === "YEARLY" && byMonth.length === 0 ? yearOf(year) : inMonth;
    const isNth = (nth: number) =>
      nth === 0 || nth === Math.floor((day - first) / 7) + 1 || nth === -Math.floor((last - day) / 7) - 1;
    return byDay.length === 0 || byDay.some((one) => one.weekday === weekday && isNth(one.nth));
  };
}

function partsOf(day: number): Record<"year" | "month" | "date" | "weekday", number> {
  const at = new Date(day * dayMs);
  return { year: at.getUTCFullYear(), month: at.getUTCMonth(), date: at.getUTCDate(), weekday: at.getUTCDay() };
}

function yearOf(year: number): Days {
  return [Date.UTC(year, 0, 1) / dayMs, Date.UTC(year, 11, 31) / dayMs];
}

function monthOf(year: number, month: number): Days {
  return [Date.UTC(year, month, 1) / dayMs, Date.UTC(year, month + 1, 0) / dayMs];
}
