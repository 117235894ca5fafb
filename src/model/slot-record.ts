// The ledger's record of one slot, and the steps that the scheduler hands to the ledger.
import * as z from "zod";
import { isJsonObject } from "../core/json.ts";
import { refuseNewer } from "../core/newer-version.ts";
import { type Task, taskKinds } from "./task.ts";

const slotRecordSchema = z.object({
  slotMs: z.int(),
  state: z.enum(["started", "skipped", "missed", "coalesced"]),
  detail: z.string(),
  note: z.string().exactOptional(),
  schedule: z.string().exactOptional(),
  kind: z.enum(taskKinds).exactOptional(),
  targets: z.array(z.string()).exactOptional(),
});

/**
 * `detail`: the reason of a skip or miss, or the slot that stands for this one. `schedule`: hash of
 * the schedule that made the slot. `kind`, `targets`: the parts of a started slot's task ids.
 */
export type SlotRecord = Readonly<z.infer<typeof slotRecordSchema>>;

/** Reads a record. @throws NewerVersionError, so that `audit` does not call it lost. */
export function readSlotRecord(value: unknown): SlotRecord | undefined {
  refuseNewer("slot record", isJsonObject(value) ? value["v"] : undefined);
  return slotRecordSchema.safeParse(value).data;
}

/** One step of planning: from the expected watermark to the new one, with all slots in between. */
export interface SlotStep {
  readonly policy: string;
  readonly expectedWatermarkMs: number;
  readonly newWatermarkMs: number;
  readonly records: readonly SlotRecord[];
  readonly tasks: readonly Task[];
  /** The policies that follow this one, directly or not: each gets a record for each slot. */
  readonly followers?: readonly Follower[];
  /** Whether the policy's sinks hear of a missed slot. */
  readonly isNotified?: true;
  /** The zone of the policy's days; default UTC. */
  readonly timezone?: string | undefined;
  /** When the scheduler planned it, by Redis. */
  readonly plannedAtMs?: number;
}

/** A policy whose slots are those of `after`. `followers`: how many follow it directly. */
export interface Follower {
  readonly policy: string;
  readonly after: string;
  readonly followers: number;
}

/** A policy and the text of its schedule; another text means a changed schedule. */
export interface ScheduledPolicy {
  readonly policy: string;
  readonly schedule: string;
}
