// The audit "planned = recorded": compares the calendar with the ledger. Pure; called by `syncline
// audit`. It judges no slot from before the oldest record or before the present schedule.
import type { Policy } from "../config/policy-set.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import { onTimeMs } from "./plan-slots.ts";
import { scheduleHash } from "./slot-tasks.ts";
import { createChainSource, dueSlots } from "./slots.ts";

/** The most slots that one audit of a policy recomputes. */
export const auditedSlotsMax = 10_000;

/** The ledger's records of a policy, and the interval to audit. Instants are milliseconds UTC. */
export interface AuditInput {
  readonly watermarkMs: number | undefined;
  readonly keptSinceMs: number | undefined;
  /** Oldest first. */
  readonly records: readonly SlotRecord[];
  /** The first instant to audit; the oldest record unless given. */
  readonly fromMs: number | undefined;
  /** The last instant to audit. */
  readonly toMs: number;
  readonly nowMs: number;
  /** Slots that wait for their predecessor: they have no record yet. */
  readonly waiting?: ReadonlySet<number>;
}

/** `lost`: below the watermark without a record; `unplanned`: due; `no-slot`: a record too many. */
export interface SlotFinding {
  readonly slotMs: number;
  readonly problem: "lost" | "unplanned" | "no-slot";
}

/** The audit of the slots after `afterMs` up to and including `toMs`. */
export interface SlotAudit {
  readonly afterMs: number;
  readonly toMs: number;
  /** Why it begins later than asked. */
  readonly limitedBy: "memory" | "schedule-changed" | undefined;
  /** True when it ends early, after `auditedSlotsMax` slots. */
  readonly isCut: boolean;
  readonly slots: number;
  /** Slots of the last half minute without a record: a scheduler may still plan them. */
  readonly pending: number;
  /** Slots that wait for their predecessor. */
  readonly waiting: number;
  /** The records of this interval, oldest first. */
  readonly records: readonly SlotRecord[];
  readonly findings: readonly SlotFinding[];
}

/** Audits the slots of a policy or its chain; undefined when none is planned here. */
export function auditSlots(policy: Policy, input: AuditInput): SlotAudit | undefined {
  const source = createChainSource(policy);
  if (source === undefined || input.watermarkMs === undefined) return undefined;
  const { afterMs, limitedBy } = beginOf(policy, input);
  const endMs = Math.min(input.toMs, input.nowMs);
  const slots = dueSlots(source, afterMs, endMs, auditedSlotsMax);
  const isCut = slots.length === auditedSlotsMax && dueSlots(source, slots.at(-1) ?? afterMs, endMs, 1).length > 0;
  const toMs = isCut ? (slots.at(-1) ?? endMs) : endMs;
  const records = input.records.filter(({ slotMs }) => slotMs > afterMs && slotMs <= toMs);
  return {
    afterMs,
    toMs,
    limitedBy,
    isCut,
    slots: slots.length,
    records,
    ...compare(slots, records, { waiting: new Set(), ...input, watermarkMs: input.watermarkMs }),
  };
}

function compare(
  slots: readonly number[],
  records: readonly SlotRecord[],
  {
    watermarkMs,
    nowMs,
    waiting,
  }: { readonly watermarkMs: number; readonly nowMs: number; readonly waiting: ReadonlySet<number> },
): Pick<SlotAudit, "pending" | "waiting" | "findings"> {
  const planned = new Set(slots);
  const recorded = new Set(records.map(({ slotMs }) => slotMs));
  const findings: SlotFinding[] = [];
  let [pending, waitingSlots] = [0, 0];
  for (const slotMs of slots) {
    if (recorded.has(slotMs)) continue;
    if (waiting.has(slotMs)) waitingSlots += 1;
    else if (slotMs <= watermarkMs) findings.push({ slotMs, problem: "lost" });
    else if (nowMs - slotMs > onTimeMs) findings.push({ slotMs, problem: "unplanned" });
    else pending += 1;
  }
  for (const { slotMs } of records) if (!planned.has(slotMs)) findings.push({ slotMs, problem: "no-slot" });
  return { pending, waiting: waitingSlots, findings: findings.sort((a, b) => a.slotMs - b.slotMs) };
}

function beginOf(
  policy: Policy,
  { fromMs, keptSinceMs, records }: AuditInput,
): Pick<SlotAudit, "afterMs" | "limitedBy"> {
  const hash = scheduleHash(policy);
  const otherSchedule = records.findLast(({ schedule }) => schedule !== undefined && schedule !== hash);
  const memoryMs = keptSinceMs ?? (records[0]?.slotMs ?? 0) - 1;
  const changedMs = otherSchedule?.slotMs ?? memoryMs;
  const floorMs = Math.max(memoryMs, changedMs);
  if (fromMs !== undefined && fromMs > floorMs) return { afterMs: fromMs - 1, limitedBy: undefined };
  const memory = fromMs === undefined ? undefined : "memory";
  return { afterMs: floorMs, limitedBy: otherSchedule === undefined ? memory : "schedule-changed" };
}
