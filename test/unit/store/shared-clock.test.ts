import { describe, expect, it } from "vitest";
import { createSharedClock } from "../../../src/store/redis.ts";

/** A clock of this machine that stands until it is moved, and how often Redis was asked. */
function createClocks() {
  const machine = { wallMs: 500, runMs: 70 };
  const redis = { ms: 10_000, asked: 0 };
  const ask = async () => {
    redis.asked += 1;
    return redis.ms;
  };
  const now = createSharedClock(ask, { nowMs: () => machine.wallMs, monotonicMs: () => machine.runMs });
  return { machine, redis, now };
}

describe("the shared clock", () => {
  it("carries Redis's time on for a second, and asks anew after it", async () => {
    const { machine, redis, now } = createClocks();
    expect(await now()).toBe(10_000);
    machine.runMs += 999.6;
    expect(await now()).toBe(10_999);
    expect(redis.asked).toBe(1);
    machine.runMs += 1;
    redis.ms = 20_000;
    expect(await now()).toBe(20_000);
    expect(redis.asked).toBe(2);
  });

  it("asks anew after the machine was suspended, when only its wall clock went on", async () => {
    const { machine, redis, now } = createClocks();
    await now();
    machine.wallMs += 3_600_000;
    redis.ms = 3_610_000;
    expect(await now()).toBe(3_610_000);
  });

  it("asks once for all who come at the same time", async () => {
    const { redis, now } = createClocks();
    expect(await Promise.all([now(), now(), now()])).toEqual([10_000, 10_000, 10_000]);
    expect(redis.asked).toBe(1);
  });

  it("asks anew when Redis did not answer", async () => {
    let answers = 0;
    const now = createSharedClock(async () => {
      answers += 1;
      if (answers === 1) throw new Error("Connection is closed.");
      return 10_000;
    });
    await expect(now()).rejects.toThrow("closed");
    expect(await now()).toBe(10_000);
  });
});
