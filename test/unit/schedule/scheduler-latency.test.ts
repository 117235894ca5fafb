import { expect, it } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import { Scheduler } from "../../../src/schedule/scheduler.ts";
import { MemoryChains } from "../../support/memory-chains.ts";
import { testPolicy } from "../../support/policies.ts";
import { TestLog } from "../../support/test-log.ts";

it("waits on when a timer ends a millisecond before the slot", async () => {
  const due = Promise.withResolvers<void>();
  const ledger = new MemoryChains();
  // The time of Redis: the second and third reading are before and after the wait.
  const times = [4_500, 4_999, 4_999];
  ledger.nowMs = async () => times.shift() ?? 5_000;
  const rounds: number[] = [];
  const pauses = async (nowMs: number) => {
    rounds.push(nowMs);
    return [];
  };
  const enqueue = async () => due.resolve();
  const scheduler = new Scheduler({ policies: [testPolicy()], ledger, enqueue, pauses, log: silentLog });
  await scheduler.start();
  await due.promise;
  await scheduler.stop();
  expect(rounds).toEqual([4_500, 5_000]);
});

it("queues all slots that are due together before it logs the first", async () => {
  const [ledger, log] = [new MemoryChains(), new TestLog()];
  const policies = Array.from({ length: 900 }, (_, index) => testPolicy({ name: `policy-${index}` }));
  const loggedBefore: number[] = [];
  const enqueue = async () => void loggedBefore.push(log.named("slot.queued").length);
  const scheduler = new Scheduler({ policies, ledger, enqueue, log });
  await scheduler.runOnce();
  ledger.nowAtMs = 5_000;
  await scheduler.runOnce();
  expect(loggedBefore).toEqual([0, 0, 0, 0, 0]);
  expect(log.named("slot.queued")).toHaveLength(900);
});

it("counts the delay of a slot until its tasks are queued", async () => {
  const [ledger, log] = [new MemoryChains(), new TestLog()];
  const enqueue = async () => {
    ledger.nowAtMs = 45_000;
  };
  const scheduler = new Scheduler({ policies: [testPolicy()], ledger, enqueue, log });
  await scheduler.runOnce();
  ledger.nowAtMs = 5_000;
  await scheduler.runOnce();
  expect(log.named("slot.queued")).toMatchObject([{ delayMs: 40_000 }]);
});
