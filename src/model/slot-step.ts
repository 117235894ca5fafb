// The steps that the scheduler hands to the slot ledger. Made by schedule/, kept by store/.
import type { SlotRecord } from "./slot-record.ts";
import type { Task } from "./task.ts";

/**
 * One step of planning: from the expected watermark to the new one, with all slots and tasks in
 * between.
 */
export interface SlotStep {
  readonly policy: string;
  readonly expectedWatermarkMs: number;
  readonly newWatermarkMs: number;
  readonly records: readonly SlotRecord[];
  readonly tasks: readonly Task[];
  /**
   * The policies that follow this one, directly or not: each gets a record for each of these slots.
   */
  readonly followers?: readonly Follower[];
  /** Whether the policy's sinks hear of a missed slot. */
  readonly isTold?: true;
  /** When the scheduler planned it, by Redis. */
  readonly plannedAtMs?: number;
}

/**
 * A policy whose slots are another's. `after`: its predecessor. `followers`: how many follow it
 * directly.
 */
export interface Follower {
  readonly policy: string;
  readonly after: string;
  readonly followers: number;
}

/**
 * A policy and the text of its schedule (`SlotSource.text`); another text means a changed schedule.
 */
export interface ScheduledPolicy {
  readonly policy: string;
  readonly schedule: string;
}
