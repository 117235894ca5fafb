import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import type { PrivateRedis } from "../../../scripts/redis.mjs";
import { RedisGuard } from "../../../src/app/redis-guard.ts";
import { openStore, redisTimeMs, type Store } from "../../../src/store/redis.ts";
import type { Permission } from "../../../src/store/start-entry.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { journalTask } from "../../support/journal-task.ts";
import { clientOf, startProxy, startServer, until, untilReplicated } from "../../support/redis-servers.ts";
import { restoreClock, shiftClock } from "../../support/shifted-clock.ts";
import { TestLog } from "../../support/test-log.ts";

const prefix = "{syncline}";
const closing: (() => Promise<void>)[] = [];

/**
 * One process with its guard; starts wait for a replica that is gone for so long. Waits until it
 * knows of the replica.
 */
async function newProcess(port: number, replicasGoneMs: number) {
  const store = await openStore({ url: `redis://127.0.0.1:${port}`, prefix });
  const guard = new RedisGuard({ store, log: new TestLog(), checkEveryMs: 100, replicasGoneMs });
  await guard.start();
  closing.push(async () => {
    await guard.stop();
    await store.close();
  });
  return { store, guard, journal: new StartJournal(store, guard.watch) };
}

const knowsReplica = ({ guard }: { guard: RedisGuard }) =>
  until(
    () => guard.watch.needsReplica,
    (needs) => needs,
  );

async function ask({ store, journal }: { store: Store; journal: StartJournal }, task: string): Promise<Permission> {
  const nowMs = await redisTimeMs(store);
  await journal.claim(task, "me");
  return journal.beginSending(journalTask(task), "me", { startByMs: nowMs + 3_600_000, slotMs: nowMs, baseline: "" });
}

async function startPair(): Promise<{ master: PrivateRedis; replica: PrivateRedis }> {
  const master = await startServer();
  const replica = await startServer({ args: ["--replicaof", "127.0.0.1", `${master.port}`] });
  await untilReplicated(master.port);
  return { master, replica };
}

afterAll(async () => {
  for (const close of closing) await close();
});

describe("a replica that was made the master while the old one lives on", () => {
  it("alone permits starts; a client of the old master waits for a replica", async () => {
    const { master, replica } = await startPair();
    const left = await newProcess(master.port, 600_000);
    const impatient = await newProcess(master.port, 1_000);
    await knowsReplica(left);
    await knowsReplica(impatient);
    expect(
      await until(
        () => ask(left, "before"),
        (answer) => answer !== "undecided",
      ),
    ).toBe("permitted");
    await clientOf(replica.port).call("REPLICAOF", "NO", "ONE");
    const moved = await newProcess(replica.port, 600_000);
    expect(
      await until(
        () => ask(moved, "on-both"),
        (answer) => answer !== "undecided" && answer !== "loss",
      ),
    ).toBe("permitted");

    await until(
      () => left.guard.facts?.replicas,
      (count) => count === 0,
    );
    await until(
      () => left.guard.watch.mayAsk(),
      (may) => may,
    );
    expect(await ask(left, "on-both")).toBe("undecided");
    expect((await left.journal.entry("on-both"))?.state).toBe("claimed");
    // A replica that was taken away for ever must not keep everything back for ever.
    expect(
      await until(
        () => ask(impatient, "alone"),
        (answer) => answer !== "undecided",
      ),
    ).toBe("permitted");
  });
});

describe("a master that has lost its replicas before a process begins with it", () => {
  it("permits no start to that process either, for as long as to the others", async () => {
    const { master, replica } = await startPair();
    const early = await newProcess(master.port, 600_000);
    await knowsReplica(early);
    await clientOf(replica.port).call("REPLICAOF", "NO", "ONE");
    await until(
      () => early.guard.facts?.replicas,
      (count) => count === 0,
    );
    const late = await newProcess(master.port, 600_000);
    expect(late.guard.facts?.replicas).toBe(0);
    expect(late.guard.watch.needsReplica).toBe(true);
    expect(await ask(late, "late")).toBe("undecided");
    expect((await late.journal.entry("late"))?.state).toBe("claimed");
    const impatient = await newProcess(master.port, 1_000);
    expect(
      await until(
        () => ask(impatient, "late"),
        (answer) => answer !== "undecided",
      ),
    ).toBe("permitted");
    // The one that took its place never had any.
    expect((await newProcess(replica.port, 600_000)).guard.watch.needsReplica).toBe(false);
    // They went so long ago that nobody waits for them any more.
    await early.store.redis.hset(early.store.key("watch"), "replicasAt", "1");
    expect((await newProcess(master.port, 600_000)).guard.watch.needsReplica).toBe(false);
  });
});

describe("a replica that was made the master because the old one died", () => {
  it("has no replica to wait for: every process goes on with it at once", async () => {
    const { master, replica } = await startPair();
    const front = await startProxy(master.port);
    const processes = [await newProcess(front.port, 600_000), await newProcess(front.port, 600_000)];
    for (const one of processes) await knowsReplica(one);
    process.kill(master.pid, "SIGKILL");
    await clientOf(replica.port).call("REPLICAOF", "NO", "ONE");
    front.heal(replica.port);
    for (const [index, one] of processes.entries()) {
      const answer = await until(
        () => ask(one, `after-${index}`).catch(() => "undecided"),
        (permission) => permission !== "undecided" && permission !== "loss",
      );
      expect(answer).toBe("permitted");
    }
  });
});

describe("a Redis that is another one and does not say yet what it is", () => {
  it("is asked again at each tick, and needs a replica meanwhile as the one before did", async () => {
    const { master } = await startPair();
    const admin = clientOf(master.port);
    await until(
      () => admin.info("replication"),
      (text) => text.includes("state=online"),
    );
    const store = await openStore({ url: `redis://127.0.0.1:${master.port}`, prefix });
    let [isMute, asked] = [false, 0];
    const key = (...parts: readonly string[]) => {
      if (isMute && parts[0] === "clock") {
        asked += 1;
        throw new Error("no answer");
      }
      return store.key(...parts);
    };
    const guard = new RedisGuard({ store: { ...store, key }, log: new TestLog(), checkEveryMs: 600_000 });
    await guard.start();
    closing.push(async () => {
      await guard.stop();
      await store.close();
    });
    expect(guard.watch.needsReplica).toBe(true);
    isMute = true;
    await admin.flushall();
    await until(
      () => asked,
      (times) => times >= 2,
    );
    expect(guard.watch.needsReplica).toBe(true);
    isMute = false;
    await clientOf(master.port).ping();
    await until(
      () => guard.reasons(),
      (reasons) => reasons.length === 0,
    );
    expect(guard.watch.needsReplica).toBe(true);
  });
});

describe("a replica that is removed for ever", () => {
  it("is looked for each second only as long as starts wait for it", async () => {
    const { master, replica } = await startPair();
    const store = await openStore({ url: `redis://127.0.0.1:${master.port}`, prefix });
    const asked = { clock: 0, watch: 0 };
    const key = (...parts: readonly string[]) => {
      const [part] = parts;
      if (part === "clock" || part === "watch") asked[part] += 1;
      return store.key(...parts);
    };
    const guard = new RedisGuard({ store: { ...store, key }, log: new TestLog(), replicasGoneMs: 0 });
    closing.push(async () => {
      await guard.stop();
      await store.close();
    });
    onTestFinished(restoreClock);
    await guard.start();
    expect(guard.facts?.replicas).toBe(1);
    await replica.stop();
    await until(
      () => clientOf(master.port).info("replication"),
      (info) => info.includes("connected_slaves:0"),
    );
    // A clock that was set makes the next check due.
    shiftClock(60_000);
    await until(
      () => guard.facts?.replicas,
      (replicas) => replicas === 0,
    );
    const [checks, ticks] = [asked.clock, asked.watch];
    await until(
      () => asked.watch,
      (more) => more >= ticks + 3,
    );
    expect(asked.clock - checks).toBe(0);
  });
});
