import { expect, it } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import { Scheduler } from "../../../src/schedule/scheduler.ts";
import type { SlotLedgerPort } from "../../../src/schedule/scheduler-ports.ts";
import { testPolicy } from "../../support/policies.ts";

it("waits on when a timer ends a millisecond before the slot", async () => {
  const due = Promise.withResolvers<void>();
  // The time of Redis: the second and third reading are before and after the wait.
  const times = [4_500, 4_999, 4_999];
  const ledger: SlotLedgerPort = {
    nowMs: async () => times.shift() ?? 5_000,
    openWatermarks: async (policies) =>
      new Map(policies.map(({ policy, schedule }) => [policy, { watermarkMs: 0, schedule }])),
    record: async (steps) => {
      due.resolve();
      return steps.map(({ newWatermarkMs }) => ({ recorded: true, watermarkMs: newWatermarkMs }));
    },
    confirmQueued: async () => {},
    unqueued: async () => [],
    drop: async () => {},
    tidy: async () => {},
  };
  const rounds: number[] = [];
  const scheduler = new Scheduler({
    policies: [testPolicy()],
    ledger,
    enqueue: async () => {},
    pauses: async (nowMs) => {
      rounds.push(nowMs);
      return [];
    },
    log: silentLog,
  });
  await scheduler.start();
  await due.promise;
  await scheduler.stop();
  expect(rounds).toEqual([4_500, 5_000]);
});
