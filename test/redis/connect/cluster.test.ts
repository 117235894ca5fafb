import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PrivateRedis } from "../../../scripts/redis.mjs";
import { isRedisOutage } from "../../../src/core/redis-outage.ts";
import { openStore, redisTimeMs } from "../../../src/store/redis.ts";
import { aclCommands } from "../../support/redis-acl.ts";
import { type Fixture, openFixture, useEverything, useSinks } from "../../support/redis-round-trip.ts";
import { clientOf, ownFolder, startServer, until, untilReplicated } from "../../support/redis-servers.ts";

const ranges = ["0 5460", "5461 10922", "10923 16383"];
let masters: PrivateRedis[];
let url: string;
let fixture: Fixture;
let clients: readonly Redis[];

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function startNode(): Promise<PrivateRedis> {
  return startServer({ dir: ownFolder(), args: ["--cluster-enabled", "yes", "--cluster-node-timeout", "10000"] });
}

beforeAll(async () => {
  const nodes = await Promise.all([1, 2, 3, 4].map(startNode));
  masters = nodes.slice(0, 3);
  clients = nodes.map(({ port }) => clientOf(port));
  const [first, ...others] = clients;
  const replica = clients[3];
  if (first === undefined || replica === undefined) throw new Error("no nodes");
  for (const [index, range] of ranges.entries())
    await clients[index]?.call("CLUSTER", "ADDSLOTSRANGE", ...range.split(" "));
  for (const [index] of others.entries()) await first.call("CLUSTER", "MEET", "127.0.0.1", `${nodes[index + 1]?.port}`);
  // A replica of the node that has our keys, so that it can be lost.
  const slot = Number(await first.call("CLUSTER", "KEYSLOT", "{syncline}"));
  const owner = ranges.findIndex((range) => slot <= Number(range.split(" ")[1]));
  const id = await clients[owner]?.call("CLUSTER", "MYID");
  await until(
    () => replica.call("CLUSTER", "NODES"),
    (text) => String(text).includes(String(id)),
  );
  await replica.call("CLUSTER", "REPLICATE", String(id));
  await untilReplicated(nodes[owner]?.port ?? 0);
  for (const client of clients)
    await until(
      () => client.call("CLUSTER", "INFO"),
      (text) => String(text).includes("cluster_state:ok"),
    );
  for (const client of clients)
    await until(
      () => client.call("CLUSTER", "NODES"),
      (text) => String(text).trim().split("\n").length === 4,
    );
  const rights = [...aclCommands(), "+cluster|slots", "+cluster|info"];
  for (const client of clients)
    for (const user of ["syncline", "leaving"])
      await client.call("ACL", "SETUSER", user, "on", ">secret", "resetchannels", "~{syncline}*", ...rights);
  masters = [masters[owner] as PrivateRedis];
  url = `redis+cluster://syncline:secret@${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
  fixture = await openFixture({ url, prefix: "{syncline}" });
});
afterAll(() => fixture.stop());

describe("a Redis Cluster", () => {
  it("does everything that Syncline needs, with all keys in one slot", async () => {
    await useEverything(fixture);
    await expect.poll(() => fixture.guard.reasons()).toEqual([]);
    await expect.poll(() => fixture.guard.watch.reachReplicas(0)).toBe(true);
  });

  it("keeps no connection of what has stopped", async () => {
    const connections = async () => {
      const lists = await Promise.all(clients.map((client) => client.call("CLIENT", "LIST")));
      return lists.join("").split("user=leaving").length - 1;
    };
    const leaving = await openFixture({ url: url.replace("//syncline:", "//leaving:"), prefix: "{syncline}" });
    expect(await connections()).toBeGreaterThan(0);
    // The worker of a sink comes and goes, too.
    await useSinks(leaving);
    await leaving.stop();
    await until(connections, (count) => count === 0);
  });

  it("is refused with a prefix that would spread the keys", async () => {
    await expect(openStore({ url, prefix: "syncline" })).rejects.toThrow("no {braces}");
  });

  it("goes on when the node that has our keys dies", async () => {
    const { pid = 0 } = masters[0] ?? {};
    process.kill(pid, "SIGKILL");
    await until(
      () => isAlive(pid),
      (isThere) => !isThere,
    );
    // Whatever fails meanwhile is an outage of Redis, which a task sleeps through, and no bug.
    const failures = new Set<string>();
    const ask = () =>
      fixture.journal.claim("meanwhile", "me").catch((error: unknown) => {
        failures.add(`${isRedisOutage(error)}: ${error}`);
        return undefined;
      });
    await until(ask, (entry) => entry !== undefined, 60_000);
    expect([...failures].filter((failure) => failure.startsWith("false"))).toEqual([]);
    expect(failures.size).toBeGreaterThan(0);
    await fixture.log.until(({ event }) => event === "redis.changed");
    await until(
      () => fixture.guard.reasons(),
      (reasons) => reasons.length === 0,
    );
    expect(await redisTimeMs(fixture.store)).toBeGreaterThan(0);
    // The queue's connection may be back later than the guard's; callers add tasks again.
    await until(
      () => fixture.work().catch(() => ""),
      (id) => id !== "",
      60_000,
    );
  });

  it("that is gone altogether is an error within seconds, never a wait without end", async () => {
    await expect(openStore({ url: "redis+cluster://127.0.0.1:1", prefix: "{syncline}" })).rejects.toThrow(
      "does not answer",
    );
  });
});
