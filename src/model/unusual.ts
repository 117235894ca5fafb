// What is unusual about a run that ended well: it took much longer or shorter, or left far more or
// fewer activities or conflicts, than this sync job's last 20 such runs. Pure.
import * as z from "zod";
import { formatRoughly } from "../core/duration.ts";
import { counted } from "../core/plain-text.ts";

/** When a run is unusual; docs/outcomes.md explains the keys. */
export interface UnusualRule {
  /** So many times the usual. */
  readonly factor: number;
  /** Shorter runs are never long, and where shorter ones are usual none is short. */
  readonly floorMs: number;
  /** The same for the number of activities or conflicts. */
  readonly itemsFloor: number;
  /** So many runs must be known. */
  readonly runs: number;
}

/** What is kept of one sync job: its newest runs. */
export const runsKept = 20;

/** In what a run may be unusual. */
export const measures = ["duration", "activities", "conflicts"] as const;

/** What is known of a run that ended well: milliseconds of its duration; undefined: not known. */
export type RunFigures = Readonly<Record<(typeof measures)[number], number | undefined>>;

/** What an outcome says of it. `toldLong`: a worker noted it while the run took unusually long. */
export const unusualFields = {
  unusual: z.array(z.enum(measures)).exactOptional(),
  usualMs: z.number().exactOptional(),
  usualActivities: z.number().exactOptional(),
  usualConflicts: z.number().exactOptional(),
  toldLong: z.literal(true).exactOptional(),
};

/** One finding: milliseconds of a duration, else a number of items. */
export interface Unusual {
  readonly what: (typeof measures)[number];
  readonly value: number;
  readonly usual: number;
}

/** A run is short, or has few items, with a tenth of the usual: half of it is no news. */
const fewerShare = 10;
/** A sync job whose runs differ much must differ by so many times its usual spread. */
const spreads = 5.5;
/** A normal spread is so many times the median deviation. */
const medianToSpread = 1.4826;
/** So many of the newest runs may lie at least this share as far off; more are a pattern. */
const alikeMax = 1;
const alikeShare = 0.45;

/** Finds what is unusual about a run, by the newest runs before it. */
export function judgeRun(run: RunFigures, known: readonly RunFigures[], rule: UnusualRule): readonly Unusual[] {
  return measures.flatMap((what) => {
    const value = run[what];
    const usual =
      value === undefined ? undefined : usualUnless(value, numbersOf(known, what), floorOf(rule, what), rule);
    return value === undefined || usual === undefined ? [] : [{ what, value, usual }];
  });
}

/** From which duration on a run is unusually long; undefined where that cannot be said. */
export function longFromMs(known: readonly RunFigures[], rule: UnusualRule): number | undefined {
  const numbers = numbersOf(known, "duration");
  const usual = medianOf(numbers);
  if (usual === undefined) return undefined;
  const fromMs = Math.max(usual * rule.factor, rule.floorMs, (usual + 1) * Math.exp(spreadOf(numbers, usual)));
  return usualUnless(fromMs, numbers, rule.floorMs, rule) === undefined ? undefined : fromMs;
}

/** The usual duration; undefined without a run. */
export function usualMsOf(known: readonly RunFigures[]): number | undefined {
  return medianOf(numbersOf(known, "duration"));
}

/** Findings in words: `took 47m, usually 12m; 2 activities, usually 120`. */
export function unusualWords(findings: readonly Unusual[]): string {
  const words = findings.map(({ what, value, usual }) => {
    if (what === "duration")
      return `took ${formatRoughly(value, Math.round)}, usually ${formatRoughly(usual, Math.round)}`;
    const items = what === "conflicts" ? counted(value, "new conflict") : counted(value, "activity", "activities");
    return `${items}, usually ${Math.round(usual)}`;
  });
  return words.join("; ");
}

/** The middle of some numbers; undefined of none. */
export function medianOf(numbers: readonly number[]): number | undefined {
  const sorted = numbers.toSorted((a, b) => a - b);
  const [low, high] = [sorted[Math.floor((sorted.length - 1) / 2)], sorted[Math.floor(sorted.length / 2)]];
  return low === undefined || high === undefined ? undefined : (low + high) / 2;
}

/** The usual number, if this one is unusual. */
function usualUnless(
  value: number,
  numbers: readonly number[],
  floor: number,
  { factor, runs }: UnusualRule,
): number | undefined {
  const usual = medianOf(numbers);
  if (usual === undefined || numbers.length < runs) return undefined;
  const isMore = value >= Math.max(usual * factor, floor);
  const isLess = usual >= floor && value <= usual / fewerShare;
  const distance = distanceOf(value, usual);
  if (!(isMore || isLess) || Math.abs(distance) < spreadOf(numbers, usual)) return undefined;
  const alike = numbers.filter((one) => distanceOf(one, usual) / distance >= alikeShare);
  return alike.length > alikeMax ? undefined : usual;
}

/** How far a number is from the usual one, in proportion. */
function distanceOf(value: number, usual: number): number {
  return Math.log((value + 1) / (usual + 1));
}

function spreadOf(numbers: readonly number[], usual: number): number {
  return spreads * medianToSpread * (medianOf(numbers.map((one) => Math.abs(distanceOf(one, usual)))) ?? 0);
}

function numbersOf(known: readonly RunFigures[], what: Unusual["what"]): readonly number[] {
  return known.flatMap((run) => run[what] ?? []);
}

function floorOf({ floorMs, itemsFloor }: UnusualRule, what: Unusual["what"]): number {
  return what === "duration" ? floorMs : itemsFloor;
}
