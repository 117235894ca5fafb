// `npm test`: everything but test/**/*.long.test.ts, which vitest.long.config.ts runs. One project
// for each folder of test/. No retries anywhere: a test that passes at the second try is a defect.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Starts the two longest files first, so that no other worker idles while they end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLongest = ({ moduleId }: TestSpecification) => /chaos.(starts|schedules)\./.test(moduleId);
    const sorted = await super.sort(files);
    return [...sorted.filter(isLongest), ...sorted.filter((file) => !isLongest(file))];
  }
}

/** Processes that tests start reuse what the first of them compiled. */
const env = { NODE_COMPILE_CACHE: fileURLToPath(new URL(".cache/compiled", import.meta.url)) };
/**
 * A Redis for all files of a folder, at which a Lua script fails on a key that it does not declare.
 */
const redis = {
  globalSetup: ["./test/global-redis.ts"],
  setupFiles: ["./test/support/end-file.ts", "./test/support/declared-keys.ts"],
  pool: "forks" as const,
  env,
};

/**
 * The limits are for a machine several times as busy as ours: a test may make several waits, each
 * with its own, shorter limit.
 */
const limits = { testTimeout: 600_000, hookTimeout: 300_000, expect: { poll: { interval: 20, timeout: 60_000 } } };

/**
 * Files share a process and what it has loaded: to load it anew for each was half of what they
 * cost. So each test gives back what it replaces.
 */
const shared = {
  isolate: false,
  restoreMocks: true,
  unstubEnvs: true,
  setupFiles: ["./test/support/end-file.ts"],
};

/** What the files of a folder need beside the folder's name. */
const folders: Readonly<Record<string, object>> = {
  unit: { testTimeout: 60_000, hookTimeout: 60_000, expect: { poll: { timeout: 20_000 } } },
  contract: { testTimeout: 60_000, hookTimeout: 60_000, expect: { poll: { timeout: 20_000 } } },
  scenarios: { ...limits, ...redis },
  redis: { ...limits, ...redis },
  cli: { ...limits, ...redis, globalSetup: [...redis.globalSetup, "./test/global-bundle.ts"] },
  chaos: { ...limits, ...redis, globalSetup: [...redis.globalSetup, "./test/global-bundle.ts"] },
  chart: { ...limits, globalSetup: ["./test/chart/global-helm.ts"], env },
  browser: { ...limits, ...redis, globalSetup: [...redis.globalSetup, "./test/browser/global-chromium.ts"] },
  image: { testTimeout: 120_000, hookTimeout: 600_000 },
};

/**
 * One project for each folder, over its files that end in `ending` but for those that `exclude`
 * names.
 */
export function configOf(ending: string, { maxWorkers, exclude = [] }: { maxWorkers: number; exclude?: string[] }) {
  const projects = Object.entries(folders).map(([name, needs]) => ({
    test: { name, include: [`test/${name}/**/*${ending}`], exclude, ...shared, ...needs },
  }));
  return defineConfig({ test: { maxWorkers, retry: 0, sequence: { sequencer: LongestFirst }, projects } });
}

// More workers than CI has cores: most files wait, for locks to run out and processes to come.
export default configOf(".test.ts", { maxWorkers: 5, exclude: ["**/*.long.test.ts"] });
