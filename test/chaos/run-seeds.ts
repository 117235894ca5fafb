// Runs many seeds side by side, since each mostly waits, and says what came out. Knows nothing of
// what a seed does.

/** What one seed came to. `story`: what happened, for people. `counts` add up over seeds. */
export interface ChaosResult {
  readonly seed: number;
  readonly findings: readonly string[];
  readonly story: () => readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

/** Runs one seed against this Redis. */
export type RunSeed = (seed: number, redisUrl: string) => Promise<ChaosResult>;

/** What to run. `onResult` hears of each seed at once. */
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
  const work = async () => {
    for (let seed = waiting.shift(); seed !== undefined; seed = waiting.shift()) {
      const beganAtMs = performance.now();
      const result = await options.runSeed(seed, options.redisUrl).catch((error: unknown) => crashed(seed, error));
      for (const [name, count] of Object.entries(result.counts)) counts[name] = (counts[name] ?? 0) + count;
      if (result.findings.length > 0) failed.push(seed);
      options.onResult(result, performance.now() - beganAtMs);
    }
  };
  await Promise.all(Array.from({ length: options.sideBySide }, work));
  return { failed: failed.sort((a, b) => a - b), counts };
}

function crashed(seed: number, error: unknown): ChaosResult {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { seed, findings: [stack], story: () => [], counts: {} };
}
