// The test projects, by what they need. `unit` and `contract` need nothing; the others get a Redis from test/global-redis.ts.
// No retries anywhere: a test that passes at the second try is a defect.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The two long chaoses first: they take longest, and whoever comes last works alone. */
class ChaosFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => /chaos.(starts|schedules)\.test\.ts$/.test(moduleId);
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

/** Commands that tests start, by the hundred, find compiled what the first one loaded. */
const env = { NODE_COMPILE_CACHE: fileURLToPath(new URL(".cache/compiled", import.meta.url)) };

// `expect.poll` gives up after a second unless told: too soon on a busy machine, and shorter than the time of any test.
// Five seconds, the library's own limit, is too short on a machine that is several times as busy as ours.
const plain = (name: string) => ({
  test: { name, include: [`test/${name}/**/*.test.ts`], testTimeout: 60_000, expect: { poll: { timeout: 4_000 } } },
});

const withRedis = (name: string) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    globalSetup: ["./test/global-redis.ts"],
    setupFiles: ["./test/support/declared-keys.ts"],
    pool: "forks" as const,
    env,
    // For a machine several times as busy as ours: what a test waits for in vain has limits of its own, which say what it was.
    testTimeout: 120_000,
    hookTimeout: 60_000,
    expect: { poll: { interval: 20, timeout: 60_000 } },
  },
});

// Real helm, on the chart: test/chart/global-helm.ts fetches it once.
const chart = {
  test: { ...plain("chart").test, globalSetup: ["./test/chart/global-helm.ts"], env },
};
// A Docker engine, and one image for all; skipped where there is no engine.
const image = { test: { ...plain("image").test, testTimeout: 120_000, hookTimeout: 600_000 } };

export default defineConfig({
  test: {
    // One more than CI has cores: most of these files wait, for locks to run out and processes to come.
    maxWorkers: 3,
    retry: 0,
    sequence: { sequencer: ChaosFirst },
    projects: [
      plain("unit"),
      plain("contract"),
      withRedis("scenarios"),
      withRedis("redis"),
      withRedis("cli"),
      withRedis("chaos"),
      chart,
      image,
    ],
  },
});
