// The test projects, by what they need. `unit` and `contract` need nothing; the others get a Redis from test/global-redis.ts.
// No retries anywhere: a test that passes at the second try is a defect.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

/** Commands that tests start, by the hundred, find compiled what the first one loaded. */
const env = { NODE_COMPILE_CACHE: fileURLToPath(new URL(".cache/compiled", import.meta.url)) };

const plain = (name: string) => ({ test: { name, include: [`test/${name}/**/*.test.ts`] } });

const withRedis = (name: string) => ({
  test: {
    name,
    include: [`test/${name}/**/*.test.ts`],
    globalSetup: ["./test/global-redis.ts"],
    pool: "forks" as const,
    env,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});

// Real helm, on the chart: test/chart/global-helm.ts fetches it once.
const chart = {
  test: { ...plain("chart").test, globalSetup: ["./test/chart/global-helm.ts"], env, testTimeout: 30_000 },
};
// A Docker engine, and one image for all; skipped where there is no engine.
const image = { test: { ...plain("image").test, testTimeout: 120_000, hookTimeout: 600_000 } };

export default defineConfig({
  test: {
    maxWorkers: 2,
    retry: 0,
    projects: [
      plain("unit"),
      plain("contract"),
      withRedis("scenarios"),
      withRedis("redis"),
      withRedis("cli"),
      // One after the other: each keeps both processors busy.
      { test: { ...withRedis("chaos").test, fileParallelism: false } },
      chart,
      image,
    ],
  },
});
