// Prints what `syncline audit` found. audit.ts decides what is a finding.
import { formatDuration } from "../core/duration.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import type { SlotAudit, SlotFinding } from "../schedule/audit-slots.ts";
import { onTimeMs } from "../schedule/plan-slots.ts";
import type { CommandIo } from "./command-io.ts";
import { showInstant, toTable } from "./table.ts";

/**
 * One finding. `no-outcome`: a task of a started slot has neither an outcome nor a place in the
 * queue.
 */
export interface AuditFinding {
  readonly slotMs: number;
  readonly problem: SlotFinding["problem"] | "no-outcome";
  readonly taskId: string | null;
}

/** The findings of one policy. */
export interface AuditReport {
  readonly policy: string;
  /** undefined when it has no slots. */
  readonly audit: SlotAudit | undefined;
  /**
   * Tasks were checked from this slot on, since older outcomes are not kept; undefined: in all
   * slots.
   */
  readonly outcomesSinceMs: number | undefined;
  readonly inFlight: number;
  readonly notes: readonly string[];
  readonly findings: readonly AuditFinding[];
  /** Slots recorded as missed, oldest first; no finding. */
  readonly missed: readonly { readonly slotMs: number; readonly why: string }[];
}

const linesMax = 100;
const missedLinesMax = 20;
const states = ["started", "coalesced", "skipped", "missed"] as const satisfies readonly SlotRecord["state"][];

const meaning = {
  lost: "was due and has no record, though its policy is planned further: the record is lost",
  unplanned: "was due and is not planned: no scheduler has looked since",
  "no-slot": "has a record, and the schedule has no such slot",
  "no-outcome": "started, and this task has neither an outcome nor a place in the queue",
} as const satisfies Record<AuditFinding["problem"], string>;

interface PrintOptions {
  readonly io: CommandIo;
  readonly json: boolean;
}

/** Prints the reports: one row a policy, then the findings. */
export function printAudit(reports: readonly AuditReport[], { io, json }: PrintOptions): void {
  const findings = reports.flatMap((report) =>
    report.findings.map((finding) => ({ policy: report.policy, ...finding })),
  );
  if (json) {
    const shown = findings.map(({ slotMs, ...finding }) => ({ ...finding, slot: new Date(slotMs).toISOString() }));
    io.out(JSON.stringify({ ok: findings.length === 0, policies: reports.map(toJson), findings: shown }));
    return;
  }
  const heading = ["policy", "from", "to", "slots", ...states, "in flight", "off", ""];
  io.out(toTable(heading, reports.map(toRow), io.colours));
  for (const { policy, slotMs, problem, taskId } of findings.slice(0, linesMax))
    io.out(`${policy} ${showInstant(slotMs)} ${meaning[problem]}${taskId === null ? "" : `: ${taskId}`}`);
  if (findings.length > linesMax) io.out(`and ${findings.length - linesMax} more; --json lists all`);
  printMissed(reports, io);
  const shortened = reports.filter(({ outcomesSinceMs }) => outcomesSinceMs !== undefined).length;
  if (shortened > 0)
    io.err(
      `of ${shortened} ${shortened === 1 ? "policy" : "policies"} older outcomes are no longer kept (see its row): tasks of those slots were not looked for`,
    );
  io.out(sumOf(reports, findings.length));
  io.err("a slot is a key of its policy's ledger, so none can be recorded twice");
}

/** Says "planned = recorded" only where it is true; pending slots are counted beside it. */
function sumOf(reports: readonly AuditReport[], off: number): string {
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

/** The newest missed slots, with the reason: each needs a person. */
function printMissed(reports: readonly AuditReport[], io: CommandIo): void {
  const all = reports.flatMap(({ policy, missed }) => missed.map((slot) => ({ policy, ...slot })));
  const newest = all.toSorted((a, b) => b.slotMs - a.slotMs);
  for (const { policy, slotMs, why } of newest.slice(0, missedLinesMax))
    io.out(`${policy} ${showInstant(slotMs)} was missed: ${why}`);
  if (newest.length > missedLinesMax)
    io.out(`and ${newest.length - missedLinesMax} older missed slots; --json lists all`);
}

function toRow({ policy, audit, outcomesSinceMs, inFlight, notes, findings }: AuditReport): string[] {
  if (audit === undefined) return [policy, "", "", "0", ...states.map(() => ""), "", "0", notes.join("; ")];
  const counts = states.map((state) => String(audit.records.filter((record) => record.state === state).length));
  const interval = [showInstant(audit.afterMs + 1), showInstant(audit.toMs)];
  const kept = outcomesSinceMs === undefined ? [] : [`outcomes are kept since ${showInstant(outcomesSinceMs)}`];
  const tail = [String(inFlight), String(findings.length), [...notes, ...kept].join("; ")];
  return [policy, ...interval, String(audit.slots), ...counts, ...tail];
}

function toJson({ policy, audit, outcomesSinceMs, inFlight, notes, findings, missed }: AuditReport): object {
  if (audit === undefined) return { policy, slots: 0, notes };
  return {
    policy,
    after: new Date(audit.afterMs).toISOString(),
    to: new Date(audit.toMs).toISOString(),
    slots: audit.slots,
    recorded: audit.records.length,
    pending: audit.pending,
    waiting: audit.waiting,
    states: Object.fromEntries(
      states.map((state) => [state, audit.records.filter((record) => record.state === state).length]),
    ),
    outcomesKeptSince: outcomesSinceMs === undefined ? null : new Date(outcomesSinceMs).toISOString(),
    missed: missed.map(({ slotMs, why }) => ({ slot: new Date(slotMs).toISOString(), why })),
    inFlight,
    off: findings.length,
    notes,
  };
}
