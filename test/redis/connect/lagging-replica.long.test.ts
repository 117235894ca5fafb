import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PrivateRedis } from "../../../scripts/redis.mjs";
import { isRedisOutage } from "../../../src/core/redis-outage.ts";
import { openStore, redisTimeMs } from "../../../src/store/redis.ts";
import { RedisWatch } from "../../../src/store/redis-watch.ts";
import type { Permission } from "../../../src/store/start-entry.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { journalTask } from "../../support/journal-task.ts";
import { type Fixture, openFixture } from "../../support/redis-round-trip.ts";
import { clientOf, startProxy, startServer, type TcpProxy, until } from "../../support/redis-servers.ts";

const prefix = "{syncline}";
let master: PrivateRedis;
let replica: PrivateRedis;
/** In front of the master for us, and between master and replica. */
let front: TcpProxy;
let link: TcpProxy;
let fixture: Fixture;

async function ask(journal: StartJournal, task: string): Promise<Permission> {
  const nowMs = await redisTimeMs(fixture.store);
  await journal.claim(task, "me");
  return journal.beginSending(journalTask(task), "me", { startByMs: nowMs + 3_600_000, slotMs: nowMs, baseline: "" });
}

const inStep = () =>
  until(
    () => clientOf(replica.port).info("replication"),
    (text) => text.includes("master_link_status:up"),
  );

/** After a wait in vain nothing is asked for two seconds. */
const mayAskAgain = () =>
  until(
    () => fixture.guard.watch.mayAsk(),
    (may) => may,
  );

beforeAll(async () => {
  master = await startServer();
  front = await startProxy(master.port);
  link = await startProxy(master.port);
  replica = await startServer({ args: ["--replicaof", "127.0.0.1", `${link.port}`] });
  await inStep();
  fixture = await openFixture({ url: `redis://127.0.0.1:${front.port}`, prefix });
  await until(
    () => fixture.guard.watch.needsReplica,
    (needs) => needs,
  );
});
afterAll(() => fixture.stop());

describe("a replica that lags behind unnoticed", () => {
  it("keeps starts back until it has caught up; the task is not lost", async () => {
    link.swallow();
    expect(await ask(fixture.journal, "waiting")).toBe("undecided");
    expect((await fixture.journal.entry("waiting"))?.state).toBe("claimed");
    expect(fixture.log.named("redis.not-replicated")).toHaveLength(1);
    link.heal();
    await inStep();
    expect(
      await until(
        () => ask(fixture.journal, "waiting"),
        (answer) => answer !== "undecided",
      ),
    ).toBe("permitted");
  });

  it("is waited for by all starts together; nothing else in the process waits", async () => {
    await mayAskAgain();
    link.swallow();
    const tasks = Array.from({ length: 20 }, (_, index) => `crowd-${index}`);
    const answers = await Promise.all(tasks.map((task) => ask(fixture.journal, task).catch(String)));
    expect(new Set(answers)).toEqual(new Set(["undecided"]));
    for (const task of tasks) expect((await fixture.journal.entry(task))?.state).toBe("claimed");
    await expect.poll(() => fixture.guard.reasons()).toEqual([]);
    link.heal();
    await inStep();
  });

  it("does not count where Redis lacks the intent, as behind another master", async () => {
    await mayAskAgain();
    const known = Number(await fixture.store.redis.hget(`${prefix}:watch`, "intents"));
    await expect.poll(() => fixture.guard.watch.reachReplicas(known)).toBe(true);
    expect(await fixture.guard.watch.reachReplicas(known + 1)).toBe(false);
  });

  it("keeps a start back also when the connection breaks while it is waited for", async () => {
    // It is connected already: the start waits for no more than a second.
    const admin = clientOf(master.port);
    await admin.ping();
    link.swallow();
    // A slow machine may miss that second.
    const cutOff = async () => {
      await mayAskAgain();
      let isAnswered = false;
      const asked = ask(fixture.journal, "cut-off")
        .catch((error: unknown) => error)
        .finally(() => {
          isAnswered = true;
        });
      await until(
        async () => isAnswered || (await admin.hget(`${prefix}:start:cut-off`, "state")) === "sending",
        (isUnderWay) => isUnderWay,
      );
      front.heal();
      return asked;
    };
    expect(isRedisOutage(await until(cutOff, isRedisOutage, 60_000))).toBe(true);
    expect((await fixture.journal.entry("cut-off"))?.state).toBe("claimed");
    link.heal();
    await inStep();
  });

  it("and becomes the master has forgotten starts; they do not happen again", async () => {
    // One that does not wait for replicas, as with a Redis that hides them.
    const store = await openStore({ url: `redis://127.0.0.1:${front.port}`, prefix });
    try {
      const watch = new RedisWatch(store);
      watch.mayStart = true;
      const journal = new StartJournal(store, watch);
      await watch.check();
      await until(
        () => clientOf(replica.port).hget(`${prefix}:watch`, "stamp"),
        (stamp) => stamp !== null,
      );
      link.swallow();
      const nowMs = await redisTimeMs(store);
      const intent = { startByMs: nowMs + 3_600_000, slotMs: nowMs, baseline: "" };
      await journal.claim("sent", "me");
      expect(await journal.beginSending(journalTask("sent"), "me", intent)).toBe("permitted");
      process.kill(master.pid, "SIGKILL");
      await clientOf(replica.port).call("REPLICAOF", "NO", "ONE");
      front.heal(replica.port);

      // Delivered again, to a worker that knows nothing of it.
      const again = async () => {
        await fixture.journal.claim("sent", "me");
        return fixture.journal.beginSending(journalTask("sent"), "me", intent);
      };
      const beating = async () => {
        await watch.check().catch(() => {});
        return again().catch(() => "undecided");
      };
      expect(await until(beating, (answer) => answer !== "undecided")).toBe("loss");
      expect(await store.redis.zcard(`${prefix}:losses`)).toBeGreaterThan(0);
    } finally {
      await store.close();
    }
  });
});
