// The next slots of a policy, with what is known already to keep them from starting, and the days
// on which clocks change. Pure. Called by the pages.
import type { Policy } from "../config/policy-set.ts";
import { createClosedTimes, describeSkip } from "../schedule/closed-times.ts";
import { createChainSource } from "../schedule/slots.ts";
import { zoneOf } from "../schedule/zone.ts";

/** A slot ahead. `closed`: the blackout or holiday that will skip it. `dst`: clocks change then. */
export interface ComingSlot {
  readonly slotMs: number;
  readonly closed: string | undefined;
  readonly dst: string | undefined;
}

const dayMs = 86_400_000;

/** The next `count` slots after an instant, and up to another one. */
export function comingSlots(
  policy: Policy,
  afterMs: number,
  count: number,
  untilMs = Number.POSITIVE_INFINITY,
): readonly ComingSlot[] {
  const source = createChainSource(policy);
  const closedAt = createClosedTimes(policy);
  const zone = zoneOf(policy.closed.timezone);
  const slots: ComingSlot[] = [];
  let slotMs = source?.next(afterMs);
  while (slotMs !== undefined && slotMs <= untilMs && slots.length < count) {
    const closed = closedAt(slotMs);
    const change = zone.offsetMs(slotMs) - zone.offsetMs(slotMs - dayMs);
    slots.push({
      slotMs,
      closed: closed && describeSkip(closed),
      dst: change === 0 ? undefined : `clocks go ${change > 0 ? "forward" : "back"} within the day before`,
    });
    slotMs = source?.next(slotMs);
  }
  return slots;
}

const withinMax = 2_000;

/** The slots of policies that would start between two instants, the first ones first. */
export function slotsWithin(policies: readonly Policy[], fromMs: number, toMs: number) {
  const slots: { readonly policy: Policy; readonly slotMs: number }[] = [];
  for (const policy of policies) {
    const room = withinMax + 1 - slots.length;
    for (const { slotMs, closed } of comingSlots(policy, fromMs, room, toMs))
      if (closed === undefined) slots.push({ policy, slotMs });
  }
  const isCut = slots.length > withinMax;
  return { slots: slots.slice(0, withinMax).toSorted((a, b) => a.slotMs - b.slotMs), isCut };
}
