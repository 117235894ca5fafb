import { describe, expect, it } from "vitest";
import type { Outcome } from "../../../src/model/outcome.ts";
import { History } from "../../../src/store/history.ts";
import { readLastSuccesses } from "../../../src/store/policy-states.ts";
import { testOutcome } from "../../support/outcomes.ts";
import { storeForTest } from "../../support/redis.ts";

let ended = 0;
/** 2027-01-01: states are written with instants of 13 digits. */
const beganMs = 1_798_761_600_000;

const store = await storeForTest();

/** One more task of the policy ends so many milliseconds after `beganMs`. */
function end(policy: string, { atMs, ...changes }: { atMs: number } & Partial<Outcome>): Promise<unknown> {
  ended += 1;
  const finishedAt = new Date(beganMs + atMs).toISOString();
  return new History(store).record(testOutcome({ taskId: `ended-${ended}`, policy, finishedAt, ...changes }));
}

describe("the last successes", () => {
  it("keep the newest, in any order of writing, and expire by themselves", async () => {
    for (const atMs of [2_000, 5_000, 3_000]) await end("nightly", { atMs });
    expect([...(await readLastSuccesses(store, ["nightly", "never"]))]).toEqual([["nightly", beganMs + 5_000]]);
    expect(await readLastSuccesses(store, [])).toEqual(new Map());
    const lastsMs = await store.redis.pttl(store.key("last-success", "nightly"));
    expect(lastsMs).toBeGreaterThan(399 * 86_400_000);
  });

  it("are those of outcomes that say that the policy works, once an outcome", async () => {
    await end("sick", { atMs: 2_000, taskId: "first" });
    await end("sick", { atMs: 3_000, status: "failed" });
    await end("sick", { atMs: 4_000, status: "skipped" });
    await end("sick", { atMs: 5_000, taskId: "first" });
    expect([...(await readLastSuccesses(store, ["sick"]))]).toEqual([["sick", beganMs + 2_000]]);
    await end("sick", { atMs: 6_000, status: "failed", reason: "expectation-not-met" });
    expect([...(await readLastSuccesses(store, ["sick"]))]).toEqual([["sick", beganMs + 6_000]]);
  });

  it("are found for more policies than one command takes", async () => {
    const names = Array.from({ length: 1_001 }, (_, index) => `p${index}`);
    await end("p1000", { atMs: 7_000 });
    expect([...(await readLastSuccesses(store, names))]).toEqual([["p1000", beganMs + 7_000]]);
  });
});
