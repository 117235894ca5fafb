// Plans due policies in bounded batches: each is recorded in one call and enqueued in one call.
// Pure; called by the scheduler, and policy by policy by the simulation.

import { timezoneOf } from "../config/policy-set.ts";
import { isNotified } from "../model/notify-event.ts";
import type { PlannedSlots } from "../model/slot-record.ts";
import type { Entry } from "./agenda.ts";
import { type PlanningMoment, planSlots, type SlotPlan } from "./plan-slots.ts";
import { toRecords, toTasks } from "./slot-tasks.ts";
import { slotsPerRunMax } from "./slots.ts";

/** The planned slots of one policy, with what they were planned from. */
export interface PlannedEntry {
  readonly entry: Entry;
  readonly plans: readonly SlotPlan[];
  readonly slots: PlannedSlots;
}

const policiesPerBatchMax = 200;
const recordsPerBatchMax = 2_000;
const tasksPerBatchMax = 1_000;

/** Plans what is due, batch by batch. A single policy that exceeds a batch is one of its own. */
export function* planBatches(due: readonly Entry[], moment: PlanningMoment): Generator<PlannedEntry[], void, void> {
  let batch: PlannedEntry[] = [];
  let records = 0;
  let tasks = 0;
  for (const entry of due) {
    const planned = planEntry(entry, moment);
    if (planned === undefined) continue;
    batch.push(planned);
    records += planned.slots.records.length;
    tasks += planned.slots.tasks.length;
    if (batch.length < policiesPerBatchMax && records < recordsPerBatchMax && tasks < tasksPerBatchMax) continue;
    yield batch;
    batch = [];
    records = 0;
    tasks = 0;
  }
  if (batch.length > 0) yield batch;
}

function planEntry(entry: Entry, moment: PlanningMoment): PlannedEntry | undefined {
  const { policy, watermarkMs, followers } = entry;
  const due = planPolicy(entry, moment);
  if (due === undefined) return undefined;
  const { plans, newWatermarkMs } = due;
  return {
    entry,
    plans,
    slots: {
      policy: policy.name,
      expectedWatermarkMs: watermarkMs,
      newWatermarkMs,
      records: toRecords(policy, plans),
      tasks: toTasks(policy, plans),
      timezone: timezoneOf(policy),
      ...(isNotified(policy) ? { isNotified: true } : {}),
      ...(followers.length === 0 ? {} : { followers, plannedAtMs: moment.nowMs }),
    },
  };
}

/** Plans the due slots of one policy, by Redis's clock or a virtual one; undefined: none is due. */
export function planPolicy(
  { policy, source, watermarkMs }: Pick<Entry, "policy" | "source" | "watermarkMs">,
  moment: PlanningMoment,
): { readonly plans: readonly SlotPlan[]; readonly newWatermarkMs: number } | undefined {
  const slotsMs = source.due(watermarkMs, moment.nowMs);
  const newWatermarkMs = slotsMs.at(-1);
  if (newWatermarkMs === undefined) return undefined;
  // Only a backlog takes several batches: then there are newer slots than these, which `all`
  // prefers.
  const hasMore = policy.catchUp === "all" && slotsMs.length === slotsPerRunMax;
  const newer = hasMore ? source.due(newWatermarkMs, moment.nowMs) : [];
  return { plans: planSlots(policy, slotsMs, { ...moment, newer }), newWatermarkMs };
}
