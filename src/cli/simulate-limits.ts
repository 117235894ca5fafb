// The limits of `simulate` for CI: what each counts, and whether it is exceeded. Called by
// simulate.ts.
import type { Counts } from "../simulate/tally.ts";

/** The values of the options. */
export interface LimitOptions {
  readonly maxOverlaps?: number;
  readonly maxMissed?: number;
  readonly maxSkipped?: number;
  readonly maxPeak?: number;
}

/** One limit, and whether it holds. */
export interface LimitResult {
  readonly limit: "overlaps" | "missed" | "skipped" | "peak";
  readonly max: number;
  readonly is: number;
  readonly isOver: boolean;
}

/** What the limits count: slots and tasks together, each once. */
export function limitedCounts({ overlaps, skipped, missed, notStarted }: Counts) {
  return {
    overlaps,
    missed: sum(Object.values(missed)) + notStarted["too-late"],
    skipped: sum(Object.values(skipped)) + notStarted.overlap,
  };
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** Compares the limits with the totals. `peak`: the most starts in one minute. */
export function findLimits(options: LimitOptions, totals: Counts, peak: number): readonly LimitResult[] {
  const { overlaps, missed, skipped } = limitedCounts(totals);
  const all = [
    { limit: "overlaps", max: options.maxOverlaps, is: overlaps },
    { limit: "missed", max: options.maxMissed, is: missed },
    { limit: "skipped", max: options.maxSkipped, is: skipped },
    { limit: "peak", max: options.maxPeak, is: peak },
  ] as const;
  return all.flatMap(({ limit, max, is }) => (max === undefined ? [] : [{ limit, max, is, isOver: is > max }]));
}
