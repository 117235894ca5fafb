// The ledger's record of one slot. Made by schedule/, kept by store/, read by `explain` and
// `audit`.
import * as z from "zod";
import { isJsonObject } from "../core/json.ts";
import { refuseNewer } from "../core/newer-version.ts";
import { taskKinds } from "./task.ts";

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
 * What became of one slot. `detail`: the reason of a skip or miss, or the slot that stands for this
 * one (ISO 8601 UTC). `note`: more about a skip. `schedule`: hash of the schedule that made the
 * slot. `kind`, `targets`: of a started slot, the parts of its task ids, to find them after the
 * policy has changed.
 */
export type SlotRecord = Readonly<z.infer<typeof slotRecordSchema>>;

/**
 * Reads a record from the ledger; undefined when it is none. One without `v` is of version 1.
 * @throws NewerVersionError for one of a newer version: the record exists, so `audit` must not call
 * it lost.
 */
export function readSlotRecord(value: unknown): SlotRecord | undefined {
  refuseNewer("slot record", isJsonObject(value) ? value["v"] : undefined);
  return slotRecordSchema.safeParse(value).data;
}
