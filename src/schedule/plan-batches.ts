// Plans due policies in bounded batches: each is recorded in one call and enqueued in one call.
// Pure; called by the scheduler, and policy by policy by the simulation.

import type { Policy } from "../config/policy-set.ts";
import { isNotified } from "../model/notify-event.ts";
import type { PlannedSlots } from "../model/slot-record.ts";
import type { Entry } from "./agenda.ts";
import {
  latenessMaxMs,
  type PlanningMoment,
  planLeftOut,
  planSkip,
  planSlots,
  type ScheduledPlan,
  type SlotPlan,
} from "./plan-slots.ts";
import { toRecords, toTasks } from "./slot-tasks.ts";
import { dueSlots, type SlotSource, slotsPerRoundMax } from "./slots.ts";

/** The planned slots of one policy, with what they were planned from. */
export interface PlannedEntry {
  readonly entry: Entry;
  readonly plans: readonly ScheduledPlan[];
  readonly slots: PlannedSlots;
}

const policiesPerBatchMax = 200;
const recordsPerBatchMax = 2_000;
const tasksPerBatchMax = 1_000;
const firstSpanMs = 60_000;

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
  const { policy, schedule, watermarkMs, followers } = entry;
  const due = policy.after === undefined ? planPolicy(entry, moment) : planFollowerAlone(entry, moment);
  if (due === undefined) return undefined;
  const { plans, newWatermarkMs } = due;
  return {
    entry,
    plans,
    slots: {
      policy: policy.name,
      schedule,
      expectedWatermarkMs: watermarkMs,
      newWatermarkMs,
      records: toRecords(policy, plans),
      tasks: toTasks(policy, plans),
      timezone: policy.timezone,
      ...(isNotified(policy) ? { isNotified: true } : {}),
      plannedAtMs: moment.nowMs,
      ...(followers.length === 0 ? {} : { followers }),
    },
  };
}

/** Plans the due slots of a follower without its chain: skipped, or missed as left out. */
function planFollowerAlone({ policy, source, watermarkMs }: Entry, { nowMs }: PlanningMoment) {
  const slotsMs = source.due(watermarkMs, nowMs);
  const newWatermarkMs = slotsMs.at(-1);
  if (newWatermarkMs === undefined) return undefined;
  return { plans: slotsMs.map((slotMs) => planLeftOut(policy, slotMs, nowMs)), newWatermarkMs };
}

/** Plans the due slots of one policy, by Redis's clock or a virtual one; undefined: none is due. */
export function planPolicy(
  { policy, source, watermarkMs }: Pick<Entry, "policy" | "source" | "watermarkMs">,
  moment: PlanningMoment,
): { readonly plans: readonly SlotPlan[]; readonly newWatermarkMs: number } | undefined {
  const slotsMs = source.due(watermarkMs, moment.nowMs);
  const newWatermarkMs = slotsMs.at(-1);
  if (newWatermarkMs === undefined) return undefined;
  // Only a backlog takes several batches: then there may be newer slots than these.
  const isFull = slotsMs.length === slotsPerRoundMax;
  const whole = isFull ? { ...moment, newer: newerThan(newWatermarkMs, policy, source, moment) } : moment;
  return { plans: planSlots(policy, slotsMs, whole), newWatermarkMs };
}

/** The newer slots that matter: `all` prefers them, for `latest` the newest open one counts. */
function newerThan(afterMs: number, policy: Policy, source: SlotSource, moment: PlanningMoment): readonly number[] {
  const { nowMs } = moment;
  if (policy.catchUp === "none") return [];
  if (policy.catchUp === "all") return source.due(afterMs, nowMs);
  const sinceMs = Math.max(afterMs, nowMs - latenessMaxMs(policy) - 1);
  // From now back, in longer and longer spans: mostly the first one has an open slot.
  let [toMs, spanMs] = [nowMs, firstSpanMs];
  while (toMs > sinceMs) {
    const fromMs = Math.max(sinceMs, toMs - spanMs);
    const slots = dueSlots(source, fromMs, toMs, Number.POSITIVE_INFINITY);
    const newestMs = slots.findLast((slotMs) => planSkip(policy, slotMs, moment) === undefined);
    if (newestMs !== undefined) return [newestMs];
    [toMs, spanMs] = [fromMs, spanMs * 2];
  }
  return [];
}
