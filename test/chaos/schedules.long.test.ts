import { expect, inject, it } from "vitest";
import { planScheduleChaos } from "./plan-schedules.ts";
import { warmUp } from "./replica.ts";
import { runScheduleChaos } from "./run-schedules.ts";
import { runSeeds } from "./run-seeds.ts";

const schedules = 80;
/** Mostly they wait. More at once would only take each other's processor. */
const sideBySide = 4;

it("makes the same script of the same seed", () => {
  expect(planScheduleChaos(17)).toEqual(planScheduleChaos(17));
  expect(planScheduleChaos(17)).not.toEqual(planScheduleChaos(18));
});

// The faults: kill -9, SIGSTOP and clocks 3 s apart.
it(`records each planned slot once through ${schedules} seeded kills and stops (P1)`, async () => {
  await warmUp();
  const stories: string[] = [];
  const { failed, counts } = await runSeeds({
    seeds: Array.from({ length: schedules }, (_, index) => index + 1),
    redisUrl: inject("redis").url,
    sideBySide,
    runSeed: runScheduleChaos,
    onResult: ({ seed, findings, story }) => {
      if (findings.length > 0)
        stories.push([...story(), `seed ${seed}: npm run chaos -- --seed ${seed}`, ...findings].join("\n"));
    },
  });
  expect(failed, stories.join("\n\n")).toEqual([]);
  expect(counts["strikes"]).toBeGreaterThan(schedules);
  expect(counts["slots"]).toBeGreaterThan(3 * schedules);
}, 3_600_000);
