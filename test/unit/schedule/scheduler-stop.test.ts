import { expect, it } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import { Scheduler } from "../../../src/schedule/scheduler.ts";
import type { SlotLedgerPort } from "../../../src/schedule/scheduler-ports.ts";
import { testPolicy } from "../../support/policies.ts";

// It moves the watermark of no changed schedule.
it("a stopping scheduler ends the batches in work and begins no other", async () => {
  const recorded = new Set<string>();
  const confirmed = new Set<string>();
  const adopted: string[] = [];
  let nowMs = 0;
  const ledger: SlotLedgerPort = {
    nowMs: async () => nowMs,
    openWatermarks: async (policies) => {
      adopted.push(...policies.map(({ policy }) => policy));
      return new Map(policies.map(({ policy, schedule }) => [policy, { watermarkMs: 0, schedule }]));
    },
    record: async (steps) =>
      steps.map(({ policy, newWatermarkMs }) => {
        recorded.add(policy);
        return { recorded: true, watermarkMs: newWatermarkMs };
      }),
    confirmQueued: async (steps) => {
      for (const { policy } of steps) confirmed.add(policy);
    },
    unqueued: async () => [],
    drop: async () => {},
    tidy: async () => {},
  };
  const policies = Array.from({ length: 2_000 }, (_, index) => testPolicy({ name: `policy-${index}` }));
  let stopped: Promise<void> | undefined;
  const enqueue = async () => {
    stopped ??= scheduler.stop();
  };
  const scheduler: Scheduler = new Scheduler({ policies, ledger, enqueue, log: silentLog });
  await scheduler.runOnce();
  expect(adopted).toHaveLength(2_000);

  scheduler.adopt([testPolicy({ name: "new" })]);
  nowMs = 5_000;
  await scheduler.runOnce();
  await stopped;
  // Three batches of 200 are under way at once.
  expect(recorded.size).toBe(600);
  expect(confirmed).toEqual(recorded);
  expect(adopted).not.toContain("new");
});
