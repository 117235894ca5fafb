// What the scheduler needs of the slot ledger, and what it hands to it. store/slot-ledger.ts keeps it in Redis; this file
// only names the shapes, so that schedule/ never sees the store.
import type { SlotRecord } from "../tasks/slot-record.ts";
import type { Task } from "../tasks/task.ts";

/** One step of planning, as the ledger keeps it: from the mark that was expected to the new one, with all in between. */
export interface PlannedStep {
  readonly policy: string;
  readonly expectedMarkMs: number;
  readonly newMarkMs: number;
  readonly records: readonly SlotRecord[];
  readonly tasks: readonly Task[];
}

/** A policy and the text of its schedule (`SlotSource.text`); another text means that the schedule has changed. */
export interface ScheduledPolicy {
  readonly policy: string;
  readonly schedule: string;
}

/** The slot ledger. Every method takes any number of policies and works in bounded portions. */
export interface Ledger {
  nowMs(): Promise<number>;
  /** The mark of each policy. A new policy, and one whose schedule has changed, begins at `nowMs` at the earliest. */
  marks(policies: readonly ScheduledPolicy[], nowMs: number): Promise<ReadonlyMap<string, number>>;
  /** Records each step on its own: all of it or, when the mark has moved, nothing. Answers in the order of the steps. */
  record(
    steps: readonly PlannedStep[],
  ): Promise<readonly { readonly recorded: boolean; readonly markMs: number | undefined }[]>;
  confirmQueued(steps: readonly Pick<PlannedStep, "policy" | "newMarkMs">[]): Promise<void>;
  unqueued(olderThanMs: number): Promise<readonly Pick<PlannedStep, "policy" | "newMarkMs" | "tasks">[]>;
  /** Forgets the marks of policies that are not scheduled any more: coming back, they begin anew. */
  drop(policies: readonly string[]): Promise<void>;
}
