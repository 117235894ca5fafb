import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PrivateRedis } from "../../../scripts/redis.mjs";
import { type Fixture, openFixture } from "../../support/redis-round-trip.ts";
import {
  clientOf,
  startProxy,
  startServer,
  type TcpProxy,
  until,
  untilReplicated,
} from "../../support/redis-servers.ts";

let master: PrivateRedis;
let replica: PrivateRedis;
/** One address for whichever is the master, as a managed Redis has. */
let front: TcpProxy;
let fixture: Fixture;

beforeAll(async () => {
  master = await startServer();
  replica = await startServer({ args: ["--replicaof", "127.0.0.1", `${master.port}`] });
  await untilReplicated(master.port);
  front = await startProxy(master.port);
  fixture = await openFixture({ url: `redis://127.0.0.1:${front.port}`, prefix: "{syncline}" });
});
afterAll(() => fixture.stop());

describe("a master that becomes a replica and keeps its connections", () => {
  it("is left for the new one: store, queue and worker go on", async () => {
    await fixture.work();
    await untilReplicated(master.port);
    await clientOf(replica.port).call("REPLICAOF", "NO", "ONE");
    await clientOf(master.port).call("REPLICAOF", "127.0.0.1", `${replica.port}`);
    front.turn(replica.port);
    await fixture.log.until(({ event }) => event === "redis.changed");
    await until(
      () => fixture.guard.reasons(),
      (reasons) => reasons.length === 0,
    );
    // The queue's connection learns of it by its first refusal; whoever adds tasks adds them again.
    await until(
      () => fixture.work().catch(() => ""),
      (id) => id !== "",
    );
    const [, newRunId] = /run_id:(\w+)/.exec(await clientOf(replica.port).info("server")) ?? [];
    expect(await clientOf(replica.port).hget("{syncline}:watch", "runId")).toBe(newRunId);
  });
});
