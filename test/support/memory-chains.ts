// The slot ledger and the chain book in memory, for tests that run the real Scheduler and the real
// Chains on a clock of their own. Keeps what store/ keeps in Redis, without its time, its retention
// and its second replica.

import type { OutcomeStatus } from "../../src/model/outcome.ts";
import type {
  PlannedSlots,
  PredecessorState,
  ScheduledPolicy,
  SlotRecord,
  WaitingSlot,
  WaitingSlotEnd,
} from "../../src/model/slot-record.ts";
import type { Task } from "../../src/model/task.ts";
import type { SlotLedgerPort } from "../../src/schedule/scheduler-ports.ts";

interface Tally {
  open: number;
  endedMs: number;
  readonly endings: { target: string; status: OutcomeStatus }[];
}

/** Marks, records, waiting slots and tallies. */
export class MemoryChains implements SlotLedgerPort {
  nowAtMs = 0;
  /** Every record, by policy and instant. */
  readonly records = new Map<string, SlotRecord>();
  readonly #marks = new Map<string, number>();
  readonly #waiting = new Map<string, WaitingSlot>();
  readonly #tallies = new Map<string, Tally>();

  nowMs = async () => this.nowAtMs;
  confirmQueued = async () => {};
  unqueued = async () => [];
  drop = async () => {};
  tidy = async () => {};

  openWatermarks = async (policies: readonly ScheduledPolicy[], nowMs: number) => {
    for (const { policy } of policies) this.#marks.set(policy, this.#marks.get(policy) ?? nowMs);
    return new Map(
      policies.map(({ policy, schedule }) => [policy, { watermarkMs: this.#marks.get(policy) ?? nowMs, schedule }]),
    );
  };

  record = async (steps: readonly PlannedSlots[]) =>
    steps.map(({ policy, newWatermarkMs, records, followers = [], plannedAtMs = 0 }) => {
      this.#marks.set(policy, newWatermarkMs);
      for (const record of records) {
        this.#note(policy, record);
        for (const follower of followers) {
          const slot = { v: 1, ...follower, slotMs: record.slotMs, openedMs: plannedAtMs } as const;
          this.#waiting.set(keyOf(slot), slot);
        }
      }
      return { recorded: true, watermarkMs: newWatermarkMs };
    });

  /** Notes how a task ended. */
  end(task: Task, status: OutcomeStatus): void {
    const tally = this.#tallies.get(keyOf(task));
    if (tally === undefined) return;
    tally.open -= 1;
    tally.endedMs = this.nowAtMs;
    tally.endings.push({ target: task.target, status });
  }

  fannedOut = async () => {};
  taskOver = async (task: Task) => this.#tallies.get(keyOf(task))?.open === 0;
  find = async (slots: readonly Pick<WaitingSlot, "policy" | "slotMs">[]) =>
    slots.flatMap((slot) => this.#waiting.get(keyOf(slot)) ?? []);
  scan = async () => ({ slots: [...this.#waiting.values()], cursor: "0" });

  predecessorOf = async ({ after, slotMs }: WaitingSlot): Promise<PredecessorState> => {
    const key = keyOf({ policy: after, slotMs });
    const record = this.records.get(key);
    const tally = this.#tallies.get(key);
    if (record === undefined) return { state: this.#waiting.has(key) ? "open" : "nothing" };
    if (record.state !== "started") return { state: "not-started", record };
    if (tally === undefined || tally.open > 0 || record.kind === undefined) return { state: "open" };
    return { state: "ended", kind: record.kind, isReleased: true, ...tally };
  };

  endWaiting = async ({ slot, record }: WaitingSlotEnd) => {
    if (!this.#waiting.delete(keyOf(slot))) return undefined;
    this.#note(slot.policy, record);
    return this.nowAtMs;
  };

  #note(policy: string, record: SlotRecord): void {
    const key = keyOf({ policy, ...record });
    this.records.set(key, record);
    if (record.state === "started")
      this.#tallies.set(key, { open: record.targets?.length ?? 0, endedMs: 0, endings: [] });
  }
}

function keyOf({ policy, slotMs }: { readonly policy: string; readonly slotMs: number }): string {
  return `${policy} ${slotMs}`;
}
