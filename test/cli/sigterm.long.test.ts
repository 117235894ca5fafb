import { expect, it } from "vitest";
import { redisForTest } from "../support/redis.ts";
import { checkSigterm } from "../support/sigterm-check.ts";

const redis = redisForTest();

// A sample; `npm run chaos:sigterm -- --rounds 1000` does as many as one likes. A seed that fails
// is printed and replays.
it("exits with 0 in its grace period at any SIGTERM: no loss, no second start (P8)", async () => {
  const seed = Date.now() % 1_000_000;
  const report = await checkSigterm({ redis, rounds: 24, seed });
  expect({ seed, wrong: report.wrong }).toEqual({ seed, wrong: [] });
  expect(report.starts).toBeGreaterThan(40);
  // Each ends with its work, not with its drain.
  expect(report.slowExits).toBeLessThanOrEqual(2);
  expect(report.unknown).toEqual([]);
});
