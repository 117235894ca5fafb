// Describes a slot's record, or its absence, in one sentence. Pure; called by `explain`.

import type { Policy } from "../config/policy-set.ts";
import { policyLimits } from "../config/rules/policy-limits.ts";
import { formatDuration } from "../core/duration.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import { onTimeMs } from "./plan-slots.ts";

/** Describes what became of a slot. */
export function describeRecord(policy: Policy, { state, detail, note }: SlotRecord): string {
  const because = note === undefined ? "" : `: ${note}`;
  switch (state) {
    case "started":
      if (detail === "followed") return `started${because}`;
      return detail === "caught-up"
        ? `skipped by a pause at first, then started by resume --catch-up${because}`
        : "started";
    case "coalesced":
      return `not started by itself: the newer slot ${detail} covers it (catchUp: ${policy.catchUp})`;
    case "missed":
      if (detail === "catch-up-cap")
        return `not started: catchUp is all, and ${policyLimits.catchUpSlotsMax} newer slots were late as well`;
      if (detail === "after-within")
        return `not started: later than ${formatDuration(policy.catchUpWindowMs)} after its slot (after.within)${because}`;
      return detail === "catch-up-none"
        ? `not started: noticed more than ${formatDuration(onTimeMs)} late, and catchUp is none`
        : `not started: noticed later than its catch-up window allows (now ${formatDuration(policy.catchUpWindowMs)})`;
    case "skipped":
      return `not started: ${skipWord(detail)}${because}`;
  }
}

function skipWord(reason: string): string {
  if (reason === "blackout") return "it lay in a blackout window";
  if (reason === "holiday") return "it fell on a holiday";
  if (reason === "quarantine") return "its policy was in quarantine";
  if (reason === "predecessor") return "its predecessor did not end as after.on asks";
  if (reason === "removed") return "its policy was removed, or left the chain, while it waited";
  return reason;
}

/** A slot without a record, and the state of the ledger. Instants are milliseconds UTC. */
export interface RecordlessSlot {
  readonly slotMs: number;
  readonly nowMs: number;
  readonly watermarkMs: number | undefined;
  readonly keptSinceMs: number | undefined;
  /** Whether a scheduler is alive. */
  readonly isPlanned: boolean;
}

/** Describes why a slot has no record. */
export function describeNoRecord({ slotMs, nowMs, watermarkMs, keptSinceMs, isPlanned }: RecordlessSlot): string {
  if (slotMs > nowMs)
    return `not due yet: in ${roughly(slotMs - nowMs)}${isPlanned ? "" : ", if a scheduler is alive then: none is now"}`;
  if (watermarkMs === undefined)
    return "no scheduler plans this policy here: is one running, with these policies, this prefix and Redis?";
  if (keptSinceMs !== undefined && slotMs <= keptSinceMs) {
    const since = new Date(keptSinceMs).toISOString();
    return `nothing is known: records are kept since ${since}, when the policy or its schedule began here or older ones were dropped`;
  }
  if (slotMs > watermarkMs) {
    if (!isPlanned) return "due, and not planned: no scheduler is alive";
    return nowMs - slotMs > onTimeMs
      ? "due, and not planned: no scheduler has planned since, though one is alive. Does it have these policies?"
      : "due just now: a scheduler that has this policy plans it within seconds";
  }
  return "there is no record, though later slots have one: it was lost or deleted, or the schedule was another one then";
}

/** A duration in the largest unit of which there are at least two. */
function roughly(durationMs: number): string {
  const unitMs = [86_400_000, 3_600_000, 60_000, 1_000].find((unit) => durationMs >= 2 * unit) ?? 1_000;
  return formatDuration(Math.ceil(durationMs / unitMs) * unitMs);
}
