// Which slot `resume --catch-up` makes up for. Pure.
import type { Policy } from "../config/policy-set.ts";
import type { SlotRecord } from "../tasks/slot-record.ts";
import { onTimeMs } from "./plan-slots.ts";

/**
 * The newest slot that a pause or a quarantine skipped, when it lies within the policy's catch-up window and nothing has come after it
 * but slots that the policy's own file skips. `records`: oldest first.
 */
export function newestPaused(policy: Policy, records: readonly SlotRecord[], nowMs: number): SlotRecord | undefined {
  const newest = records.findLast(
    ({ state, detail }) => state !== "skipped" || detail === "paused" || detail === "quarantine",
  );
  if (newest === undefined || newest.state !== "skipped") return undefined;
  return nowMs - newest.slotMs <= Math.max(policy.catchUpWindowMs, onTimeMs) ? newest : undefined;
}
