// What becomes of the slots that are due: closed times and pauses first, then the catch-up rule. Pure; called by planDue
// (plan-batches.ts) for the scheduler and for `simulate`, and by nobody else.
import { policyLimits } from "../config/policy-limits.ts";
import type { Policy } from "../config/policy-set.ts";
import { isAbout, isInForce, type Pause } from "../tasks/pause.ts";
import { closedTimesOf } from "./closed-times.ts";

/** How late a slot may be noticed and still count as on time, whatever the catch-up rule says. */
export const onTimeMs = 30_000;

/** What a slot ends in. `coalesced` names the slot that stands for it; `missed` and `skipped` say why nothing will be done. */
export type SlotPlan =
  | { readonly slotMs: number; readonly state: "started"; readonly covers: readonly number[] }
  | { readonly slotMs: number; readonly state: "coalesced"; readonly into: number }
  | {
      readonly slotMs: number;
      readonly state: "missed";
      readonly reason: "catch-up-none" | "outside-window" | "catch-up-cap";
    }
  | SkipPlan;

/** A slot that a rule or a person wants skipped. `note`: the window, the date, or why it was paused. */
export interface SkipPlan {
  readonly slotMs: number;
  readonly state: "skipped";
  readonly reason: "blackout" | "holiday" | "paused" | "quarantine";
  readonly note: string;
}

/** What planning looks at besides the policy: the time, and every pause that may touch a slot. */
export interface PlanningMoment {
  readonly nowMs: number;
  readonly pauses: readonly Pause[];
}

/** A moment of planning, and the slots that are due as well but newer than those to plan: `catchUp: all` prefers them. */
export interface SlotMoment extends PlanningMoment {
  readonly newer?: readonly number[];
}

/**
 * Plans due slots (oldest first): exactly one plan for each.
 * A slot in a blackout window, on a holiday or in a pause is skipped: never started, and no other slot stands for it.
 * Of the others, a slot inside the catch-up window may still start: with `latest` the newest, standing for all older ones;
 * with `all` each of them, the newest 100 at most; with `none` only a slot that is on time. A slot outside the window is missed,
 * unless a newer one stands for it.
 */
export function planSlots(policy: Policy, slots: readonly number[], moment: SlotMoment): SlotPlan[] {
  const { nowMs, pauses, newer = [] } = moment;
  const skips = planSkips(policy, slots, pauses);
  const open = slots.filter((slotMs) => !skips.has(slotMs));
  const newerSkips = planSkips(policy, newer, pauses);
  const startsMax = policyLimits.catchUpSlotsMax - newer.filter((slotMs) => !newerSkips.has(slotMs)).length;
  const planned = planOpen(policy, open, { nowMs, startsMax: Math.max(0, startsMax) });
  const plans = new Map(planned.map((plan) => [plan.slotMs, plan]));
  return slots.flatMap((slotMs) => skips.get(slotMs) ?? plans.get(slotMs) ?? []);
}

/** Whether one instant of a policy is skipped, and why. */
export function planSkip(policy: Policy, instantMs: number, pauses: readonly Pause[]): SkipPlan | undefined {
  return planSkips(policy, [instantMs], pauses).get(instantMs);
}

function planSkips(policy: Policy, slots: readonly number[], pauses: readonly Pause[]): Map<number, SkipPlan> {
  const closedAt = closedTimesOf(policy);
  const relevant = pauses.filter((pause) => isAbout(pause, policy));
  const skips = new Map<number, SkipPlan>();
  for (const slotMs of slots) {
    // What the file forbids comes first: `resume --catch-up` makes up for pauses only.
    const closed = closedAt(slotMs);
    const pause = closed === undefined ? relevant.find((one) => isInForce(one, slotMs)) : undefined;
    if (closed !== undefined) skips.set(slotMs, { slotMs, state: "skipped", ...closed });
    if (pause === undefined) continue;
    const [reason, note] =
      pause.cause === undefined
        ? (["paused", `${pause.note} (${pause.actor})`] as const)
        : ([pause.cause, pause.note] as const);
    skips.set(slotMs, { slotMs, state: "skipped", reason, note });
  }
  return skips;
}

interface OpenMoment {
  readonly nowMs: number;
  /** How many slots `catchUp: all` may still start. */
  readonly startsMax: number;
}

function planOpen(policy: Policy, slots: readonly number[], { nowMs, startsMax }: OpenMoment): SlotPlan[] {
  const windowMs = policy.catchUp === "none" ? onTimeMs : Math.max(policy.catchUpWindowMs, onTimeMs);
  const inWindow = slots.filter((slotMs) => nowMs - slotMs <= windowMs);
  if (policy.catchUp === "latest") return planLatest(slots, inWindow.at(-1));
  const late = policy.catchUp === "none" ? "catch-up-none" : "outside-window";
  const startable = new Set(inWindow);
  const capped = new Set(inWindow.slice(0, Math.max(0, inWindow.length - startsMax)));
  return slots.map((slotMs) => {
    if (!startable.has(slotMs)) return { slotMs, state: "missed", reason: late };
    if (capped.has(slotMs)) return { slotMs, state: "missed", reason: "catch-up-cap" };
    return { slotMs, state: "started", covers: [] };
  });
}

function planLatest(slots: readonly number[], newest: number | undefined): SlotPlan[] {
  if (newest === undefined) return slots.map((slotMs) => ({ slotMs, state: "missed", reason: "outside-window" }));
  const covers = slots.filter((slotMs) => slotMs < newest);
  return slots.map((slotMs) =>
    slotMs === newest ? { slotMs, state: "started", covers } : { slotMs, state: "coalesced", into: newest },
  );
}
