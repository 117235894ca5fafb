// From planned slots to what is recorded and what is queued. Pure; called by the scheduler and by `syncline run`.
import type { Policy } from "../config/policy-set.ts";
import { objectName } from "../core/declared-object.ts";
import { canonicalJson, hashText } from "../core/stable-hash.ts";
import type { SlotRecord } from "../tasks/slot-record.ts";
import { type Task, targetFromMasks, taskVersion } from "../tasks/task.ts";
import { taskId } from "../tasks/task-id.ts";
import type { WaitingSlot } from "../tasks/waiting-slot.ts";
import type { FollowerPlan } from "./plan-follower.ts";
import type { SlotPlan } from "./plan-slots.ts";

/** A task that has waited this long after its slot (or its catch-up window, if longer) does not start any more. */
const startWithinMs = 3_600_000;

/** One ledger record for each planned slot. */
export function toRecords(policy: Policy, plans: readonly SlotPlan[]): SlotRecord[] {
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

/** Eight hex digits that change when a policy's slots may be others; never with the name of the policy. */
export function scheduleHash({ schedule, after }: Pick<Policy, "schedule" | "after">): string {
  return hashText(after === undefined ? canonicalJson(schedule ?? null) : chainText(after), 8);
}

/** What the slots of a policy that follows another depend on, in one text. */
export function chainText({ policy, root }: NonNullable<Policy["after"]>): string {
  return canonicalJson({ after: policy, root });
}

/** The record of a slot that waited for another policy's. `policy`: undefined when it is not configured any more. */
export function toFollowedRecord({ slotMs }: WaitingSlot, plan: FollowerPlan, policy: Policy | undefined): SlotRecord {
  const schedule = policy === undefined ? {} : { schedule: scheduleHash(policy) };
  const isStarted = policy !== undefined && plan.state === "started";
  return { slotMs, ...plan, ...schedule, ...(isStarted ? startedAs(policy) : {}) };
}

function startedAs(policy: Policy): Pick<SlotRecord, "kind" | "targets"> {
  return { kind: policy.action.kind, targets: targetsOf(policy) };
}

/** The record of a slot that a pause had skipped and that starts after all. */
export function toCaughtUp(policy: Policy, skipped: SlotRecord, note: string): SlotRecord {
  return { ...skipped, state: "started", detail: "caught-up", note, ...startedAs(policy) };
}

/** The tasks of the slots that start: one for each sync job, or one for the list. */
export function toTasks(policy: Policy, plans: readonly SlotPlan[]): Task[] {
  return plans.flatMap((plan) =>
    plan.state === "started" ? tasksOf(policy, { slotMs: plan.slotMs, origin: "schedule", covers: plan.covers }) : [],
  );
}

/** What tasks are made for. `covers`: older slots that these stand for; `dueMs`: when they came due, unless at the slot's instant. */
export interface TaskSlot extends Pick<Task, "slotMs" | "origin"> {
  readonly covers: readonly number[];
  readonly dueMs?: number;
}

/** The tasks of one policy at one instant, on schedule or by hand. */
export function tasksOf(policy: Policy, slot: TaskSlot): Task[] {
  const { action } = policy;
  return targetsOf(policy).map((target) => {
    const identity = { policy: policy.name, kind: action.kind, target, slotMs: slot.slotMs, origin: slot.origin };
    return {
      v: taskVersion(action.kind),
      id: taskId(identity),
      ...identity,
      service: policy.service,
      repository: policy.repository ?? null,
      covers: slot.covers.slice(-1_000),
      startByMs: startByMs(policy, slot),
    };
  });
}

function startByMs({ catchUpWindowMs }: Policy, { slotMs, dueMs }: TaskSlot): number {
  return dueMs === undefined ? slotMs + Math.max(catchUpWindowMs, startWithinMs) : dueMs + startWithinMs;
}

function targetsOf({ action }: Policy): string[] {
  if (action.kind === "poll") return [action.list];
  if (action.kind === "delete") return [String(action.syncJob)];
  if (action.kind === "apply") return action.objects.map(objectName);
  return "fromMasks" in action ? [targetFromMasks] : action.syncJobs.map(String);
}

function detailOf(plan: SlotPlan): string {
  if (plan.state === "started") return "";
  return plan.state === "coalesced" ? new Date(plan.into).toISOString() : plan.reason;
}
