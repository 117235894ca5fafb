import { describe, expect, it } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import type { Loss } from "../../../src/model/slot-record.ts";
import type { Task } from "../../../src/model/task.ts";
import { Scheduler, type SchedulerOptions } from "../../../src/schedule/scheduler.ts";
import type { SlotLedgerPort } from "../../../src/schedule/scheduler-ports.ts";
import { SlotLedger } from "../../../src/store/slot-ledger.ts";
import { testPolicy } from "../../support/policies.ts";
import { redisForTest, storeForTest } from "../../support/redis.ts";
import { TestLog } from "../../support/test-log.ts";

const target = redisForTest();
const start = Date.parse("2026-11-21T00:00:00Z");

const store = await storeForTest(target);
const ledger = new SlotLedger(store);

// The real ledger, with a clock that the test moves.
function replica(
  policy: Policy,
  clock: { nowMs: number },
  enqueue: (tasks: readonly Task[]) => Promise<void>,
  {
    pauses = async () => [],
    redisChanges,
    lossesSince = async () => [],
    log = silentLog,
  }: Partial<Pick<SchedulerOptions, "pauses" | "redisChanges" | "lossesSince" | "log">> = {},
) {
  const onTestTime: SlotLedgerPort = {
    nowMs: async () => clock.nowMs,
    openWatermarks: (policies, nowMs) => ledger.openWatermarks(policies, nowMs),
    record: (steps) => ledger.record(steps),
    confirmQueued: (steps) => ledger.confirmQueued(steps),
    unqueued: (olderThanMs) => ledger.unqueued(olderThanMs),
    drop: (policies) => ledger.drop(policies),
    tidy: (known) => ledger.tidy(known),
  };
  const policies = [
    policy,
    testPolicy({ name: `${policy.name}-too`, schedule: { kind: "every", everyMs: 600_000, spreadMs: 0 } }),
  ];
  const some = redisChanges === undefined ? { policies: [policy] } : { policies, redisChanges };
  return new Scheduler({ ...some, ledger: onTestTime, enqueue, pauses, lossesSince, log });
}

describe("the scheduler", () => {
  it("queues each slot once when five replicas look at the same time", async () => {
    const clock = { nowMs: start };
    const queued: string[] = [];
    const policy = testPolicy({ name: "raced" });
    const replicas = Array.from({ length: 5 }, () =>
      replica(policy, clock, async (tasks) => {
        queued.push(...tasks.map(({ id }) => id));
      }),
    );
    for (let second = 0; second <= 60; second += 1) {
      clock.nowMs = start + second * 1_000;
      await Promise.all(replicas.map((one) => one.runOnce()));
    }
    expect(queued).toHaveLength(12);
    expect(new Set(queued).size).toBe(12);
    expect((await ledger.slots("raced", 100)).map(({ slotMs }) => (slotMs - start) / 5_000).toReversed()).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12,
    ]);
  });

  it("makes up for a silence with one task that names the slots it stands for", async () => {
    const clock = { nowMs: start };
    const tasks: Task[] = [];
    const enqueue = async (more: readonly Task[]) => {
      tasks.push(...more);
    };
    const policy = testPolicy({
      name: "silent",
      schedule: { kind: "every", everyMs: 300_000, spreadMs: 0 },
      catchUpWindowMs: 300_000,
    });
    await replica(policy, clock, enqueue).runOnce();
    clock.nowMs = start + 36 * 300_000 + 4_000;
    await replica(policy, clock, enqueue).runOnce();
    expect(tasks).toHaveLength(1);
    expect(tasks[0]).toMatchObject({ target: "42", slotMs: start + 36 * 300_000 });
    expect(tasks[0]?.covers).toHaveLength(35);
    expect(await ledger.slots("silent", 100)).toHaveLength(36);
  });

  it("starts each due slot once, also after a downtime, and none from before it began", async () => {
    const clock = { nowMs: start };
    const queued: string[] = [];
    const enqueue = async (tasks: readonly Task[]) => {
      queued.push(...tasks.map(({ id }) => id));
    };
    const onceAt = (seconds: number) => {
      const at = new Date(start + seconds * 1_000).toISOString().slice(0, 19);
      const dst = { gap: "next", overlap: "first" } as const;
      return { kind: "once", at, timezone: "UTC", dst, spreadMs: 0 } as const;
    };
    const action = { kind: "activate", syncJobs: [42] } as const;
    const late = testPolicy({ name: "once", action, schedule: onceAt(60), catchUpWindowMs: 3_600_000 });
    const over = testPolicy({ name: "over", action, schedule: onceAt(-60), catchUpWindowMs: 3_600_000 });
    for (const policy of [late, over]) await replica(policy, clock, enqueue).runOnce();
    clock.nowMs = start + 600_000;
    for (const policy of [late, over, late, over]) await replica(policy, clock, enqueue).runOnce();
    clock.nowMs = start + 400 * 86_400_000;
    for (const policy of [late, over]) await replica(policy, clock, enqueue).runOnce();
    expect(queued).toEqual([`once__activate__42__${start / 1_000 + 60}`]);
    expect(await ledger.slots("once", 100)).toMatchObject([{ state: "started" }]);
    expect(await ledger.slots("over", 100)).toEqual([]);
  });

  it("starts the newest 100 slots of a backlog for `all`, planned in batches", async () => {
    const clock = { nowMs: start };
    const queued: number[] = [];
    const enqueue = async (tasks: readonly Task[]) => {
      queued.push(...tasks.map(({ slotMs }) => (slotMs - start) / 1_000));
    };
    const schedule = { kind: "every", everyMs: 1_000, spreadMs: 0 } as const;
    const policy = testPolicy({ name: "flood", schedule, catchUp: "all", catchUpWindowMs: 3_600_000 });
    await replica(policy, clock, enqueue).runOnce();
    clock.nowMs = start + 1_500_000;
    const late = replica(policy, clock, enqueue);
    for (const _ of [1, 2, 3]) await late.runOnce();
    expect(queued).toEqual(Array.from({ length: 100 }, (_, index) => 1_401 + index));
    const { records } = await ledger.holdings("flood");
    expect(records.filter(({ detail }) => detail === "catch-up-cap")).toHaveLength(900);
  });

  it("starts one slot of a backlog for `latest`, however many batches it takes", async () => {
    const clock = { nowMs: start };
    const queued: number[] = [];
    const enqueue = async (tasks: readonly Task[]) => {
      queued.push(...tasks.map(({ slotMs }) => (slotMs - start) / 1_000));
    };
    const schedule = { kind: "every", everyMs: 1_000, spreadMs: 0 } as const;
    const policy = testPolicy({ name: "tide", schedule, catchUpWindowMs: 3_600_000 });
    await replica(policy, clock, enqueue).runOnce();
    clock.nowMs = start + 1_500_000;
    const late = replica(policy, clock, enqueue);
    for (const _ of [1, 2, 3]) await late.runOnce();
    expect(queued).toEqual([1_500]);
    const { records } = await ledger.holdings("tide");
    const others = records.filter(({ state }) => state !== "started").map(({ state, detail }) => `${state} ${detail}`);
    expect(new Set(others)).toEqual(new Set([`coalesced ${new Date(clock.nowMs).toISOString()}`]));
  });

  it("queues what a dead scheduler had recorded but not queued", async () => {
    const clock = { nowMs: start };
    const policy = testPolicy({ name: "orphaned" });
    const dying = replica(policy, clock, () => Promise.reject(new Error("Connection is closed.")));
    await dying.runOnce();
    clock.nowMs = start + 5_000;
    await expect(dying.runOnce()).rejects.toThrow("Connection is closed.");
    const repaired: string[] = [];
    const heir = replica(policy, clock, async (tasks) => {
      repaired.push(...tasks.map(({ id }) => id));
    });
    clock.nowMs = start + 20_000;
    await heir.runOnce();
    expect(repaired).toContain(`orphaned__run__42__${(start + 5_000) / 1_000}`);
    expect(new Set(repaired).size).toBe(repaired.length);
  });

  it("says of no slot that it is queued while its tasks are not", async () => {
    const clock = { nowMs: start };
    const log = new TestLog();
    let isBroken = true;
    const enqueue = async () => {
      if (isBroken) throw new Error("this queue is broken");
    };
    const one = replica(testPolicy({ name: "unqueued" }), clock, enqueue, { log });
    await one.runOnce();
    clock.nowMs = start + 5_000;
    await one.runOnce();
    expect(log.named("bug.caught")).not.toEqual([]);
    expect(log.named("slot.queued")).toEqual([]);
    isBroken = false;
    clock.nowMs = start + 15_000;
    await one.runOnce();
    const repaired = log.named("slot.repaired").filter(({ policy }) => policy === "unqueued");
    expect(repaired).toMatchObject([{ tasks: 1 }]);
  });

  it("does not call a late slot repaired that another replica is about to queue", async () => {
    const clock = { nowMs: start };
    const log = new TestLog();
    const policy = testPolicy({ name: "in-hand", schedule: { kind: "every", everyMs: 60_000, spreadMs: 0 } });
    const other = replica(policy, clock, async () => {}, { log });
    const one = replica(policy, clock, () => other.runOnce());
    await one.runOnce();
    clock.nowMs = start + 75_000;
    await one.runOnce();
    expect(await ledger.slots("in-hand", 100)).toHaveLength(1);
    expect(log.named("slot.repaired")).toEqual([]);
  });

  it("repeats no slot when the clock goes back, and goes on when it has caught up", async () => {
    const clock = { nowMs: start };
    const queued: number[] = [];
    const one = replica(testPolicy({ name: "stepped" }), clock, async (tasks) => {
      queued.push(...tasks.map(({ slotMs }) => (slotMs - start) / 1_000));
    });
    for (const second of [0, 5, 10, 2, 5, 9, 10, 15]) {
      clock.nowMs = start + second * 1_000;
      await one.runOnce();
    }
    expect(queued).toEqual([5, 10, 15]);
  });

  it("records what a pause skips, never catches it up, and asks for pauses once a look", async () => {
    const clock = { nowMs: start };
    const queued: number[] = [];
    let reads = 0;
    const subject = { scope: "service", name: "main" } as const;
    const until = { sinceMs: start + 6_000, untilMs: start + 20_000, endedBy: null };
    const one = replica(
      testPolicy({ name: "paused" }),
      clock,
      async (tasks) => {
        queued.push(...tasks.map(({ slotMs }) => (slotMs - start) / 1_000));
      },
      {
        pauses: async () => {
          reads += 1;
          return [{ v: 1, ...subject, note: "release", actor: "ada@desk", ...until }];
        },
      },
    );
    for (const second of [0, 5, 10, 23]) {
      clock.nowMs = start + second * 1_000;
      await one.runOnce();
    }
    expect(queued).toEqual([5, 20]);
    expect(reads).toBe(4);
    const records = (await ledger.holdings("paused")).records;
    expect(records.map(({ state, detail, note }) => [state, detail, note])).toEqual([
      ["started", "", undefined],
      ["skipped", "paused", "release (ada@desk)"],
      ["skipped", "paused", "release (ada@desk)"],
      ["started", "", undefined],
    ]);
    expect(records.at(-1)).toMatchObject({ kind: "run", targets: ["42"] });
  });

  it("restarts from its last tick, without a flood, when Redis has lost everything", async () => {
    const clock = { nowMs: start };
    const queued: number[] = [];
    const one = replica(testPolicy({ name: "flushed" }), clock, async (tasks) => {
      queued.push(...tasks.map(({ slotMs }) => (slotMs - start) / 1_000));
    });
    await one.runOnce();
    await store.redis.del(store.key("watermarks"));
    for (const second of [5, 6, 10, 15]) {
      clock.nowMs = start + second * 1_000;
      await one.runOnce();
    }
    expect(queued).toEqual([5, 10, 15]);
  });

  it("leaves no slot of a backlog out when Redis has lost everything meanwhile", async () => {
    const clock = { nowMs: start };
    const schedule = { kind: "every", everyMs: 1_000, spreadMs: 0 } as const;
    const one = replica(testPolicy({ name: "halfway", schedule, catchUp: "none" }), clock, async () => {});
    await one.runOnce();
    clock.nowMs = start + 1_500_000;
    await one.runOnce();
    await store.redis.del(store.key("watermarks"), store.key("schedules"), store.key("kept-since"));
    for (const second of [1_501, 1_502]) {
      clock.nowMs = start + second * 1_000;
      await one.runOnce();
    }
    const { records } = await ledger.holdings("halfway");
    expect(records.map(({ slotMs }) => (slotMs - start) / 1_000)).toEqual(
      Array.from({ length: 1_000 }, (_, index) => 503 + index),
    );
  });

  it.each([
    ["is told of it", true],
    ["finds out when the first of them is due", false],
  ])("loses no slot due long after Redis has lost everything, when it %s", async (_, isTold) => {
    const clock = { nowMs: start };
    const queued: string[] = [];
    let changes = 0;
    const policy = testPolicy({
      name: `emptied-${isTold}`,
      schedule: { kind: "every", everyMs: 300_000, spreadMs: 0 },
    });
    const enqueue = async (tasks: readonly Task[]) => {
      queued.push(...tasks.map(({ policy: name, slotMs }) => `${name} ${(slotMs - start) / 1_000}`));
    };
    const one = replica(policy, clock, enqueue, { redisChanges: () => changes });
    await one.runOnce();
    await store.redis.del(store.key("watermarks"), store.key("schedules"), store.key("kept-since"));
    if (isTold) changes += 1;
    for (const second of [1, 299, 300, 301, 600]) {
      clock.nowMs = start + second * 1_000;
      await one.runOnce();
    }
    expect(queued).toEqual([`${policy.name} 300`, `${policy.name} 600`, `${policy.name}-too 600`]);
  });

  it("says of no slot that it did not start before what Redis lost is known", async () => {
    const clock = { nowMs: start };
    const policy = testPolicy({ name: "lost", catchUp: "none" });
    let losses: Loss[] | undefined;
    const one = replica(policy, clock, async () => {}, { lossesSince: async () => losses });
    await one.runOnce();
    clock.nowMs = start + 50_000;
    await one.runOnce();
    expect(await ledger.slots("lost", 100)).toEqual([]);
    let asks = 0;
    const heir = replica(policy, clock, async () => {}, {
      lossesSince: async () => {
        asks += 1;
        return losses;
      },
    });
    await heir.runOnce();
    expect(asks).toBe(1);
    losses = [{ fromMs: start + 4_000, untilMs: start + 5_000 }];
    await one.runOnce();
    const states = (await ledger.slots("lost", 100)).map(({ slotMs, state }) => `${(slotMs - start) / 1_000} ${state}`);
    expect(states.toReversed().slice(0, 3)).toEqual(["5 started", "10 missed", "15 missed"]);
  });
});
