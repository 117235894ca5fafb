import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PrivateRedis } from "../../../scripts/redis.mjs";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { journalTask } from "../../support/journal-task.ts";
import { type House, openHouse, useEverything } from "../../support/redis-round-trip.ts";
import { clientOf, startSentinel, startServer, until } from "../../support/redis-servers.ts";

let master: PrivateRedis;
let house: House;

beforeAll(async () => {
  master = await startServer();
  const replica = await startServer({ args: ["--replicaof", "127.0.0.1", `${master.port}`] });
  await until(
    () => clientOf(replica.port).info("replication"),
    (text) => text.includes("master_link_status:up"),
  );
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(master.port, 2)));
  const knowing = clientOf(sentinels[0] ?? 0);
  await until(
    () => knowing.call("SENTINEL", "CKQUORUM", "main").catch(() => ""),
    (answer) => String(answer).startsWith("OK 3 usable"),
  );
  await until(
    () => knowing.call("SENTINEL", "REPLICAS", "main"),
    (answer) => JSON.stringify(answer).includes(`${replica.port}`),
  );
  const hosts = sentinels.map((port) => `127.0.0.1:${port}`).join(",");
  house = await openHouse({ url: `redis+sentinel://${hosts}/main`, prefix: "{syncline}" });
}, 60_000);
afterAll(() => house.stop());

describe("Redis behind Sentinels", () => {
  it("does everything that Syncline needs", async () => {
    await useEverything(house);
    expect(house.guard.reasons()).toEqual([]);
  });

  it("lets a request go out only when a replica has its intent", async () => {
    expect(house.guard.watch.needsReplica).toBe(true);
    expect(await house.guard.watch.reachReplica(0)).toBe(true);
  });

  it("goes on with the new master when the old one dies, and loses nothing that a replica had", async () => {
    const nowMs = await redisTimeMs(house.store);
    const intent = { startByMs: nowMs + 60_000, slotMs: nowMs, baseline: "" };
    await house.journal.claim("before", "me");
    expect(await house.journal.beginSending(journalTask("before"), "me", intent)).toBe("permitted");
    process.kill(master.pid, "SIGKILL");
    await house.log.until(({ event }) => event === "redis.changed");
    await until(
      () => house.guard.reasons(),
      (reasons) => reasons.length === 0,
    );
    expect((await house.journal.claim("before", "somebody else")).state).toBe("sending");
    await house.work();
    await house.journal.claim("after", "me");
    const ask = () => house.journal.beginSending(journalTask("after"), "me", intent);
    expect(await until(ask, (answer) => answer !== "hold")).toMatch(/permitted|loss/);
  });
});
