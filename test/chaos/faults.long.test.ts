import { expect, inject, it } from "vitest";
import { faultKinds } from "./fault-kinds.ts";
import { tryFaults } from "./fault-trial.ts";
import { warmUp } from "./replica.ts";

const kindsTried = 3;
/** Another seed tries other kinds, with and without crashes: `npm run trial:faults`. */
const seed = 4;

it("tells nothing untrue under faults: a share of the kinds", async () => {
  await warmUp();
  const names = Object.keys(faultKinds);
  const kinds = Array.from(
    { length: kindsTried },
    (_, index) => names[(seed * kindsTried + index) % names.length] ?? "",
  );
  const crashes = seed % 2 === 0;
  const options = { seed, kinds, crashes, slots: 2, everyMs: 2_000, recoversAfterMs: 2_000 };
  const { findings, looked } = await tryFaults({ ...options, redisUrl: inject("redis").url });
  const again = `npm run trial:faults -- --seed ${seed} --slots 2 --every 2 --only ${kinds.join(" ")}${crashes ? " --crashes" : ""}`;
  expect(findings, `${again}\n${findings.join("\n")}`).toEqual([]);
  // Of five policies a kind; on a busy machine the second slot of each may stand for its first.
  expect(looked["outcomes"]).toBeGreaterThanOrEqual(5 * kindsTried);
});
