// What planning reads besides the policy (src/app/planning-inputs.ts): quarantines without a rule.
import { expect, it, onTestFinished, vi } from "vitest";
import { liftDroppedQuarantines } from "../../../src/app/planning-inputs.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { Quarantines } from "../../../src/store/pauses.ts";
import { testPolicy } from "../../support/policies.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();

it("a quarantine without a rule is lifted by a machine whose clock is ahead, too", async () => {
  const ending = { policy: "nightly", slotMs: 1_000, isGood: false, note: "a slot failed" };
  await new Quarantines(store).count(ending, { after: 1, forMs: 3_600_000 });
  const clock = vi.spyOn(systemClock, "nowMs").mockReturnValue(9_999_999_999_999);
  onTestFinished(() => clock.mockRestore());
  const [pause] = await liftDroppedQuarantines(store, () => testPolicy());
  expect(pause).toMatchObject({ name: "nightly", endedBy: "its file, which has no quarantine any more" });
});
