// What a cron expression means, said a second time and as plainly as can be: which wall-clock
// minutes match. For tests only. Knows neither croner nor anything of src/: it is what the calendar
// is compared with.

/** A parsed expression: whether a wall-clock minute matches, and at which seconds of it. */
export interface CronOracle {
  /** Whether the minute of this wall time (written as a UTC instant) matches. */
  matchesMinute(wallMs: number): boolean;
  readonly seconds: readonly number[];
  /** Whether the hour field is more than a list of numbers. */
  readonly isSubDaily: boolean;
}

type DayTest = (year: number, month: number, day: number) => boolean;

const macros: Readonly<Record<string, string>> = {
  "@hourly": "0 * * * *",
  "@daily": "0 0 * * *",
  "@midnight": "0 0 * * *",
  "@weekly": "0 0 * * 0",
  "@monthly": "0 0 1 * *",
  "@yearly": "0 0 1 1 *",
  "@annually": "0 0 1 1 *",
};

/** Reads an expression. */
export function cronOracle(expression: string): CronOracle {
  const fields = (macros[expression] ?? expression).split(" ");
  if (fields.length === 5) fields.unshift("0");
  const [second = "", minute = "", hour = "", dayOfMonth = "", month = "", dayOfWeek = ""] = fields;
  const minutes = numbers(minute, 0, 59);
  const hours = numbers(hour, 0, 23);
  const months = numbers(month, 1, 12);
  const isDay = dayTest(dayOfMonth, dayOfWeek);
  const days = new Map<number, boolean>();
  const matchesDay = (wallMs: number) => {
    const dayNumber = Math.floor(wallMs / 86_400_000);
    let matches = days.get(dayNumber);
    if (matches === undefined) {
      const date = new Date(wallMs);
      const [y, m, d] = [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()];
      matches = months.has(m) && isDay(y, m, d);
      days.set(dayNumber, matches);
    }
    return matches;
  };
  return {
    matchesMinute: (wallMs) => {
      const minuteOfDay = Math.floor((((wallMs % 86_400_000) + 86_400_000) % 86_400_000) / 60_000);
      return minutes.has(minuteOfDay % 60) && hours.has(Math.floor(minuteOfDay / 60)) && matchesDay(wallMs);
    },
    seconds: [...numbers(second, 0, 59)].sort((a, b) => a - b),
    isSubDaily: ["*", "?", "-", "/"].some((sign) => hour.includes(sign)),
  };
}

function numbers(field: string, least: number, most: number): Set<number> {
  const found = new Set<number>();
  for (const item of field.split(",")) {
    const [range = "", step = "1"] = item.split("/");
    const [from, until = from] = range === "*" || range === "?" ? [`${least}`, `${most}`] : range.split("-");
    for (let value = Number(from); value <= Number(until); value += Number(step)) found.add(value);
  }
  return found;
}

/** Vixie's rule: when day of month and weekday are both restricted, one of them is enough. */
function dayTest(dayOfMonth: string, dayOfWeek: string): DayTest {
  const isFree = (field: string) => field === "*" || field === "?";
  const inMonth = anyOf(dayOfMonth.split(",").map(dayOfMonthTest));
  const inWeek = anyOf(dayOfWeek.split(",").map(weekdayTest));
  if (isFree(dayOfMonth)) return inWeek;
  if (isFree(dayOfWeek)) return inMonth;
  return anyOf([inMonth, inWeek]);
}

function dayOfMonthTest(item: string): DayTest {
  if (item === "L") return (year, month, day) => day === lastDay(year, month);
  if (item === "LW")
    return (year, month, day) => isWorkday(year, month, day) && !workdayBetween(year, month, day + 1, 31);
  if (item.endsWith("W")) return nearestWorkdayTest(Number(item.slice(0, -1)));
  const days = numbers(item, 1, 31);
  return (_year, _month, day) => days.has(day);
}

/**
 * The workday nearest to a day of the month, in the same month; no day at all in a month that is
 * too short.
 */
function nearestWorkdayTest(wanted: number): DayTest {
  return (year, month, day) => {
    if (wanted > lastDay(year, month)) return false;
    const near = [wanted, wanted - 1, wanted + 1, wanted - 2, wanted + 2];
    return day === near.find((candidate) => isWorkday(year, month, candidate));
  };
}

function weekdayTest(item: string): DayTest {
  const [weekday = "", nth] = item.split("#");
  if (nth !== undefined)
    return (year, month, day) =>
      weekdayOf(year, month, day) === Number(weekday) % 7 && Math.ceil(day / 7) === Number(nth);
  if (weekday.endsWith("L"))
    return (year, month, day) =>
      weekdayOf(year, month, day) === Number(weekday.slice(0, -1)) % 7 && day + 7 > lastDay(year, month);
  const weekdays = numbers(weekday, 0, 6);
  if (weekdays.has(7)) weekdays.add(0);
  return (year, month, day) => weekdays.has(weekdayOf(year, month, day));
}

function anyOf(tests: readonly DayTest[]): DayTest {
  return (year, month, day) => tests.some((test) => test(year, month, day));
}

function isWorkday(year: number, month: number, day: number): boolean {
  if (day < 1 || day > lastDay(year, month)) return false;
  return ![0, 6].includes(weekdayOf(year, month, day));
}

function workdayBetween(year: number, month: number, from: number, until: number): boolean {
  for (let day = from; day <= until; day += 1) if (isWorkday(year, month, day)) return true;
  return false;
}

function weekdayOf(year: number, month: number, day: number): number {
  return new Date(Date.UTC(year, month - 1, day)).getUTCDay();
}

function lastDay(year: number, month: number): number {
  return new Date(Date.UTC(year, month, 0)).getUTCDate();
}
