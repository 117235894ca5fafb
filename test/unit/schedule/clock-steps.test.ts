import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { silentLog } from "../../../src/core/event-log.ts";
import type { SlotRecord } from "../../../src/model/slot-record.ts";
import { Scheduler } from "../../../src/schedule/scheduler.ts";
import type { SlotLedgerPort } from "../../../src/schedule/scheduler-ports.ts";
import { testPolicy } from "../../support/policies.ts";

const second = 1_000;
const hour = 3_600 * second;
const day = 24 * hour;
const start = Date.parse("2026-11-21T00:00:00Z");

// The ledger's rules in memory, on a clock that the test sets: compare-and-set on the mark, one
// record a slot.
class LedgerInMemory implements SlotLedgerPort {
  clockMs = start;
  readonly records: SlotRecord[] = [];
  readonly queued: string[] = [];
  #mark: number | undefined;

  nowMs = async () => this.clockMs;
  openWatermarks: SlotLedgerPort["openWatermarks"] = async (policies, nowMs) => {
    this.#mark ??= nowMs;
    return new Map(policies.map(({ policy, schedule }) => [policy, { watermarkMs: this.#mark ?? nowMs, schedule }]));
  };
  record: SlotLedgerPort["record"] = async (steps) =>
    steps.map(({ expectedWatermarkMs, newWatermarkMs, records }) => {
      if (expectedWatermarkMs !== this.#mark) return { recorded: false, watermarkMs: this.#mark };
      this.#mark = newWatermarkMs;
      this.records.push(...records);
      return { recorded: true, watermarkMs: newWatermarkMs };
    });
  confirmQueued = async () => {};
  unqueued = async () => [];
  drop = async () => {};
  tidy = async () => {};
}

const step = fc.oneof(
  fc.constantFrom(...[second, 60 * second, hour, day, 365 * day].flatMap((by) => [by, -by])),
  // Between steps the time just goes on.
  fc.integer({ min: 1, max: 40 }).map((seconds) => seconds * second),
);

describe("a clock that steps, as all replicas see it", () => {
  it("repeats no slot and loses none beyond catch-up, for steps up to a year", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 1, maxLength: 25 }),
        fc.constantFrom("latest" as const, "none" as const, "all" as const),
        fc.constantFrom(2 * hour, 7 * hour),
        async (steps, catchUp, everyMs) => {
          const policy = testPolicy({
            catchUp,
            catchUpWindowMs: everyMs,
            schedule: { kind: "every", everyMs, spreadMs: 0 },
          });
          const ledger = new LedgerInMemory();
          const enqueue = async (tasks: readonly { id: string }[]) => {
            ledger.queued.push(...tasks.map(({ id }) => id));
          };
          // Two replicas, one of which is new at every step.
          const old = new Scheduler({ policies: [policy], ledger, enqueue, log: silentLog });
          await old.runOnce();
          let latestMs = start;
          for (const byMs of steps) {
            ledger.clockMs += byMs;
            latestMs = Math.max(latestMs, ledger.clockMs);
            const young = new Scheduler({ policies: [policy], ledger, enqueue, log: silentLog });
            // A year has more slots than one look plans: the rest comes with the next ones.
            for (let look = 0; look < 6; look += 1) for (const one of [old, young]) await one.runOnce();
          }
          const slots = ledger.records.map(({ slotMs }) => slotMs);
          expect(slots).toEqual(slotsBetween(everyMs, latestMs));
          expect(new Set(ledger.queued).size).toBe(ledger.queued.length);
          const started = ledger.records.filter(({ state }) => state === "started");
          expect(ledger.queued).toHaveLength(started.length);
          const startedMs = new Set(started.map(({ slotMs }) => slotMs));
          for (const { state, detail } of ledger.records) {
            if (state === "coalesced") expect(startedMs.has(Date.parse(detail))).toBe(true);
            if (state === "missed") expect(detail).toBe(catchUp === "none" ? "catch-up-none" : "outside-window");
          }
        },
      ),
      { numRuns: 60 },
    );
  }, 60_000);

  it("keeps the watermark of a policy when the clock goes back by a year", async () => {
    const policy = testPolicy({ schedule: { kind: "every", everyMs: hour, spreadMs: 0 }, catchUpWindowMs: hour });
    const ledger = new LedgerInMemory();
    const scheduler = new Scheduler({ policies: [policy], ledger, enqueue: async () => {}, log: silentLog });
    await scheduler.runOnce();
    for (const clockMs of [start + hour, start + hour - 365 * day, start + hour, start + 2 * hour]) {
      ledger.clockMs = clockMs;
      await scheduler.runOnce();
    }
    expect(ledger.records.map(({ slotMs, state }) => [(slotMs - start) / hour, state])).toEqual([
      [1, "started"],
      [2, "started"],
    ]);
  });
});

function slotsBetween(everyMs: number, untilMs: number): number[] {
  const slots: number[] = [];
  for (let slotMs = Math.floor(start / everyMs + 1) * everyMs; slotMs <= untilMs; slotMs += everyMs) slots.push(slotMs);
  return slots;
}
