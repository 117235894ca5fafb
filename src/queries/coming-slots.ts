// The next slots of a policy, with what is known already to keep them from starting, and the days
// on which clocks change. Pure.

import type { Policy } from "../config/policy-set.ts";
import { dayMs } from "../core/duration.ts";
import { MinHeap } from "../core/min-heap.ts";
import { createClosedTimes, describeSkip } from "../schedule/closed-times.ts";
import { createChainSource, type SlotSource } from "../schedule/slots.ts";
import { zoneOf } from "../schedule/zone.ts";

/** A slot ahead. `closed`: the blackout or holiday that will skip it. `dst`: clocks change then. */
export interface ComingSlot {
  readonly slotMs: number;
  readonly closed: string | undefined;
  readonly dst: string | undefined;
}

/** The next `count` slots after an instant. */
export function comingSlots(policy: Policy, afterMs: number, count: number): readonly ComingSlot[] {
  const source = createChainSource(policy);
  const closedAt = createClosedTimes(policy);
  const zone = zoneOf(policy.timezone);
  const slots: ComingSlot[] = [];
  let slotMs = source?.next(afterMs);
  while (slotMs !== undefined && slots.length < count) {
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

const [withinMax, seenMax] = [2_000, 100_000];

/**
 * The slots of policies that would start between two instants, the first ones first. `ofEachMax`:
 * of a policy no more than these, so that frequent ones leave room for rare ones. `isCut`: there
 * may be more.
 */
export function slotsWithin(policies: readonly Policy[], fromMs: number, toMs: number, ofEachMax?: number) {
  const ahead = new MinHeap<{ readonly policy: Policy; readonly source: SlotSource; readonly slotMs: number }>();
  const wait = (policy: Policy, source: SlotSource | undefined, afterMs: number) => {
    const slotMs = source?.next(afterMs);
    if (source !== undefined && slotMs !== undefined && slotMs <= toMs) ahead.push(slotMs, { policy, source, slotMs });
  };
  for (const policy of policies) wait(policy, createChainSource(policy), fromMs);
  const slots: { readonly policy: Policy; readonly slotMs: number }[] = [];
  const counts = new Map<Policy, number>();
  let isMore = false;
  let next = ahead.pop();
  for (let seen = 0; next !== undefined && slots.length <= withinMax && seen < seenMax; seen += 1) {
    const { policy, source, slotMs } = next;
    const isOpen = createClosedTimes(policy)(slotMs) === undefined;
    const count = (counts.get(policy) ?? 0) + (isOpen ? 1 : 0);
    counts.set(policy, count);
    if (isOpen) slots.push({ policy, slotMs });
    if (count !== ofEachMax) wait(policy, source, slotMs);
    else isMore ||= (source.next(slotMs) ?? Number.POSITIVE_INFINITY) <= toMs;
    next = ahead.pop();
  }
  const isCut = isMore || next !== undefined || slots.length > withinMax;
  return { slots: slots.slice(0, withinMax), isCut };
}
