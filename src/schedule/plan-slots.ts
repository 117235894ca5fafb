// Plans due slots: closed times, then pauses, then stale inputs (`needs`), then catch-up. Pure.
// Also here: what `resume --catch-up` starts.
import type { Policy } from "../config/policy-set.ts";
import { policyLimits } from "../config/rules/policy-limits.ts";
import { formatDuration } from "../core/duration.ts";
import { showInstant } from "../core/instant.ts";
import { isAbout, isInForce, type Pause, subjectKey } from "../model/pause.ts";
import type { Loss, SlotRecord } from "../model/slot-record.ts";
import type { TaskKind } from "../model/task.ts";
import { createClosedTimes, isNeverClosed } from "./closed-times.ts";
import { createSlotSource } from "./slots.ts";

/** A slot planned within this time is on time, whatever the catch-up rule says. */
export const onTimeMs = 30_000;

/** The plan of a slot. `into`: the slot that covers it. */
export type SlotPlan =
  | { readonly slotMs: number; readonly state: "started"; readonly covers: readonly number[] }
  | { readonly slotMs: number; readonly state: "coalesced"; readonly into: number }
  | {
      readonly slotMs: number;
      readonly state: "missed";
      readonly reason: "catch-up-none" | "outside-window" | "catch-up-cap" | "redis-loss";
    }
  | SkipPlan;

/** A slot that is skipped. `note`: the window, date, pause, quarantine or stale input behind it. */
export interface SkipPlan {
  readonly slotMs: number;
  readonly state: "skipped";
  readonly reason: "blackout" | "holiday" | "paused" | "quarantine" | "stale-input";
  readonly note: string;
}

/** A follower's slot whose predecessor's was planned without it. */
export interface LeftOutPlan {
  readonly slotMs: number;
  readonly state: "missed";
  readonly reason: "left-out";
}

/** The plan of a slot by the scheduler, which also has followers without their chain. */
export type ScheduledPlan = SlotPlan | LeftOutPlan;

/** What planning depends on besides the policy: the time, and every pause that may touch a slot. */
export interface PlanningMoment {
  readonly nowMs: number;
  readonly pauses: readonly Pause[];
  /** When the policies that others need last succeeded; not set: no input is judged. */
  readonly inputs?: ReadonlyMap<string, number> | undefined;
  /** What Redis may have lost since the first due slot; nothing unless given. */
  readonly losses?: readonly Loss[];
}

/**
 * A moment, and the due slots newer than those to plan: `catchUp: all` starts those first, `latest`
 * only the newest of them inside the window.
 */
export interface SlotMoment extends PlanningMoment {
  readonly newer?: readonly number[];
}

/**
 * Plans due slots (oldest first): exactly one plan for each. A closed or paused slot is skipped,
 * and none covers it. Of those inside the catch-up window, `latest` starts the newest, which covers
 * all older ones; `all` starts the newest 100; `none` only a slot on time. Others are missed.
 */
export function planSlots(policy: Policy, slots: readonly number[], given: SlotMoment): SlotPlan[] {
  const moment = { ...given, newer: newerOpenSlots(policy, given) };
  const plans = planWithoutLosses(policy, slots, moment);
  const lost = possiblyLostSlots(policy, plans, moment);
  if (lost.size === 0) return plans;
  const [firstStartedMs = 0] = slots.filter((slotMs) => lost.has(slotMs)).slice(-policyLimits.catchUpSlotsMax);
  return plans.map((plan) => planLost(plan, lost, firstStartedMs));
}

/**
 * The newer slots that are neither closed nor paused. No input counts: a stale one skips all slots
 * to plan, whatever is newer, and may have been fresh in a loss.
 */
function newerOpenSlots(policy: Policy, { newer = [], ...moment }: SlotMoment): readonly number[] {
  const skips = planSkips(policy, newer, { ...moment, inputs: undefined });
  return newer.filter((slotMs) => !skips.has(slotMs));
}

/** The slots whose start Redis may have lost: those that could have started in a loss. */
function possiblyLostSlots(policy: Policy, plans: readonly SlotPlan[], moment: SlotMoment): ReadonlySet<number> {
  const { losses = [], newer = [] } = moment;
  if (losses.length === 0 || !isFenced(policy.action.kind)) return new Set();
  const latenessMs = latenessMaxMs(policy);
  const startsMax = policy.catchUp === "latest" ? 1 : policyLimits.catchUpSlotsMax;
  const open = plans.filter(isOpen).map(({ slotMs }) => slotMs);
  const lost = losses.flatMap(({ fromMs, untilMs }) => {
    const isBefore = (slotMs: number) => slotMs < fromMs && slotMs + latenessMs >= fromMs;
    const before = open.filter(isBefore);
    const beforeMax = Math.max(0, startsMax - newer.filter(isBefore).length);
    const within = open.filter((slotMs) => slotMs >= fromMs && slotMs <= untilMs);
    return [...before.slice(Math.max(0, before.length - beforeMax)), ...within];
  });
  return new Set(lost);
}

/** Whether the fence ends tasks of this kind whose start Redis may have lost. */
export function isFenced(kind: TaskKind): boolean {
  return kind !== "poll" && kind !== "apply";
}

/**
 * The newest 100 are planned as started: their tasks end as unknown (store/redis-watch.ts). An
 * older one's record says that it may have started.
 */
function planLost(plan: SlotPlan, lost: ReadonlySet<number>, firstStartedMs: number): SlotPlan {
  const { slotMs } = plan;
  if (plan.state === "started") return { ...plan, covers: plan.covers.filter((older) => !lost.has(older)) };
  if (!lost.has(slotMs)) return plan;
  return slotMs < firstStartedMs
    ? { slotMs, state: "missed", reason: "redis-loss" }
    : { slotMs, state: "started", covers: [] };
}

/** An input that is stale now may have been fresh before. */
function isOpen(plan: SlotPlan): boolean {
  return plan.state !== "skipped" || plan.reason === "stale-input";
}

function planWithoutLosses(policy: Policy, slots: readonly number[], moment: SlotMoment): SlotPlan[] {
  const { nowMs, newer = [] } = moment;
  const skips = planSkips(policy, slots, moment);
  if (skips.size === 0) return planOpen(policy, slots, { nowMs, newer });
  const open = slots.filter((slotMs) => !skips.has(slotMs));
  const planned = planOpen(policy, open, { nowMs, newer });
  const plans = new Map(planned.map((plan) => [plan.slotMs, plan]));
  return slots.flatMap((slotMs) => skips.get(slotMs) ?? plans.get(slotMs) ?? []);
}

/** Whether one instant of a policy is skipped, and why. */
export function planSkip(policy: Policy, instantMs: number, moment: PlanningMoment): SkipPlan | undefined {
  return planSkips(policy, [instantMs], moment).get(instantMs);
}

/**
 * Plans a follower's slot that is too late to wait for its predecessor's. Pauses do not count:
 * `resume --catch-up` starts a paused slot, and would so however the predecessor ended.
 */
export function planLeftOut(policy: Policy, slotMs: number, nowMs: number): SkipPlan | LeftOutPlan {
  return planSkip(policy, slotMs, { nowMs, pauses: [] }) ?? { slotMs, state: "missed", reason: "left-out" };
}

const noSkips: ReadonlyMap<number, SkipPlan> = new Map();

function planSkips(policy: Policy, slots: readonly number[], moment: PlanningMoment): ReadonlyMap<number, SkipPlan> {
  if (slots.length === 0) return noSkips;
  const stale = staleInputOf(policy, moment);
  const relevant = pausesOf(policy, moment.pauses);
  if (stale === undefined && relevant.length === 0 && isNeverClosed(policy)) return noSkips;
  const closedAt = createClosedTimes(policy);
  const skips = new Map<number, SkipPlan>();
  for (const slotMs of slots) {
    // Closed times come first: `resume --catch-up` makes up for pauses only.
    const closed = closedAt(slotMs);
    const pause = closed === undefined ? relevant.find((one) => isInForce(one, slotMs)) : undefined;
    if (closed !== undefined) skips.set(slotMs, { slotMs, state: "skipped", reason: closed.reason, note: closed.note });
    else if (pause === undefined && stale !== undefined) skips.set(slotMs, { slotMs, state: "skipped", ...stale });
    if (pause === undefined) continue;
    const [reason, note] =
      pause.cause === undefined
        ? (["paused", `${pause.note} (${pause.actor})`] as const)
        : ([pause.cause, pause.note] as const);
    skips.set(slotMs, { slotMs, state: "skipped", reason, note });
  }
  return skips;
}

/** The pauses of a list by what they are about, with their places: a round plans with one list. */
const pausesBySubject = new WeakMap<readonly Pause[], Map<string, [number, Pause][]>>();

/** Those about one policy, in the order of the list. */
function pausesOf(policy: Policy, pauses: readonly Pause[]): readonly Pause[] {
  if (pauses.length === 0) return pauses;
  const subjectOf = (pause: Pause) =>
    pause.scope === "policy" || pause.scope === "service" ? subjectKey(pause) : pause.scope;
  const bySubject = pausesBySubject.get(pauses) ?? Map.groupBy(pauses.entries(), ([, pause]) => subjectOf(pause));
  pausesBySubject.set(pauses, bySubject);
  const subjects = [`policy/${policy.name}`, `service/${policy.service}`, "label", "all"];
  const found = subjects.flatMap((subject) => bySubject.get(subject) ?? []);
  const own = found.filter(([, pause]) => isAbout(pause, policy));
  return own.sort(([a], [b]) => a - b).map(([, pause]) => pause);
}

/** The input counts as it is when the slot is planned: a late one reads what is there by then. */
function staleInputOf(
  { needs }: Policy,
  { nowMs, inputs }: PlanningMoment,
): Omit<SkipPlan, "slotMs" | "state"> | undefined {
  if (needs === undefined || inputs === undefined) return undefined;
  const { policy, withinMs } = needs;
  const successMs = inputs.get(policy);
  if (successMs !== undefined && nowMs - successMs <= withinMs) return undefined;
  const last = successMs === undefined ? "no good end is known" : `the last good end was at ${showInstant(successMs)}`;
  return { reason: "stale-input", note: `${policy} has not ended well within ${formatDuration(withinMs)}: ${last}` };
}

/** How late a slot may be planned as started; when its task must start: slot-tasks.ts. */
export function latenessMaxMs(policy: Policy): number {
  return policy.catchUp === "none" ? onTimeMs : Math.max(policy.catchUpWindowMs, onTimeMs);
}

function planOpen(
  policy: Policy,
  slots: readonly number[],
  { nowMs, newer }: { readonly nowMs: number; readonly newer: readonly number[] },
): SlotPlan[] {
  const windowMs = latenessMaxMs(policy);
  const isInWindow = (slotMs: number) => nowMs - slotMs <= windowMs;
  const inWindow = slots.filter(isInWindow);
  if (policy.catchUp === "latest") return planLatest(slots, newer.findLast(isInWindow) ?? inWindow.at(-1));
  const startsMax = Math.max(0, policyLimits.catchUpSlotsMax - newer.length);
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

/** The time of a resume, every pause that touched a slot, and when the resumed one ended. */
export interface ResumeMoment extends PlanningMoment {
  readonly endMs: number;
}

/**
 * The newest slot that the resumed pause has skipped inside the catch-up window, if only closed
 * times came after it.
 */
export function newestPaused(
  policy: Policy,
  records: readonly SlotRecord[],
  moment: ResumeMoment,
): SlotRecord | undefined {
  const newest = records.findLast(
    ({ state, detail }) => state !== "skipped" || detail === "paused" || detail === "quarantine",
  );
  if (newest === undefined || newest.state !== "skipped" || !wasPausedSince(policy, newest.slotMs, moment))
    return undefined;
  return moment.nowMs - newest.slotMs <= resumeWindowMs(policy) ? newest : undefined;
}

/**
 * Whether a policy was paused from a slot on until the resumed pause ended, without a gap: one that
 * takes another's place begins in the millisecond in which that one ends. Always so of a policy
 * that follows another: its pauses count when its predecessor ends, and no record says when.
 */
function wasPausedSince(policy: Policy, slotMs: number, { pauses, endMs }: ResumeMoment): boolean {
  if (policy.after !== undefined) return true;
  let untilMs = slotMs;
  for (const one of pausesOf(policy, pauses).toSorted((a, b) => a.sinceMs - b.sinceMs))
    if (one.sinceMs <= untilMs) untilMs = Math.max(untilMs, one.untilMs ?? endMs);
  return untilMs >= endMs;
}

/**
 * The same among the slots that are due and that no scheduler has recorded yet. Never of a policy
 * that follows another: its pauses count when its predecessor ends.
 */
export function newestDuePaused(
  policy: Policy,
  watermarkMs: number | undefined,
  moment: ResumeMoment,
): number | undefined {
  if (watermarkMs === undefined) return undefined;
  const { nowMs } = moment;
  const fromMs = Math.max(watermarkMs, nowMs - resumeWindowMs(policy) - 1);
  const slots = createSlotSource(policy)?.due(fromMs, nowMs) ?? [];
  const skips = planSkips(policy, slots, moment);
  const records = slots.map((slotMs): SlotRecord => {
    const { state, reason } = skips.get(slotMs) ?? { state: "started", reason: "" };
    return { slotMs, state, detail: reason };
  });
  return newestPaused(policy, records, moment)?.slotMs;
}

function resumeWindowMs({ catchUpWindowMs }: Policy): number {
  return Math.max(catchUpWindowMs, onTimeMs);
}
