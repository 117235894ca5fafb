import { expect, inject, it } from "vitest";
import { planStartChaos } from "./plan-starts.ts";
import { warmUp } from "./replica.ts";
import { runSeeds } from "./run-seeds.ts";
import { runStartChaos } from "./run-starts.ts";

const schedules = 300;
/** Mostly they wait: for locks to run out, for processes to be missed. */
const sideBySide = 12;
/** Of the tasks under crashes, at most so many may end as unknown although their start can be told from the evidence (docs/testing.md). */
const avoidableShareMax = 0.02;

it("makes the same script of the same seed", () => {
  expect(planStartChaos(17)).toEqual(planStartChaos(17));
  expect(planStartChaos(17)).not.toEqual(planStartChaos(18));
});

it(`starts nothing twice and tells the truth through ${schedules} seeded schedules of crashes, lost answers and a Redis that fails (P2)`, async () => {
  await warmUp();
  const stories: string[] = [];
  const { failed, counts } = await runSeeds({
    seeds: Array.from({ length: schedules }, (_, index) => index + 1),
    redisUrl: inject("redis").url,
    sideBySide,
    runSeed: runStartChaos,
    onResult: ({ seed, findings, story }) => {
      if (findings.length > 0)
        stories.push(
          [...story(), `seed ${seed}: npm run chaos -- --kind starts --seed ${seed}`, ...findings].join("\n"),
        );
    },
  });
  expect(failed, stories.join("\n\n")).toEqual([]);
  expect(counts["strikes"]).toBeGreaterThan(schedules);
  expect(counts["starts"]).toBeGreaterThan(10 * schedules);
  expect(counts["unknown (avoidable) under crash"]).toBeLessThanOrEqual(
    avoidableShareMax * (counts["tasks under crash"] ?? 0),
  );
}, 1_200_000);
