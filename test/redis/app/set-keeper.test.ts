// Which set Redis keeps while processes with different policies live side by side.
import { beforeEach, describe, expect, it } from "vitest";
import { createNewerWorkerCheck } from "../../../src/app/planning-inputs.ts";
import { SetKeeper } from "../../../src/app/set-keeper.ts";
import { keepPolicySet, readKeptNote } from "../../../src/store/kept-policies.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { RedisWatch } from "../../../src/store/redis-watch.ts";
import { setOf } from "../../support/kept-set.ts";
import { storeForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

const store = await storeForTest();
const keptHash = async () => (await readKeptNote(store))?.hash;

beforeEach(async () => {
  awayForMs = 0;
  foreign.clear();
  for (const name of ["processes", "replicas", "policy-set"]) await store.redis.del(store.key(name));
});

/** How long a kept set that no live process runs stays. */
let awayForMs = 0;
/** The sets of processes under another owner's prefix. */
const foreign = new Set<string>();

/** A process with this set, later than all before it. `path`: what it follows. */
async function processWith(contentHash: string, path: string | null = "/p") {
  const startedMs = await redisTimeMs(store);
  while ((await redisTimeMs(store)) === startedMs);
  const watch = new RedisWatch(store, { roles: ["worker"] });
  const log = new TestLog();
  const set = { ...setOf([]), contentHash };
  const keeper = new SetKeeper({
    store,
    guard: {
      ...{ watch, isSafe: () => !foreign.has(contentHash) },
      get mayBeForeign() {
        return foreign.has(contentHash);
      },
    },
    set,
    roles: ["worker"],
    path: path ?? undefined,
    log,
    awayForMs,
  });
  /** It lives, and notes what it runs. */
  const tick = async () => {
    await watch.check();
    await keeper.start();
    await keeper.stop();
  };
  await tick();
  return { tick, log, die: () => store.redis.zrem(store.key("processes"), watch.process) };
}

describe("the kept set", () => {
  it("is that of the newest process, and again the one before when that is gone", async () => {
    const upgraded = await processWith("new");
    const restarted = await processWith("old");
    await upgraded.tick();
    expect(await keptHash()).toBe("old");
    await restarted.die();
    await upgraded.tick();
    expect(await keptHash()).toBe("new");
  });

  it("is left to no process that another owner keeps from working", async () => {
    const own = await processWith("own");
    const other = await processWith("other");
    expect(await keptHash()).toBe("other");
    foreign.add("other");
    for (const { tick } of [other, own, other]) await tick();
    expect(await keptHash()).toBe("own");
    expect(await createNewerWorkerCheck(store, () => "own", 60_000)()).toBe(false);
  });

  it("is no newer when a process begins with the same", async () => {
    const first = await processWith("same");
    const note = await readKeptNote(store);
    await processWith("same");
    expect((await readKeptNote(store))?.atMs).toBe(note?.atMs);
    await processWith("other");
    await processWith("same");
    expect((await readKeptNote(store))?.atMs).toBeGreaterThan(note?.atMs ?? 0);
    await first.die();
  });

  it("stays that of the newest process while that restarts", async () => {
    awayForMs = 60_000;
    const old = await processWith("old");
    const newest = await processWith("new");
    await newest.die();
    for (const { tick } of [old, old]) await tick();
    expect(await keptHash()).toBe("new");
  });

  it("is written once for processes that live on side by side", async () => {
    const processes = [await processWith("old"), await processWith("new"), await processWith("newest")];
    const note = await readKeptNote(store);
    expect(note?.hash).toBe("newest");
    for (const { tick } of [...processes, ...processes, ...processes.toReversed()]) await tick();
    expect(await readKeptNote(store)).toEqual(note);
  });

  it("goes back to a process that was silent for a while, and stays there", async () => {
    const old = await processWith("old");
    const silent = await processWith("new");
    await silent.die();
    await old.tick();
    expect(await keptHash()).toBe("old");
    await silent.tick();
    expect(await keptHash()).toBe("new");
    await old.tick();
    expect(await keptHash()).toBe("new");
  });

  it("that a newer version wrote is left to it", async () => {
    const { tick, log } = await processWith("old");
    await keepPolicySet(store, { ...setOf([]), contentHash: "new" }, "host/9");
    const note = JSON.stringify({ v: 2, hash: "new" });
    await store.redis.hset(store.key("policy-set"), "note", note);
    await tick();
    expect(await store.redis.hget(store.key("policy-set"), "note")).toBe(note);
    expect(log.named("config.not-kept")).toEqual([]);
  });

  it("of a process that follows no file goes before none that is followed", async () => {
    const first = await processWith("by hand", null);
    const followed = await processWith("followed");
    for (const { tick } of [first, await processWith("waits", null), first]) await tick();
    expect(await keptHash()).toBe("followed");
    await followed.die();
    await first.tick();
    expect(await keptHash()).toBe("by hand");
  });

  it("of a process that follows no file gives way to a followed one that was silent", async () => {
    const followed = await processWith("followed");
    await followed.die();
    await processWith("by hand", null);
    expect(await keptHash()).toBe("by hand");
    await followed.tick();
    expect(await keptHash()).toBe("followed");
  });
});
