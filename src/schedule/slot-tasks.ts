// Turns planned slots into ledger records and tasks. Pure; the scheduler, chains, runs by hand,
// catch-ups and the simulation make them alike.
import { type Policy, targetsOf } from "../config/policy-set.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import type { SlotRecord, WaitingSlot } from "../model/slot-record.ts";
import { type Task, targetFromMasks, taskId } from "../model/task.ts";
import type { FollowerPlan } from "./plan-follower.ts";
import type { ScheduledPlan } from "./plan-slots.ts";
import { scheduleText } from "./slots.ts";

/** A task has at least this long to start. */
const startWithinMs = 3_600_000;

/** One ledger record for each planned slot. */
export function toRecords(policy: Policy, plans: readonly ScheduledPlan[]): SlotRecord[] {
  const schedule = scheduleHash(policy);
  const started = startedAs(policy);
  return plans.map((plan) => ({
    slotMs: plan.slotMs,
    state: plan.state,
    detail: detailOf(plan),
    ...(plan.state === "skipped" ? { note: plan.note } : {}),
    schedule,
    ...(plan.state === "started" ? started : {}),
  }));
}

const hashes = new WeakMap<object, string>();

/** Eight hex digits that change with whatever decides a policy's slots, but not with its name. */
export function scheduleHash(policy: Pick<Policy, "schedule" | "after">): string {
  const decisive = policy.after ?? policy.schedule;
  const known = decisive && hashes.get(decisive);
  if (known !== undefined) return known;
  const hash = hashText(scheduleText(policy) ?? canonicalJson(null), 8);
  if (decisive !== undefined) hashes.set(decisive, hash);
  return hash;
}

/** The record of a follower's slot. `policy`: undefined when it is no longer configured. */
export function toFollowerRecord({ slotMs }: WaitingSlot, plan: FollowerPlan, policy: Policy | undefined): SlotRecord {
  const schedule = policy === undefined ? {} : { schedule: scheduleHash(policy) };
  const isStarted = policy !== undefined && plan.state === "started";
  return { slotMs, ...plan, ...schedule, ...(isStarted ? startedAs(policy) : {}) };
}

function startedAs(policy: Policy): Pick<SlotRecord, "kind" | "targets"> {
  return { kind: policy.action.kind, targets: targetsOf(policy.action) ?? [targetFromMasks] };
}

/** The record of a slot that a pause or quarantine had skipped and that a catch-up starts. */
export function toCaughtUp(policy: Policy, skipped: SlotRecord, note: string): SlotRecord {
  const detail = skipped.detail === "quarantine" ? "released" : "caught-up";
  return { ...skipped, state: "started", detail, note, ...startedAs(policy) };
}

/** The tasks of the slots that start: one for each target, or one for all masks. */
export function toTasks(policy: Policy, plans: readonly ScheduledPlan[]): Task[] {
  return plans.flatMap((plan) => tasksOfPlan(policy, plan));
}

/** The same of one slot; none unless it starts. */
export function tasksOfPlan(policy: Policy, plan: ScheduledPlan): Task[] {
  if (plan.state !== "started") return [];
  return tasksOf(policy, { slotMs: plan.slotMs, origin: "schedule", covers: plan.covers });
}

/** The slot of tasks. `covers`: older slots; `dueMs`: when it came due, if later. */
export interface TaskSlot extends Pick<Task, "slotMs" | "origin"> {
  readonly covers: readonly number[];
  readonly dueMs?: number;
}

/** The tasks of one policy at one instant, on schedule or by hand. */
export function tasksOf(policy: Policy, slot: TaskSlot): Task[] {
  const { name, action } = policy;
  const { kind } = action;
  const { slotMs, origin } = slot;
  // Field by field: hundreds of thousands are simulated, and spreads are slow.
  return (targetsOf(action) ?? [targetFromMasks]).map((target) => ({
    v: 1,
    id: taskId({ policy: name, kind, target, slotMs, origin }),
    policy: name,
    kind,
    target,
    slotMs,
    origin,
    service: policy.service,
    repository: policy.repository ?? null,
    covers: slot.covers.slice(-1_000),
    startByMs: startByMs(policy, slot),
  }));
}

/**
 * From its slot: the catch-up window, an hour at least. From when it came due (chains, catch-ups):
 * an hour.
 */
function startByMs({ catchUpWindowMs }: Policy, { slotMs, dueMs }: TaskSlot): number {
  return dueMs === undefined ? slotMs + Math.max(catchUpWindowMs, startWithinMs) : dueMs + startWithinMs;
}

function detailOf(plan: ScheduledPlan): string {
  if (plan.state === "started") return "";
  return plan.state === "coalesced" ? new Date(plan.into).toISOString() : plan.reason;
}
