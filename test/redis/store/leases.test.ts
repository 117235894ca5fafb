import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Leases } from "../../../src/store/leases.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
let store: Store;
let leases: Leases;

beforeAll(async () => {
  store = await openStore(target);
  leases = new Leases(store);
});
afterAll(() => store.close());

const subject = (name: string) => ({ service: "main", repository: name, target: "42" });

describe("a lease", () => {
  it("goes to one of many, and tells the others who has it", async () => {
    const holders = await Promise.all(
      Array.from({ length: 10 }, (_, index) => leases.acquire(subject("raced"), `task-${index}`, 60_000)),
    );
    expect(new Set(holders).size).toBe(1);
  });

  it("may be prolonged and given back by its holder only", async () => {
    expect(await leases.acquire(subject("own"), "a", 60_000)).toBe("a");
    expect(await leases.acquire(subject("own"), "a", 60_000)).toBe("a");
    await leases.release(subject("own"), "b");
    expect(await leases.acquire(subject("own"), "b", 60_000)).toBe("a");
    await leases.release(subject("own"), "a");
    expect(await leases.acquire(subject("own"), "b", 60_000)).toBe("b");
  });

  it("ends by itself when its holder died", async () => {
    await leases.acquire(subject("dead"), "a", 20);
    let holder = "a";
    while (holder === "a") holder = await leases.acquire(subject("dead"), "b", 60_000);
    expect(holder).toBe("b");
  });

  it("on the same sync job of another repository is another one", async () => {
    await leases.acquire(subject("HR"), "a", 60_000);
    expect(await leases.acquire(subject("FIN"), "b", 60_000)).toBe("b");
  });
});
