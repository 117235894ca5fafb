// The simulation plans what the scheduler plans: the real Scheduler ticks once a second on a clock
// that the test moves, with a ledger in memory, and both must have the same records for every slot.
// Whole seconds only, as slots are.
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Policy, Schedule } from "../../../src/config/policy-set.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import type { Pause } from "../../../src/model/pause.ts";
import type { PlannedSlots, ScheduledPolicy, SlotRecord } from "../../../src/model/slot-record.ts";
import type { Task } from "../../../src/model/task.ts";
import { Scheduler } from "../../../src/schedule/scheduler.ts";
import type { SlotLedgerPort } from "../../../src/schedule/scheduler-ports.ts";
import { toRecords, toTasks } from "../../../src/schedule/slot-tasks.ts";
import { virtualTicks } from "../../../src/simulate/virtual-ticks.ts";
import { testPolicy } from "../../support/policies.ts";

/** Records and task names of each policy. */
type Book = Map<string, { readonly records: SlotRecord[]; readonly tasks: string[] }>;

class MemoryLedger implements SlotLedgerPort {
  nowAtMs = 0;
  readonly book: Book = new Map();
  readonly #marks = new Map<string, number>();

  nowMs = async () => this.nowAtMs;
  openWatermarks = async (policies: readonly ScheduledPolicy[], nowMs: number) => {
    for (const { policy } of policies) this.#marks.set(policy, this.#marks.get(policy) ?? nowMs);
    return new Map(
      policies.map(({ policy, schedule }) => [policy, { watermarkMs: this.#marks.get(policy) ?? nowMs, schedule }]),
    );
  };
  record = async (steps: readonly PlannedSlots[]) =>
    steps.map(({ policy, expectedWatermarkMs, newWatermarkMs, records, tasks }) => {
      expect(this.#marks.get(policy)).toBe(expectedWatermarkMs);
      this.#marks.set(policy, newWatermarkMs);
      note(this.book, policy, { records, tasks });
      return { recorded: true, watermarkMs: newWatermarkMs };
    });
  confirmQueued = async () => {};
  unqueued = async () => [];
  drop = async () => {};
  tidy = async () => {};
}

function note(book: Book, policy: string, more: { records: readonly SlotRecord[]; tasks: readonly Task[] }): void {
  const known = book.get(policy) ?? { records: [], tasks: [] };
  book.set(policy, known);
  known.records.push(...more.records);
  known.tasks.push(...more.tasks.map(({ id }) => id));
}

const second = 1_000;
/** Beside the change of the clocks in Vienna at 01:00Z. */
const fromMs = Date.parse("2027-03-28T00:30:00Z");
const seconds = 3_600;
const dst = { gap: "next", overlap: "first" } as const;

const schedules = fc.oneof(
  fc.integer({ min: 2, max: 900 }).map((every) => ({ kind: "every" as const, everyMs: every * second })),
  fc
    .subarray(["30 2 * * *", "*/5 * * * *", "7,9 3 * * *", "*/20 * * * * *", "15 * * * *"], {
      minLength: 1,
      maxLength: 2,
    })
    .map((expressions) => ({ kind: "cron" as const, expressions, timezone: "Europe/Vienna", dst })),
  fc
    .constantFrom("2027-03-28T01:45:10", "2027-03-28T02:30:00", "2027-03-28T03:20:00", "2027-03-27T01:00:00")
    .map((at) => ({ kind: "once" as const, at, timezone: "Europe/Vienna", dst })),
);

const policies = fc
  .array(
    fc.record({
      schedule: schedules,
      spread: fc.constantFrom(0, 0, 45, 300),
      catchUp: fc.constantFrom("latest" as const, "none" as const, "all" as const),
      window: fc.integer({ min: 1, max: 1_200 }),
      open: fc.option(fc.integer({ min: 1, max: 9 })),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((rows) =>
    rows.map(({ schedule, spread, catchUp, window, open }, index): Policy => {
      const spreadMs = schedule.kind === "every" ? Math.min(spread * second, schedule.everyMs) : spread * second;
      const full: Schedule = { ...schedule, spreadMs };
      const blackouts = open === null ? [] : [{ cron: "*/10 * * * *", durationMs: open * 60 * second }];
      const closed = { timezone: "Europe/Vienna", blackouts, holidays: [] };
      return testPolicy({ name: `p${index}`, schedule: full, catchUp, catchUpWindowMs: window * second, closed });
    }),
  );

/** In one long outage it has more slots than one run plans. */
const everyTwoSeconds = testPolicy({ name: "p0", schedule: { kind: "every", everyMs: 2 * second, spreadMs: 0 } });

/** Intervals in seconds after the start. */
const intervals = (max: number) =>
  fc.array(fc.tuple(fc.integer({ min: 0, max: seconds - 1 }), fc.integer({ min: 1, max: 1_500 })), { maxLength: max });

it("records the same slots with the same endings and tasks as the scheduler does", async () => {
  await fc.assert(
    fc.asyncProperty(policies, intervals(2), intervals(2), async (some, silences, paused) => {
      const outages = silences.map(([from, length]) => ({
        fromMs: fromMs + from * second,
        toMs: fromMs + Math.min(from + length, seconds) * second,
      }));
      const pauses = paused.map(([from, length], index): Pause => {
        const scope = index === 0 ? { scope: "all" as const, name: "" } : { scope: "policy" as const, name: "p0" };
        const times = { sinceMs: fromMs + from * second, untilMs: fromMs + (from + length) * second };
        return { v: 1, ...scope, ...times, note: "n", actor: "a", endedBy: null };
      });
      const ledger = new MemoryLedger();
      const scheduler = new Scheduler({
        policies: some,
        ledger,
        enqueue: async () => {},
        pauses: async () => pauses,
        log: silentLog,
      });
      let wasOut = false;
      for (let passed = 0; passed <= seconds; passed += 1) {
        ledger.nowAtMs = fromMs + passed * second;
        const isOut = outages.some((one) => one.fromMs <= ledger.nowAtMs && ledger.nowAtMs < one.toMs);
        // The first run adopts the policies; before it nothing is planned.
        if (passed === 0 || !isOut) await scheduler.runOnce();
        // A tick runs again at once while slots are left over: an outage leaves up to two runs'
        // worth.
        if (wasOut && !isOut) await scheduler.runOnce();
        wasOut = isOut;
      }
      const simulated: Book = new Map();
      const time = { fromMs, toMs: fromMs + seconds * second, outages, pauses };
      for (const { policy, plans } of virtualTicks(some, time, () => new Map()))
        note(simulated, policy.name, { records: toRecords(policy, plans), tasks: toTasks(policy, plans) });
      expect(simulated).toEqual(ledger.book);
    }),
    {
      numRuns: 40,
      examples: [
        [
          [everyTwoSeconds],
          [
            [1, 1_500],
            [1_400, 1_500],
          ],
          [],
        ],
      ],
    },
  );
}, 60_000);
