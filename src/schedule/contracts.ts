// What the scheduler and the chains use of the slot ledger. store/slot-ledger.ts implements it in
// Redis; with this interface schedule/ does not depend on the store.
import type { ScheduledPolicy, SlotStep } from "../model/slot-step.ts";

/** The slot ledger. Every method takes any number of policies and works in bounded batches. */
export interface SlotLedgerPort {
  nowMs(): Promise<number>;
  /**
   * The watermark of each policy. A new policy, or one with a changed schedule, begins at `nowMs`
   * at the earliest.
   */
  marks(policies: readonly ScheduledPolicy[], nowMs: number): Promise<ReadonlyMap<string, number>>;
  /**
   * Records each step on its own: all of it or, when the watermark has moved, nothing. Answers in
   * the order of the steps. `fault`: why this step cannot be recorded, by a mistake; the other
   * steps are recorded.
   */
  record(
    steps: readonly SlotStep[],
  ): Promise<
    readonly { readonly recorded: boolean; readonly watermarkMs: number | undefined; readonly fault?: string }[]
  >;
  confirmQueued(steps: readonly Pick<SlotStep, "policy" | "newWatermarkMs">[]): Promise<void>;
  unqueued(olderThanMs: number): Promise<readonly Pick<SlotStep, "policy" | "newWatermarkMs" | "tasks">[]>;
  /**
   * Drops the watermarks of policies that are no longer scheduled: if they come back, they begin
   * anew.
   */
  drop(policies: readonly string[]): Promise<void>;
  /** Lets the records of unknown policies expire. */
  tidy(known: ReadonlySet<string>, nowMs: number): Promise<void>;
}
