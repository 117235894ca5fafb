// The wall times of a cron expression, on a clock without a zone: the single door to croner. A wall
// time is written as the UTC instant that shows the same date and time. Called by calendar.ts and
// check-cron.ts. croner knows nothing of zones and clock shifts here: dst-rule.ts does.
import { CronDate, CronPattern } from "croner";

/** The wall times that one cron expression names. */
export interface WallPattern {
  /**
   * The first matching wall time after this one (ms, whole seconds), undefined when there is none
   * before the year 3000.
   */
  next(afterWallMs: number): number | undefined;
  /**
   * Whether the hour field holds more than numbers and commas: then elapsed time counts over a
   * clock shift.
   */
  readonly isSubDaily: boolean;
}

const patterns = new Map<string, WallPattern>();
const patternsMax = 20_000;
const utcOffsetMinutes = 0;
/** Day of month or day of week, when both are restricted: the rule of Vixie cron. */
const matching = { domAndDow: false };

/**
 * The wall times of an expression of 5 or 6 fields or a macro; the same object for the same
 * expression.
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
  // croner keeps one number for each of 10,000 years (80 KB) and reads none of them when the year
  // is not restricted.
  pattern.year = [];
  return {
    next: (afterWallMs) =>
      new CronDate(new Date(afterWallMs), utcOffsetMinutes).increment(pattern, matching, false)?.getTime(),
    isSubDaily: !/^[\d,]+$/.test(hourField(pattern.pattern)),
  };
}

function hourField(expandedPattern: string): string {
  return expandedPattern.trim().split(/\s+/).at(-4) ?? "";
}
