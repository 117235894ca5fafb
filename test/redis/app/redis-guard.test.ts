import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { RedisGuard } from "../../../src/app/redis-guard.ts";
import { Scheduler } from "../../../src/schedule/scheduler.ts";
import { openStore, redisTimeMs, type Store } from "../../../src/store/redis.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { StartJournal } from "../../../src/store/start-journal.ts";
import { journalTask } from "../../support/journal-task.ts";
import { testPolicy } from "../../support/policies.ts";
import { clientOf, startServer, until } from "../../support/redis-servers.ts";
import { restoreClock, shiftClock } from "../../support/shifted-clock.ts";
import { TestLog } from "../../support/test-log.ts";

const server = await startServer();
const admin = clientOf(server.port);
let store: Store;
let log: TestLog;
let guard: RedisGuard;

beforeEach(async () => {
  await admin.flushall();
  await admin.config("SET", "maxmemory-policy", "noeviction");
  await admin.config("SET", "maxmemory", "0");
  store = await openStore({ url: server.url, prefix: "{guard}" });
  log = new TestLog();
  guard = new RedisGuard({ store, log, checkEveryMs: 100 });
});
afterEach(async () => {
  await guard.stop();
  await store.close();
});

describe("a Redis that may throw away what it holds", () => {
  it("logs one line, denies starts and slots, and recovers by itself", async () => {
    await admin.config("SET", "maxmemory-policy", "allkeys-lru");
    await guard.start();
    expect(guard.isSafe()).toBe(false);
    expect(guard.reasons()[0]).toContain("maxmemory-policy is allkeys-lru");

    const journal = new StartJournal(store, guard.watch);
    const nowMs = await redisTimeMs(store);
    await journal.claim("task", "me");
    const intent = { startByMs: nowMs + 60_000, slotMs: nowMs, baseline: "" };
    expect(await journal.beginSending(journalTask("task"), "me", intent)).toBe("undecided");

    const ledger = new SlotLedger(store);
    const mayPlan = () => guard.isSafe();
    const policies = [testPolicy()];
    const scheduler = new Scheduler({ policies, ledger, enqueue: async () => {}, mayPlan, log });
    await scheduler.runOnce();
    expect(await ledger.policies()).toEqual([]);

    await admin.config("SET", "maxmemory-policy", "noeviction");
    await log.until(({ event }) => event === "redis.safe");
    await expect.poll(() => guard.reasons()).toEqual([]);
    expect(await journal.beginSending(journalTask("task"), "me", intent)).toBe("permitted");
    await scheduler.runOnce();
    expect(await ledger.policies()).toEqual(["nightly"]);
    expect(log.named("redis.unsafe")).toHaveLength(1);
  });

  it("counts as unsafe while its settings cannot be read; CONFIG is not needed", async () => {
    const rights = ["on", ">secret", "resetchannels", "~*", "+@all", "-config", "-info"];
    await admin.call("ACL", "SETUSER", "blind", ...rights);
    const url = server.url.replace("//", "//blind:secret@");
    const blindStore = await openStore({ url, prefix: "{guard}" });
    const blind = new RedisGuard({ store: blindStore, log, checkEveryMs: 100 });
    try {
      await blind.start();
      expect(blind.isSafe()).toBe(false);
      expect(blind.reasons()[0]).toContain("allow +info");
      await admin.call("ACL", "SETUSER", "blind", "+info");
      await log.until(({ event }) => event === "redis.safe");
      await expect.poll(() => blind.reasons()).toEqual([]);
    } finally {
      await blind.stop();
      await blindStore.close();
    }
  });

  it("is noticed also when it becomes so later", async () => {
    await guard.start();
    expect(guard.isSafe()).toBe(true);
    await admin.config("SET", "maxmemory-policy", "volatile-lru");
    await log.until(({ event }) => event === "redis.unsafe");
    expect(guard.isSafe()).toBe(false);
  });
});

describe("a Redis that is as it should be", () => {
  it("makes the process ready, with advice about the append-only file", async () => {
    await guard.start();
    expect(guard.reasons()).toEqual([]);
    expect(log.named("redis.warning")[0]?.["advice"]).toContain("appendonly is off");
    expect(log.named("redis.unsafe")).toEqual([]);
  });

  // It would count as one that died.
  it("keeps no tick of a process that was stopped during its first check", async () => {
    const starting = guard.start();
    await guard.stop();
    await starting;
    await until(
      () => admin.zcard("{guard}:processes"),
      (count) => count === 0,
    );
  });

  it("is reported to a writer when it is another Redis, not when it was emptied", async () => {
    const told: number[] = [];
    guard.whenAnotherRedis(async (lastSeenMs) => void told.push(lastSeenMs));
    await guard.start();
    await admin.flushall();
    await log.until(({ event, kind }) => event === "redis.loss-detected" && kind === "flushed");
    expect(told).toEqual([]);
    await admin.hset("{guard}:watch", "runId", "another");
    await log.until(({ event }) => event === "redis.changed");
    expect(told).toEqual([expect.any(Number)]);
  });

  it("tells of another Redis also when that answers only after four seconds", async () => {
    const told = vi.fn(async () => {});
    const rare = new RedisGuard({ store, log });
    onTestFinished(() => rare.stop());
    rare.whenAnotherRedis(told);
    await rare.start();
    await admin.multi().hset("{guard}:watch", "runId", "another").client("PAUSE", 4_200).exec();
    // Not its line in the log: a command that Redis answers too late here has told it there.
    await until(
      () => told.mock.calls.length,
      (calls) => calls > 0,
    );
    expect([rare.changes, told.mock.calls.length]).toEqual([1, 1]);
  });

  it("that stops answering makes it unready, and ready again", async () => {
    await guard.start();
    process.kill(server.pid, "SIGSTOP");
    try {
      await until(
        () => guard.reasons(),
        ([reason]) => reason?.includes("has not done what it should") === true,
      );
    } finally {
      process.kill(server.pid, "SIGCONT");
    }
    await until(
      () => guard.reasons(),
      (reasons) => reasons.length === 0,
    );
  });

  it("has its clock compared anew as soon as that of the machine is set", async () => {
    const rare = new RedisGuard({ store, log });
    onTestFinished(() => rare.stop());
    onTestFinished(restoreClock);
    await rare.start();
    const aheadBeforeMs = rare.clockAheadMs;
    shiftClock(-60_000);
    const aheadMs = await until(
      () => rare.clockAheadMs,
      (ms) => ms !== aheadBeforeMs,
    );
    expect(aheadMs - aheadBeforeMs).toBeLessThan(-50_000);
  });

  it("but is full makes it unready, and ready again when there is room", async () => {
    await guard.start();
    await admin.config("SET", "maxmemory", "1");
    await until(
      () => guard.reasons(),
      ([reason]) => reason?.includes("OOM") === true,
    );
    await admin.config("SET", "maxmemory", "0");
    await until(
      () => guard.reasons(),
      (reasons) => reasons.length === 0,
    );
  });
});
