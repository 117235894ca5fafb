// What the scheduler needs of the slot ledger. store/slot-ledger.ts keeps it in Redis; this file
// only names the methods, so that schedule/ never sees the store.
import type { ScheduledPolicy, SlotStep } from "../tasks/slot-step.ts";

/** The slot ledger. Every method takes any number of policies and works in bounded portions. */
export interface Ledger {
  nowMs(): Promise<number>;
  /** The mark of each policy. A new policy, and one whose schedule has changed, begins at `nowMs` at the earliest. */
  marks(policies: readonly ScheduledPolicy[], nowMs: number): Promise<ReadonlyMap<string, number>>;
  /** Records each step on its own: all of it or, when the mark has moved, nothing. Answers in the order of the steps. */
  record(
    steps: readonly SlotStep[],
  ): Promise<readonly { readonly recorded: boolean; readonly markMs: number | undefined }[]>;
  confirmQueued(steps: readonly Pick<SlotStep, "policy" | "newMarkMs">[]): Promise<void>;
  unqueued(olderThanMs: number): Promise<readonly Pick<SlotStep, "policy" | "newMarkMs" | "tasks">[]>;
  /** Forgets the marks of policies that are not scheduled any more: coming back, they begin anew. */
  drop(policies: readonly string[]): Promise<void>;
  /** Lets the records of policies end that are not known any more, and that nobody dropped. */
  tidy(known: ReadonlySet<string>, nowMs: number): Promise<void>;
}
