// Runs many seeds side by side, and says what came out. Knows nothing of what a seed does, but when
// its storm is over: from then on it mostly waits, and another one may begin.
import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";

/** What one seed came to. `story`: what happened, for people. `counts` add up over seeds. */
export interface ChaosResult {
  readonly seed: number;
  readonly findings: readonly string[];
  readonly story: () => readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

/** Runs one seed against this Redis. `stormIsOver`: it needs hardly any processor from now on. */
export type RunSeed = (seed: number, redisUrl: string, stormIsOver: () => void) => Promise<ChaosResult>;

/** The most seeds at a time, for each that may be in its storm. */
const seedsPerStorm = 4;

/**
 * The services and the checkers of all seeds run in this process. Where it works for more than this
 * share of the time, what it answers comes later than the deadlines of the policies bear.
 */
const busyShareMax = 0.75;
const [busyLookMs, busyLooksMax] = [250, 240];

/** What to run. `sideBySide`: storms at a time. `onResult` hears of each seed at once. */
export interface SeedsOptions {
  readonly seeds: readonly number[];
  readonly redisUrl: string;
  readonly sideBySide: number;
  readonly runSeed: RunSeed;
  /** `tookMs`: how long the seed took. */
  readonly onResult: (result: ChaosResult, tookMs: number) => void;
}

/**
 * Runs all seeds; an error of one is a finding of it. Answers the failing ones and the sums of all.
 */
export async function runSeeds(options: SeedsOptions): Promise<{ failed: number[]; counts: Record<string, number> }> {
  const waiting = [...options.seeds];
  const failed: number[] = [];
  const counts: Record<string, number> = {};
  const runOne = async (seed: number, stormIsOver: () => void) => {
    const beganAtMs = performance.now();
    const ran = options.runSeed(seed, options.redisUrl, stormIsOver);
    const result = await ran.catch((error: unknown) => crashed(seed, error));
    for (const [name, count] of Object.entries(result.counts)) counts[name] = (counts[name] ?? 0) + count;
    if (result.findings.length > 0) failed.push(seed);
    options.onResult(result, performance.now() - beganAtMs);
  };
  const running = new Set<Promise<void>>();
  const work = async () => {
    for (let seed = waiting.shift(); seed !== undefined; seed = waiting.shift()) {
      await untilLessBusy();
      const { promise: calm, resolve: stormIsOver } = Promise.withResolvers<void>();
      const over = runOne(seed, stormIsOver).finally(() => running.delete(over));
      running.add(over);
      await Promise.race([calm, over]);
      while (running.size > options.sideBySide * (seedsPerStorm - 1)) await Promise.race(running);
    }
  };
  await Promise.all(Array.from({ length: options.sideBySide }, work));
  await Promise.all(running);
  return { failed: failed.sort((a, b) => a - b), counts };
}

/** Waits while this process is too busy for one more seed, for a minute at most. */
async function untilLessBusy(): Promise<void> {
  for (let look = 0; look < busyLooksMax; look += 1) {
    const before = performance.eventLoopUtilization();
    await delay(busyLookMs);
    if (performance.eventLoopUtilization(before).utilization < busyShareMax) return;
  }
}

function crashed(seed: number, error: unknown): ChaosResult {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { seed, findings: [stack], story: () => [], counts: {} };
}
