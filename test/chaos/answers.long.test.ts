import { expect, inject, it } from "vitest";
import { planAnswerChaos } from "./plan-answers.ts";
import { warmUp } from "./replica.ts";
import { runAnswerChaos } from "./run-answers.ts";
import { runSeeds } from "./run-seeds.ts";

it("makes the same answers of the same seed", () => {
  expect(planAnswerChaos(17)).toEqual(planAnswerChaos(17));
  expect(planAnswerChaos(17)).not.toEqual(planAnswerChaos(18));
});

it("ends no process, holds no place and tells the truth under odd answers (P7)", async () => {
  await warmUp();
  const stories: string[] = [];
  const { failed, counts } = await runSeeds({
    // One without TLS, and one over it whose service the commands ask, too.
    seeds: [1, 8],
    redisUrl: inject("redis").url,
    sideBySide: 2,
    runSeed: runAnswerChaos,
    onResult: ({ seed, findings, story }) => {
      const again = `seed ${seed}: npm run chaos -- --kind answers --seed ${seed}`;
      if (findings.length > 0) stories.push([...story(), again, ...findings].join("\n"));
    },
  });
  expect(failed, stories.join("\n\n")).toEqual([]);
  expect(counts["odd answers"]).toBeGreaterThan(100);
});
