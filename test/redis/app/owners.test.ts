import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RedisGuard } from "../../../src/app/redis-guard.ts";
import { UsageError } from "../../../src/core/errors.ts";
import { readOwners } from "../../../src/store/redis.ts";
import { storeForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

const store = await storeForTest();
let guards: RedisGuard[];

beforeEach(async () => {
  await store.redis.del(store.key("owners"));
  guards = [];
});
afterEach(async () => {
  for (const guard of guards) await guard.stop();
});

/** A process of this owner, not yet started. */
function newProcess(owner: string | undefined) {
  const log = new TestLog();
  const guard = new RedisGuard({ store, log, owner });
  guards.push(guard);
  return { log, guard, start: () => guard.start() };
}

describe("two owners under one prefix", () => {
  it("never run side by side: the second refuses to start, the first goes on", async () => {
    const first = newProcess("prod/sync");
    await first.start();
    const newcomer = newProcess("test/sync");
    await expect(newcomer.start()).rejects.toThrow(UsageError);
    await expect(newcomer.start()).rejects.toThrow("policies of prod/sync and test/sync run under one prefix");
    expect(newcomer.guard.isSafe()).toBe(false);
    expect(newcomer.guard.reasons().join()).toContain("give each a --prefix of its own");
    const told = await first.log.until(({ event }) => event === "owner.foreign");
    expect(told).toMatchObject({ owner: "prod/sync", holder: "prod/sync", others: "test/sync" });
    await expect.poll(() => first.guard.reasons()).toEqual([]);
    expect([first.guard.isSafe(), first.guard.foreignOwners]).toEqual([true, 1]);
    expect(await readOwners(store)).toEqual({ holder: "prod/sync", others: ["test/sync"] });
  });

  it("follow each other: who comes when the first ones have gone holds the prefix", async () => {
    await store.redis.hset(store.key("owners"), { "": "prod/old", "prod/old": Date.now() - 60_000 });
    const next = newProcess("prod/new");
    await next.start();
    expect([next.guard.isSafe(), next.guard.foreignOwners]).toEqual([true, 0]);
    expect(await readOwners(store)).toEqual({ holder: "prod/new", others: [] });
  });

  it("are none where all are of one owner, whatever their policies, or have no name", async () => {
    for (const owner of ["prod/sync", "prod/sync", undefined]) {
      const one = newProcess(owner);
      await one.start();
      expect([one.guard.isSafe(), one.guard.foreignOwners, one.log.named("owner.foreign")]).toEqual([true, 0, []]);
    }
  });
});
