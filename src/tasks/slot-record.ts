// What the ledger keeps of one slot. Made by schedule/, kept by store/, read by cli/ to explain and to audit.
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
 * What became of one slot. `detail`: the reason of a skip or a miss, or the slot that stands for this one, ISO 8601 UTC.
 * `note`: what else there is to say of a skip. `schedule`: a hash of the schedule that made it a slot.
 * `kind` and `targets`: of a started slot, what its tasks are named after, so that they are found when the policy has changed.
 */
export type SlotRecord = Readonly<z.infer<typeof slotRecordSchema>>;

/**
 * Reads a record from the ledger; undefined when it is none. One without `v` is of version 1.
 * @throws NewerVersionError for one of a newer version: it is there, so nobody may call it lost.
 */
export function readSlotRecord(value: unknown): SlotRecord | undefined {
  refuseNewer("slot record", isJsonObject(value) ? value["v"] : undefined);
  return slotRecordSchema.safeParse(value).data;
}
