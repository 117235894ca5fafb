// Planned = recorded: holds what the calendar says against what the ledger has. Pure; called by `syncline audit`.
// What it cannot know it does not judge: slots before the ledger's memory begins, and before the present schedule held.
import type { Policy } from "../config/policy-set.ts";
import type { SlotRecord } from "../tasks/slot-record.ts";
import { onTimeMs } from "./plan-slots.ts";
import { scheduleHash } from "./slot-tasks.ts";
import { createChainSource } from "./slots.ts";

/** The most slots that one audit of a policy recomputes. */
export const auditedSlotsMax = 10_000;

/** What the ledger has of a policy, and which part of it to look at. Instants are milliseconds UTC. */
export interface AuditInput {
  readonly markMs: number | undefined;
  readonly keptSinceMs: number | undefined;
  /** Oldest first. */
  readonly records: readonly SlotRecord[];
  /** The first instant to look at; the ledger's whole memory unless given. */
  readonly fromMs: number | undefined;
  /** The last instant to look at. */
  readonly toMs: number;
  readonly nowMs: number;
  /** Slots that wait for the end of another policy's: they have no record yet. */
  readonly waiting?: ReadonlySet<number>;
}

/** A slot or a record that is off. `lost`: there was a record, or should be; `unplanned`: due, and no scheduler has looked since; `no-slot`: a record of what is no slot. */
export interface SlotFinding {
  readonly slotMs: number;
  readonly problem: "lost" | "unplanned" | "no-slot";
}

/** The audit of one policy's slots, of those after `afterMs` up to and including `toMs`. */
export interface SlotAudit {
  readonly afterMs: number;
  readonly toMs: number;
  /** Why it does not begin where it was asked to. */
  readonly limitedBy: "memory" | "schedule-changed" | undefined;
  /** True when it ends early, after `auditedSlotsMax` slots. */
  readonly isCut: boolean;
  readonly slots: number;
  /** The records of this interval, oldest first. */
  readonly records: readonly SlotRecord[];
  readonly findings: readonly SlotFinding[];
}

/** Audits the slots of one policy, its own or those of the policy that it follows; undefined when it has none, or no scheduler plans it here. */
export function auditSlots(policy: Policy, input: AuditInput): SlotAudit | undefined {
  const source = createChainSource(policy);
  if (source === undefined || input.markMs === undefined) return undefined;
  const { afterMs, limitedBy } = beginOf(policy, input);
  const endMs = Math.min(input.toMs, input.nowMs);
  const slots: number[] = [];
  let slot = source.next(afterMs);
  while (slot !== undefined && slot <= endMs && slots.length < auditedSlotsMax) {
    slots.push(slot);
    slot = source.next(slot);
  }
  const isCut = slot !== undefined && slot <= endMs;
  const toMs = isCut ? (slots.at(-1) ?? endMs) : endMs;
  const records = input.records.filter(({ slotMs }) => slotMs > afterMs && slotMs <= toMs);
  return {
    afterMs,
    toMs,
    limitedBy,
    isCut,
    slots: slots.length,
    records,
    findings: compare(slots, records, { waiting: new Set(), ...input, markMs: input.markMs }),
  };
}

function compare(
  slots: readonly number[],
  records: readonly SlotRecord[],
  {
    markMs,
    nowMs,
    waiting,
  }: { readonly markMs: number; readonly nowMs: number; readonly waiting: ReadonlySet<number> },
): SlotFinding[] {
  const [planned, recorded] = [new Set(slots), new Set(records.map(({ slotMs }) => slotMs))];
  const findings: SlotFinding[] = [];
  for (const slotMs of slots) {
    if (recorded.has(slotMs) || waiting.has(slotMs)) continue;
    if (slotMs <= markMs) findings.push({ slotMs, problem: "lost" });
    else if (nowMs - slotMs > onTimeMs) findings.push({ slotMs, problem: "unplanned" });
  }
  for (const { slotMs } of records) if (!planned.has(slotMs)) findings.push({ slotMs, problem: "no-slot" });
  return findings.sort((a, b) => a.slotMs - b.slotMs);
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
