// What the scheduler and the chains use of Redis: the slot ledger (store/slot-ledger.ts; tests keep
// it in memory) and the inputs of policies (`needs`).
import type { Policy } from "../config/policy-set.ts";
import type {
  OutboxPlace,
  PlannedSlots,
  RecordAnswer,
  ScheduledPolicy,
  UnqueuedSlots,
  Watermark,
} from "../model/slot-record.ts";

/** The slot ledger. Every method takes any number of policies and works in bounded batches. */
export interface SlotLedgerPort {
  nowMs(): Promise<number>;
  /**
   * The watermark of each policy; new and changed ones begin at `nowMs` at the earliest, one that
   * Redis has lost at its `beginsMs`.
   */
  openWatermarks(policies: readonly ScheduledPolicy[], nowMs: number): Promise<ReadonlyMap<string, Watermark>>;
  /**
   * Records the slots of each policy whole, or not at all when its watermark has moved. `fault`: a
   * mistake in them.
   */
  record(planned: readonly PlannedSlots[]): Promise<readonly RecordAnswer[]>;
  confirmQueued(planned: readonly OutboxPlace[]): Promise<void>;
  unqueued(olderThanMs: number): Promise<readonly UnqueuedSlots[]>;
  /** Drops the watermarks of policies that are no longer scheduled. */
  drop(policies: readonly string[]): Promise<void>;
  /** Drops all policies but these. */
  tidy(known: ReadonlySet<string>): Promise<void>;
}

/** When each of these policies last succeeded, every target of it; without those that never did. */
export type ReadInputs = (policies: readonly string[]) => Promise<ReadonlyMap<string, number>>;

/** Reads the inputs of these policies; undefined when they need none. */
export async function readInputsOf(
  policies: readonly (Policy | undefined)[],
  read: ReadInputs | undefined,
): Promise<ReadonlyMap<string, number> | undefined> {
  const names = new Set(policies.flatMap((policy) => policy?.needs?.policy ?? []));
  return names.size === 0 ? undefined : read?.([...names]);
}
