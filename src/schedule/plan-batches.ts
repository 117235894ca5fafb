// From due policies to portions of planned steps. Pure; called by the scheduler, and policy by policy by `simulate` and `plan`.
// A portion is what is recorded in one call and enqueued in one call, so it is bounded in policies, records and tasks.

import type { SlotStep } from "../tasks/slot-step.ts";
import { isToldOf } from "../tasks/telling-event.ts";
import type { Entry } from "./agenda.ts";
import { type PlanningMoment, planSlots, type SlotPlan } from "./plan-slots.ts";
import { toRecords, toTasks } from "./slot-tasks.ts";
import { slotsPerLookMax } from "./slots.ts";

/** One policy's step, with what it was planned from. */
export interface PlannedEntry {
  readonly entry: Entry;
  readonly plans: readonly SlotPlan[];
  readonly step: SlotStep;
}

const policiesPerBatchMax = 200;
const recordsPerBatchMax = 2_000;
const tasksPerBatchMax = 1_000;

/** Plans what is due at this moment, portion by portion. A single policy with more than a portion holds is one of its own. */
export function* planBatches(due: readonly Entry[], moment: PlanningMoment): Generator<PlannedEntry[], void, void> {
  let batch: PlannedEntry[] = [];
  let records = 0;
  let tasks = 0;
  for (const entry of due) {
    const planned = planEntry(entry, moment);
    if (planned === undefined) continue;
    batch.push(planned);
    records += planned.step.records.length;
    tasks += planned.step.tasks.length;
    if (batch.length < policiesPerBatchMax && records < recordsPerBatchMax && tasks < tasksPerBatchMax) continue;
    yield batch;
    batch = [];
    records = 0;
    tasks = 0;
  }
  if (batch.length > 0) yield batch;
}

function planEntry(entry: Entry, moment: PlanningMoment): PlannedEntry | undefined {
  const { policy, markMs, followers } = entry;
  const due = planDue(entry, moment);
  if (due === undefined) return undefined;
  const { plans, newMarkMs } = due;
  return {
    entry,
    plans,
    step: {
      policy: policy.name,
      expectedMarkMs: markMs,
      newMarkMs,
      records: toRecords(policy, plans),
      tasks: toTasks(policy, plans),
      ...(isToldOf(policy) ? { isTold: true } : {}),
      ...(followers.length === 0 ? {} : { followers, plannedAtMs: moment.nowMs }),
    },
  };
}

/**
 * What becomes of one policy's due slots when somebody looks at this moment, and its mark afterwards; undefined when none is due.
 * The one way from a mark to plans, on Redis's clock as on a virtual one.
 */
export function planDue(
  { policy, source, markMs }: Pick<Entry, "policy" | "source" | "markMs">,
  moment: PlanningMoment,
): { readonly plans: readonly SlotPlan[]; readonly newMarkMs: number } | undefined {
  const slots = source.due(markMs, moment.nowMs);
  const newMarkMs = slots.at(-1);
  if (newMarkMs === undefined) return undefined;
  // Only a backlog is planned in several portions: then there are newer slots than these, which `all` prefers.
  const isPortion = policy.catchUp === "all" && slots.length === slotsPerLookMax;
  const newer = isPortion ? source.due(newMarkMs, moment.nowMs) : [];
  return { plans: planSlots(policy, slots, { ...moment, newer }), newMarkMs };
}
