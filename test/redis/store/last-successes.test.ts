import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LastSuccesses } from "../../../src/store/last-successes.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
let store: Store;

beforeAll(async () => {
  store = await openStore(target);
});
afterAll(() => store.close());

describe("the last successes", () => {
  it("keep the newest, whatever order they are noted in, and let go of it by themselves", async () => {
    const successes = new LastSuccesses(store);
    for (const atMs of [2_000, 5_000, 3_000]) await successes.note("nightly", atMs);
    expect([...(await successes.of(["nightly", "never"]))]).toEqual([["nightly", 5_000]]);
    expect(await successes.of([])).toEqual(new Map());
    const lastsMs = await store.redis.pttl(store.key("last-success", "nightly"));
    expect(lastsMs).toBeGreaterThan(399 * 86_400_000);
  });

  it("are found for more policies than one command takes", async () => {
    const successes = new LastSuccesses(store);
    const names = Array.from({ length: 1_001 }, (_, index) => `p${index}`);
    await successes.note("p1000", 7_000);
    expect([...(await successes.of(names))]).toEqual([["p1000", 7_000]]);
  });
});
