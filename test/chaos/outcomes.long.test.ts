// A small share of `npm run chaos:outcomes`: what is told of many outcomes is true, whatever of
// them is kept.
import { expect, it } from "vitest";
import { redisForTest } from "../support/redis.ts";
import { tryOutcomes } from "./outcomes-trial.ts";

const redis = redisForTest();

it("tells nothing untrue of outcomes that are kept, dropped, lost or still to come", async () => {
  const report = await tryOutcomes({
    ...{ redis, sets: 3, slots: 160, audits: 4, samples: 15, seed: 18 },
    limits: { count: 100, forMs: 20 * 86_400_000 },
  });
  expect(report.untrue).toEqual([]);
  expect(report.outcomes).toBeGreaterThan(2_000);
  expect(Object.keys(report.explained)).toEqual(expect.arrayContaining(["kept", "dropped", "running", "lost"]));
});
