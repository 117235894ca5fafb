// What audits say, in words and as data. Pure; called by `syncline audit`, its page and the API.
import { formatDuration } from "../core/duration.ts";
import { toIso } from "../core/instant.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import type { SlotAudit } from "../schedule/audit-slots.ts";
import { onTimeMs } from "../schedule/plan-slots.ts";
import type { AuditFinding, AuditReport } from "./audit-policy.ts";

/** What a slot's record says of it, in the order of the columns. */
export const auditStates = [
  "started",
  "coalesced",
  "skipped",
  "missed",
] as const satisfies readonly SlotRecord["state"][];

/** What each finding means. */
export const auditMeaning = {
  lost: "was due and has no record, though its policy is planned further: the record is lost",
  unplanned: "was due and is not planned: no scheduler has looked since",
  "no-slot": "has a record, and the schedule has no such slot",
  "no-outcome": "started, and this task has neither an outcome nor a place in the queue",
} as const satisfies Record<AuditFinding["problem"], string>;

/** Says "planned = recorded" only where it is true; pending slots are counted beside it. */
export function auditSum(reports: readonly AuditReport[], off: number): string {
  const sum = (of: (audit: SlotAudit) => number) =>
    reports.reduce((total, { audit }) => total + (audit === undefined ? 0 : of(audit)), 0);
  const slots = sum((audit) => audit.slots);
  const [pending, waiting] = [sum((audit) => audit.pending), sum((audit) => audit.waiting)];
  const open = [
    ...(pending === 0 ? [] : [`${pending} of the last ${formatDuration(onTimeMs)} are not planned yet`]),
    ...(waiting === 0 ? [] : [`${waiting} wait for their predecessor`]),
  ];
  if (off > 0) return [`${off} of ${slots} slots are off`, ...open].join("; ");
  const inFlight = reports.reduce((total, report) => total + report.inFlight, 0);
  const ended = inFlight === 0 ? "none without an outcome" : `none without an outcome but ${inFlight} in flight`;
  if (slots === 0) return "no slot was due there: nothing was checked";
  if (open.length === 0) return `planned = recorded: ${slots} slots, none lost, ${ended}`;
  const recorded = slots - pending - waiting;
  return `${recorded} of ${slots} slots are recorded, none lost, ${ended}; ${open.join("; ")}: look again`;
}

/** A report for machines, without its findings. */
export function auditToJson({
  policy,
  audit,
  outcomesSinceMs,
  inFlight,
  notes,
  findings,
  missed,
}: AuditReport): object {
  if (audit === undefined) return { policy, slots: 0, notes };
  return {
    policy,
    after: toIso(audit.afterMs),
    to: toIso(audit.toMs),
    slots: audit.slots,
    recorded: audit.records.length,
    pending: audit.pending,
    waiting: audit.waiting,
    states: Object.fromEntries(auditStates.map((state) => [state, countOf(audit, state)])),
    outcomesKeptSince: toIso(outcomesSinceMs),
    missed: missed.map(({ slotMs, why }) => ({ slot: toIso(slotMs), why })),
    inFlight,
    off: findings.length,
    notes,
  };
}

/** How many slots of an audit have this record. */
export function countOf({ records }: SlotAudit, state: SlotRecord["state"]): number {
  return records.filter((record) => record.state === state).length;
}
