// How `syncline audit` shows what it found. Never judges: audit.ts does.
import type { SlotAudit, SlotFinding } from "../schedule/audit-slots.ts";
import type { SlotRecord } from "../tasks/slot-record.ts";
import type { CommandIo } from "./command-io.ts";
import { showInstant, toTable } from "./table.ts";

/** One thing that is off. `no-outcome`: a task of a started slot has neither an outcome nor a place in the queue. */
export interface Finding {
  readonly slotMs: number;
  readonly problem: SlotFinding["problem"] | "no-outcome";
  readonly taskId: string | null;
}

/** What was found for one policy. */
export interface AuditReport {
  readonly policy: string;
  /** undefined when it has no slots. */
  readonly audit: SlotAudit | undefined;
  readonly inFlight: number;
  readonly notes: readonly string[];
  readonly findings: readonly Finding[];
}

const linesMax = 100;
const states = ["started", "coalesced", "skipped", "missed"] as const satisfies readonly SlotRecord["state"][];

const meaning = {
  lost: "was due and has no record, though its policy is planned further: the record is lost",
  unplanned: "was due and is not planned: no scheduler has looked since",
  "no-slot": "has a record, and the schedule has no such slot",
  "no-outcome": "started, and this task has neither an outcome nor a place in the queue",
} as const satisfies Record<Finding["problem"], string>;

interface PrintOptions {
  readonly io: CommandIo;
  readonly json: boolean;
  readonly outcomesSinceMs: number | undefined;
}

/** Prints the reports: one row a policy, then what is off. */
export function printAudit(reports: readonly AuditReport[], { io, json, outcomesSinceMs }: PrintOptions): void {
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
  if (outcomesSinceMs !== undefined)
    io.err(`outcomes are kept since ${showInstant(outcomesSinceMs)}: tasks of older slots were not looked for`);
  const slots = reports.reduce((sum, { audit }) => sum + (audit?.slots ?? 0), 0);
  if (findings.length === 0) io.out(`planned = recorded: ${slots} slots, none lost, none without an outcome`);
  else io.out(`${findings.length} of ${slots} slots are off`);
  io.err("a slot is a key of its policy's ledger, so none can be recorded twice");
}

function toRow({ policy, audit, inFlight, notes, findings }: AuditReport): string[] {
  if (audit === undefined) return [policy, "", "", "0", ...states.map(() => ""), "", "0", notes.join("; ")];
  const counts = states.map((state) => String(audit.records.filter((record) => record.state === state).length));
  const interval = [showInstant(audit.afterMs + 1), showInstant(audit.toMs)];
  const tail = [String(inFlight), String(findings.length), notes.join("; ")];
  return [policy, ...interval, String(audit.slots), ...counts, ...tail];
}

function toJson({ policy, audit, inFlight, notes, findings }: AuditReport): object {
  if (audit === undefined) return { policy, slots: 0, notes };
  return {
    policy,
    after: new Date(audit.afterMs).toISOString(),
    to: new Date(audit.toMs).toISOString(),
    slots: audit.slots,
    recorded: audit.records.length,
    states: Object.fromEntries(
      states.map((state) => [state, audit.records.filter((record) => record.state === state).length]),
    ),
    inFlight,
    off: findings.length,
    notes,
  };
}
