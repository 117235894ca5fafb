// What a replica may decide for all: only one with the newest policies takes something as gone.
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createNewerWorkerCheck, liftDroppedQuarantines, readNewestSinceMs } from "../../../src/app/planning-inputs.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { readKeptNote } from "../../../src/store/kept-policies.ts";
import { Quarantines } from "../../../src/store/pauses.ts";
import { keepSet, liveProcess, setOf } from "../../support/kept-set.ts";
import { testPolicy } from "../../support/policies.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();
const never = Number.POSITIVE_INFINITY;
const { contentHash } = setOf([]);

describe("a replica in a rolling upgrade", () => {
  it("knows since when its policies are the newest that a live process runs", async () => {
    expect(await readNewestSinceMs(store, contentHash)).toBe(never);
    await keepSet(store, []);
    const keptMs = (await readKeptNote(store))?.atMs;
    expect(keptMs).toBeGreaterThan(0);
    expect(await readNewestSinceMs(store, contentHash)).toBe(keptMs);
    // That no process runs the kept set says nothing: one may come back in a moment.
    expect(await readNewestSinceMs(store, "older")).toBe(never);
    await liveProcess(store);
    expect(await readNewestSinceMs(store, "older")).toBe(never);
    expect(await readNewestSinceMs(store, contentHash)).toBe(keptMs);
  });

  it("counts a worker with newer policies a while longer than it lives", async () => {
    await keepSet(store, []);
    const checks = [60_000, 0].map((awayForMs) => createNewerWorkerCheck(store, () => "older", awayForMs));
    const own = createNewerWorkerCheck(store, () => contentHash, 60_000);
    const answers = () => Promise.all([...checks, own].map((check) => check()));
    await liveProcess(store);
    expect(await answers()).toEqual([true, true, false]);
    await store.redis.del(store.key("replicas"));
    await expect.poll(answers).toEqual([true, false, false]);
    const late = createNewerWorkerCheck(store, () => "older", 60_000);
    expect(await late()).toBe(false);
  });

  it("takes policies that a newer version has kept for newer ones", async () => {
    const note = JSON.stringify({ v: 2, hash: contentHash, sinceMs: 1_000 });
    await store.redis.hset(store.key("policy-set"), "note", note);
    expect(await readNewestSinceMs(store, contentHash)).toBe(never);
  });

  it("lifts no quarantine whose rule a newer file may have", async () => {
    const ending = { policy: "watched", slotMs: 1_000, isSuccess: false, note: "it failed" };
    await new Quarantines(store).count(ending, { after: 1, forMs: 3_600_000 });
    const policy = () => testPolicy({ name: "watched" });
    const [kept] = await liftDroppedQuarantines(store, policy, async () => never);
    expect(kept).toMatchObject({ name: "watched", endedBy: null });
    const [lifted] = await liftDroppedQuarantines(store, policy, async () => 1_000);
    expect(lifted).toMatchObject({ name: "watched", endedBy: "its file, which has no quarantine any more" });
  });
});

it("a quarantine without a rule is lifted by a machine whose clock is ahead, too", async () => {
  const ending = { policy: "nightly", slotMs: 1_000, isSuccess: false, note: "a slot failed" };
  await new Quarantines(store).count(ending, { after: 1, forMs: 3_600_000 });
  const clock = vi.spyOn(systemClock, "nowMs").mockReturnValue(9_999_999_999_999);
  onTestFinished(() => clock.mockRestore());
  const pauses = await liftDroppedQuarantines(
    store,
    () => testPolicy(),
    async () => 1_000,
  );
  const lifted = pauses.find(({ name }) => name === "nightly");
  expect(lifted).toMatchObject({ endedBy: "its file, which has no quarantine any more" });
});
