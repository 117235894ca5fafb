import { describe, expect, it } from "vitest";
import { judgeRedis, parseInfo } from "../../../src/store/redis-facts.ts";

const info = (changes: Record<string, string> = {}) =>
  Object.entries({
    redis_version: "7.0.15",
    maxmemory_policy: "noeviction",
    aof_enabled: "1",
    role: "master",
    connected_slaves: "0",
    ...changes,
  })
    .map(([name, value]) => `${name}:${value}\r\n`)
    .join("");

const judge = (changes: Record<string, string>) => judgeRedis({ ...parseInfo(info(changes)), clockAheadMs: 0 });

describe("what Redis says of itself", () => {
  it("is read from INFO", () => {
    expect(parseInfo(`# Server\r\n${info()}`)).toEqual({
      version: "7.0.15",
      evictionPolicy: "noeviction",
      appendOnly: true,
      role: "master",
      replicas: 0,
      writesAlone: false,
    });
  });

  it("warns of a master that writes on without its replicas: one may be master now", () => {
    const replicated = { connected_slaves: "1", slave0: "ip=10.0.0.1,port=6379,state=online,offset=1,lag=0" };
    const { problems, warnings } = judge(replicated);
    expect(problems).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining("min-replicas-to-write 1")]);
    expect(judge({ ...replicated, min_slaves_good_slaves: "1" })).toEqual({ problems: [], warnings: [] });
    // A cluster's master that is cut off stops by itself.
    expect(judge({ ...replicated, redis_mode: "cluster" })).toEqual({ problems: [], warnings: [] });
  });

  it("counts the replicas that are in step only", () => {
    const text = info({
      connected_slaves: "2",
      slave0: "ip=10.0.0.1,port=6379,state=online,offset=1,lag=0",
      slave1: "ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0",
    });
    expect(parseInfo(text).replicas).toBe(1);
  });

  it("is fine as it should be", () => {
    expect(judge({})).toEqual({ problems: [], warnings: [] });
  });

  it.each(["allkeys-lru", "volatile-ttl", "allkeys-random"])("is a problem with the eviction policy %s", (policy) => {
    const { problems } = judge({ maxmemory_policy: policy });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(`maxmemory-policy is ${policy}`);
  });

  it.each(["5.0.14", "6.0.16"])("is a problem with version %s", (version) => {
    expect(judge({ redis_version: version }).problems[0]).toContain("6.2 is the oldest");
  });

  it.each(["6.2.0", "7.0.15", "10.1.0"])("is no problem with version %s", (version) => {
    expect(judge({ redis_version: version }).problems).toEqual([]);
  });

  it("is a problem on a replica and without INFO, a warning without append-only file", () => {
    expect(judge({ role: "slave" }).problems[0]).toContain("is a replica");
    expect(judge({ aof_enabled: "0" })).toMatchObject({
      problems: [],
      warnings: [expect.stringContaining("appendonly")],
    });
    expect(judgeRedis({ ...parseInfo(""), clockAheadMs: 0 })).toMatchObject({
      problems: [expect.stringContaining("allow +info")],
      warnings: [],
    });
  });
});
