import { beforeEach, describe, expect, it } from "vitest";
import { Pauses, pausesMax } from "../../../src/store/pauses.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();
const pauses = new Pauses(store);
beforeEach(async () => {
  await store.redis.del(store.key("pauses"));
});

const nightly = { scope: "policy", name: "nightly" } as const;
const wish = { ...nightly, note: 'release "1/2" \u00e4', actor: "ada@desk", untilMs: null };

describe("the pauses", () => {
  it("keeps who, why, since when by the time of Redis, and until when", async () => {
    const before = await redisTimeMs(store);
    const set = await pauses.set({ ...wish, untilMs: before + 3_600_000 });
    expect(set).toMatchObject({ ...wish, untilMs: before + 3_600_000, endedBy: null });
    expect(set?.sinceMs).toBeGreaterThanOrEqual(before);
    expect(await pauses.all()).toEqual([set]);
  });

  it("ends by turning the pause into an interval, once", async () => {
    const set = await pauses.set(wish);
    const [ended] = await pauses.end(nightly, "ben@desk");
    expect(ended).toMatchObject({ sinceMs: set?.sinceMs, endedBy: "ben@desk" });
    expect(ended?.untilMs).toBeGreaterThanOrEqual(set?.sinceMs ?? Number.NaN);
    expect(await pauses.all()).toEqual([ended]);
    expect(await pauses.end(nightly, "ben@desk")).toEqual([]);
  });

  it("leaves other subjects alone, also those of the same name", async () => {
    await pauses.set(wish);
    await pauses.set({ ...wish, scope: "service" });
    await pauses.set({ ...wish, scope: "all", name: "" });
    expect(await pauses.end(nightly, "ben@desk")).toHaveLength(1);
    expect(
      (await pauses.all())
        .filter(({ untilMs }) => untilMs === null)
        .map(({ scope }) => scope)
        .toSorted(),
    ).toEqual(["all", "service"]);
  });

  it("lets a second pause of one subject follow the first without a gap", async () => {
    await pauses.set(wish);
    const second = await pauses.set({ ...wish, note: "longer" });
    const all = (await pauses.all()).toSorted((a, b) => a.sinceMs - b.sinceMs);
    expect(all.filter(({ untilMs }) => untilMs === null)).toEqual([second]);
    for (const one of all.filter(({ untilMs }) => untilMs !== null)) expect(one.untilMs).toBe(second?.sinceMs);
  });

  it("drops ended pauses that no slot can need any more, and keeps the newest", async () => {
    const nowMs = await redisTimeMs(store);
    const ended = (index: number, untilMs: number) => ({
      ...wish,
      v: 1,
      name: `p${index}`,
      sinceMs: 1,
      untilMs,
      endedBy: null,
    });
    const entries = [
      ended(0, nowMs - 32 * 86_400_000),
      ...Array.from({ length: 250 }, (_, i) => ended(i + 1, nowMs - 1_000 - i)),
    ];
    await store.redis.hset(
      store.key("pauses"),
      Object.fromEntries(entries.map((one) => [`policy/${one.name}@1`, JSON.stringify(one)])),
    );
    await pauses.set(wish);
    const names = (await pauses.all()).map(({ name }) => name);
    expect(names).toHaveLength(201);
    expect(names).toContain("p1");
    expect(names).toContain("p200");
    expect(names).not.toContain("p201");
    expect(names).not.toContain("p0");
  });

  it("refuses one too many", async () => {
    const one = (index: number) => ({ ...wish, v: 1, name: `p${index}`, sinceMs: 1, untilMs: null, endedBy: null });
    await store.redis.hset(
      store.key("pauses"),
      Object.fromEntries(
        Array.from({ length: pausesMax }, (_, index) => [`policy/p${index}@1`, JSON.stringify(one(index))]),
      ),
    );
    expect(await pauses.set(wish)).toBeUndefined();
    expect(await pauses.set({ ...wish, name: "p7", note: "instead" })).toMatchObject({ note: "instead" });
  });
});
