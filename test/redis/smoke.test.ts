// The Redis of this run is one that Syncline may work with.
import { Redis } from "ioredis";
import { afterAll, describe, expect, it } from "vitest";
import { redisForTest } from "../support/redis.ts";

const { url, prefix } = redisForTest();
const client = new Redis(url);
afterAll(() => client.quit());

describe("the Redis of the tests", () => {
  it("answers", async () => {
    expect(await client.ping()).toBe("PONG");
  });

  it("evicts nothing", async () => {
    expect(await client.config("GET", "maxmemory-policy")).toEqual(["maxmemory-policy", "noeviction"]);
  });

  it("is Redis 6.2 or newer", async () => {
    const version = /redis_version:(\d+)\.(\d+)/.exec(await client.info("server"));
    expect(Number(version?.[1]) * 100 + Number(version?.[2])).toBeGreaterThanOrEqual(602);
  });

  it("keeps a key under the prefix of this file", async () => {
    await client.set(`${prefix}:key`, "value");
    expect(await client.get(`${prefix}:key`)).toBe("value");
  });
});
