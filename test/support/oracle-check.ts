// Compares the calendar with the oracle around one instant of one zone. Used by the property test
// (a sample of some seconds) and by scripts/oracle.ts (every zone, every shift from 2020 to 2037).
import { createCalendar } from "../../src/schedule/calendar.ts";
import { deadlinesOf } from "../../src/schedule/deadlines.ts";
import { type CronOracle, cronOracle } from "./cron-oracle.ts";
import { type ClockWindow, clockWindow, type OracleRule, oracleSlots } from "./dst-oracle.ts";
import { testPolicy } from "./policies.ts";

/** One comparison: an expression in a zone under a rule, around an instant. */
export interface OracleCase {
  readonly timezone: string;
  readonly aroundMs: number;
  readonly expression: string;
  readonly rule: OracleRule;
  /** Instants (seconds from `aroundMs`, at most 24 h away) from which `next` is asked by itself. */
  readonly marksSeconds: readonly number[];
}

const hourMs = 3_600_000;
const dayMs = 86_400_000;
const oracles = new Map<string, CronOracle>();
let latestWindow: { readonly key: string; readonly window: ClockWindow } | undefined;

/** What differs between calendar and oracle, in one line; undefined when nothing does. */
export function findMismatch(asked: OracleCase): string | undefined {
  const { timezone, expression, rule, aroundMs } = asked;
  const calendar = createCalendar({ kind: "cron", expressions: [expression], timezone, dst: rule, spreadMs: 0 });
  const [fromMs, untilMs] = [aroundMs - dayMs, aroundMs + dayMs];
  const expected = oracleSlots(windowOf(timezone, aroundMs), oracleOf(expression), rule).filter(
    (slotMs) => slotMs > fromMs && slotMs <= untilMs,
  );
  const found: number[] = [];
  // One more than expected, so that a slot too many is seen and a calendar that stands still ends.
  let slot = calendar.next(fromMs);
  while (slot !== undefined && slot <= untilMs && found.length <= expected.length) {
    found.push(slot);
    slot = calendar.next(slot);
  }
  const at = expected.findIndex((slotMs, index) => slotMs !== found[index]);
  if (at !== -1 || found.length !== expected.length) {
    const index = at === -1 ? expected.length : at;
    return `slot ${index + 1}: expected ${show(expected[index])}, found ${show(found[index])}`;
  }
  for (const seconds of asked.marksSeconds) {
    const watermarkMs = aroundMs + seconds * 1_000;
    const next = calendar.next(watermarkMs);
    const wanted = expected.find((slotMs) => slotMs > watermarkMs);
    if (wanted === undefined ? (next ?? Number.POSITIVE_INFINITY) <= untilMs : next !== wanted)
      return `next after ${show(watermarkMs)}: expected ${show(wanted)}, found ${show(next)}`;
  }
  return undefined;
}

/** A deadline at a time of day, over the slots of an expression. */
export interface DeadlineCase extends Omit<OracleCase, "marksSeconds"> {
  readonly successBy: string;
  readonly on: string;
}

/** What differs in the deadlines of the 25 hours around an instant; undefined: nothing. */
export function findDeadlineMismatch(asked: DeadlineCase): string | undefined {
  const { timezone, expression, rule, aroundMs, successBy, on } = asked;
  const schedule = { kind: "cron", expressions: [expression], timezone, dst: rule, spreadMs: 0 } as const;
  const policy = testPolicy({ schedule, expect: { kind: "successBy", at: successBy, on } });
  const [afterMs, untilMs] = [aroundMs - hourMs, aroundMs + dayMs];
  const found = deadlinesOf(policy, { afterMs, untilMs }).deadlines;
  const window = windowOf(timezone, aroundMs);
  const slots = oracleSlots(window, oracleOf(expression), rule);
  const dateOf = (wallMs: number | undefined) => new Date(wallMs ?? Number.NaN).toISOString().slice(0, 10);
  const overlap = rule.overlap === "second" ? "second" : "first";
  const [hour, minute] = successBy.split(":").map(Number);
  const times = oracleSlots(window, oracleOf(`${minute} ${hour} * * ${on}`), { gap: "next", overlap });
  const expected = times.flatMap((atMs) => {
    const date = dateOf(window.walls[Math.floor((atMs - window.firstMs) / 60_000)]);
    const fromMs = window.firstMs + window.walls.findIndex((wall) => dateOf(wall) === date) * 60_000;
    const isDue = slots.some((slotMs) => slotMs >= fromMs && slotMs <= atMs);
    return isDue && atMs > afterMs && atMs <= untilMs ? [{ fromMs, atMs }] : [];
  });
  const text = (all: typeof expected) => all.map(({ fromMs, atMs }) => `${show(fromMs)} – ${show(atMs)}`).join(", ");
  return text(expected) === text([...found]) ? undefined : `expected ${text(expected)}, found ${text([...found])}`;
}

/** Times of day around which clocks shift, and some that they leave alone. */
export const deadlineTimes = ["00:00", "00:30", "01:30", "02:30", "03:00", "06:00", "23:30"] as const;

function windowOf(timezone: string, aroundMs: number): ClockWindow {
  const key = `${timezone} ${aroundMs}`;
  if (latestWindow?.key !== key) latestWindow = { key, window: clockWindow(timezone, aroundMs) };
  return latestWindow.window;
}

function oracleOf(expression: string): CronOracle {
  const known = oracles.get(expression) ?? cronOracle(expression);
  oracles.set(expression, known);
  return known;
}

function show(instantMs: number | undefined): string {
  return instantMs === undefined ? "none" : new Date(instantMs).toISOString();
}

/** Expressions whose hours are named: fixed wall times. */
export const fixedExpressions = [
  "30 2 * * *",
  "0 0 * * *",
  "0 3 * * *",
  "15 1 * * *",
  "59 23 * * *",
  "*/20 2 * * *",
  "30 2,14 * * *",
  "0 0,1,2,3 * * *",
  "5,35 0,23 * * *",
  "30 2 L * *",
  "30 2 * * 0L",
  "30 2 * * 7#2",
  "30 2 31W * *",
  "30 2 1-7,25-31 * 0",
  "0 1 29-31 3,10 *",
  "15 30 2 * * *",
  "*/20 30 0,1,2 * * *",
  "@weekly",
] as const;

/** Expressions that go on through the day: sub-daily. */
export const subDailyExpressions = [
  "@hourly",
  "*/15 * * * *",
  "*/5 * * * 0,6",
  "7 * * * *",
  "0 */2 * * *",
  "30 */3 * * *",
  "0 8-18 * * *",
  "*/10 1-4 * * *",
  "20 0-23/4 * * *",
  "0 2-2 * * *",
  "45 0-2,12 * * *",
  "10 30 ? * * *",
] as const;

/** All six DST rules. */
export const allRules: readonly OracleRule[] = (["next", "skip"] as const).flatMap((gap) =>
  (["first", "second", "both"] as const).map((overlap) => ({ gap, overlap })),
);
