// What becomes of the slots that are due: the catch-up rule. Pure; called by the scheduler, and by nobody else.
import type { Policy } from "../config/policy-set.ts";

/** How late a slot may be noticed and still count as on time, whatever the catch-up rule says. */
export const onTimeMs = 30_000;

/** What a slot ends in. `coalesced` names the slot that stands for it; `missed` says why nothing will be done. */
export type SlotPlan =
  | { readonly slotMs: number; readonly state: "started"; readonly covers: readonly number[] }
  | { readonly slotMs: number; readonly state: "coalesced"; readonly into: number }
  | { readonly slotMs: number; readonly state: "missed"; readonly reason: "catch-up-none" | "outside-window" };

/**
 * Plans due slots (oldest first): exactly one plan for each.
 * A slot inside the catch-up window may still start: with `latest` the newest, standing for all older ones;
 * with `all` each of them; with `none` only a slot that is on time. A slot outside the window is missed, unless a newer one stands for it.
 */
export function planSlots(policy: Policy, slots: readonly number[], nowMs: number): SlotPlan[] {
  const windowMs = policy.catchUp === "none" ? onTimeMs : Math.max(policy.catchUpWindowMs, onTimeMs);
  const inWindow = slots.filter((slotMs) => nowMs - slotMs <= windowMs);
  if (policy.catchUp === "latest") return planLatest(slots, inWindow.at(-1));
  const late = policy.catchUp === "none" ? "catch-up-none" : "outside-window";
  const startable = new Set(inWindow);
  return slots.map((slotMs) =>
    startable.has(slotMs) ? { slotMs, state: "started", covers: [] } : { slotMs, state: "missed", reason: late },
  );
}

function planLatest(slots: readonly number[], newest: number | undefined): SlotPlan[] {
  if (newest === undefined) return slots.map((slotMs) => ({ slotMs, state: "missed", reason: "outside-window" }));
  const covers = slots.filter((slotMs) => slotMs < newest);
  return slots.map((slotMs) =>
    slotMs === newest ? { slotMs, state: "started", covers } : { slotMs, state: "coalesced", into: newest },
  );
}
