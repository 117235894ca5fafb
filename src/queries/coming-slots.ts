// The next slots of a policy, with what is known already to keep them from starting, and the days
// on which clocks change. Pure. Called by the pages.
import type { Policy } from "../config/policy-set.ts";
import { createClosedTimes } from "../schedule/plan-slots.ts";
import { createChainSource } from "../schedule/slots.ts";
import { zoneOf } from "../schedule/zone.ts";

/** A slot ahead. `closed`: the blackout or holiday that will skip it. `dst`: clocks change then. */
export interface ComingSlot {
  readonly slotMs: number;
  readonly closed: string | undefined;
  readonly dst: string | undefined;
}

const dayMs = 86_400_000;

/** The next `count` slots after an instant. */
export function comingSlots(policy: Policy, afterMs: number, count: number): readonly ComingSlot[] {
  const source = createChainSource(policy);
  const closedAt = createClosedTimes(policy);
  const zone = zoneOf(policy.closed.timezone);
  const slots: ComingSlot[] = [];
  let slotMs = source?.next(afterMs);
  while (slotMs !== undefined && slots.length < count) {
    const closed = closedAt(slotMs);
    const change = zone.offsetMs(slotMs) - zone.offsetMs(slotMs - dayMs);
    slots.push({
      slotMs,
      closed: closed && `${closed.reason}: ${closed.note}`,
      dst: change === 0 ? undefined : `clocks go ${change > 0 ? "forward" : "back"} within the day before`,
    });
    slotMs = source?.next(slotMs);
  }
  return slots;
}
