// What the scheduler hands to the slot ledger. Made by schedule/, kept by store/.
import type { SlotRecord } from "./slot-record.ts";
import type { Task } from "./task.ts";

/** One step of planning: from the mark that was expected to the new one, with all slots and tasks in between. */
export interface SlotStep {
  readonly policy: string;
  readonly expectedMarkMs: number;
  readonly newMarkMs: number;
  readonly records: readonly SlotRecord[];
  readonly tasks: readonly Task[];
  /** The policies that follow this one, and those that follow them: each will get a record for each of these slots. */
  readonly followers?: readonly Follower[];
  /** Whether a slot that was missed is told to somebody. */
  readonly isTold?: true;
  /** When it was planned, by Redis. */
  readonly plannedAtMs?: number;
}

/** A policy whose slots are those of another. `after`: whom it follows; `followers`: how many follow it directly. */
export interface Follower {
  readonly policy: string;
  readonly after: string;
  readonly followers: number;
}

/** A policy and the text of its schedule (`SlotSource.text`); another text means that the schedule has changed. */
export interface ScheduledPolicy {
  readonly policy: string;
  readonly schedule: string;
}
