// `syncline audit`: does every slot that was due have exactly one record, and every started one its
// outcomes?
import type { Command } from "commander";
import type { Policy } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { showInstant, toIso } from "../core/instant.ts";
import {
  type AuditFinding,
  type AuditReport,
  auditMeaning,
  auditStates,
  auditSum,
  auditToJson,
  countUnseen,
  describeUnchecked,
  notesFor,
  readAudits,
} from "../queries/audit-policy.ts";
import { readPresence, redisTimeMs } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import {
  choosePolicies,
  labelOption,
  type PolicyChoice,
  redisCommand,
  type SetOptions,
  withPolicies,
  withProducer,
} from "./shared-options.ts";
import { toTable, wideOption } from "./table.ts";
import { parseTime, showTimes, timeForms, timezoneFor, timezoneOption } from "./time-argument.ts";

interface AuditOptions extends SetOptions, PolicyChoice {
  readonly since?: string;
  readonly until?: string;
  readonly timezone?: string;
}

/** This process has nothing else to do, and more writes to Redis cost more than what they ask. */
const atOnce = 25;
const linesMax = 100;
const missedLinesMax = 20;

const help = `
Recomputes which slots were due and holds them against the ledger: a slot without a record, a record without a slot, a started slot with a task that has neither an outcome nor a place in the queue. Exit 1 when something is off. A policy that no scheduler has planned is counted (\`unseen\`), and is not off.
It looks as far back as the ledger remembers (1,000 slots a policy, 31 days, since the present schedule) and says where that begins; tasks of slots that are older than the outcomes that their policy keeps are not looked for, and it says so, too.
Times: ${timeForms}.

Examples:
  $ syncline audit
  $ syncline audit contracts-nightly --since 2026-11-01 --json`;

/** The command `audit`. */
export function auditCommand(io: CommandIo): Command {
  return redisCommand("audit", "set")
    .argument("[policies...]", "only these policies")
    .option("--since <time>", "the first instant to look at")
    .option("--until <time>", "the last instant to look at (default: now)")
    .addOption(timezoneOption())
    .addOption(labelOption())
    .option("--json", "print JSON")
    .addOption(wideOption())
    .addHelpText("after", help)
    .action((names: readonly string[], options: AuditOptions) =>
      withPolicies(options, io, async ({ set, store, target }) => {
        const wanted = choosePolicies(set, { ...options, names });
        const span = auditedSpan(options, { nowMs: await redisTimeMs(store), wanted });
        const reports = await withProducer(target, (producer) =>
          readAudits({ store, producer, set }, wanted, span, { atOnce, signal: io.signal }),
        );
        const hasScheduler = (await readPresence(store)).schedulers > 0;
        const isWhole = reports.length === wanted.length;
        show(reports, isWhole, options, io);
        if (!isWhole) {
          io.err(`stopped before its end: ${reports.length} of ${wanted.length} policies were looked at`);
          io.exitCode = 1;
        }
        if (!hasScheduler) io.err("no scheduler is alive: no slot is planned until one starts");
        if (reports.some(({ findings }) => findings.length > 0)) io.exitCode = 1;
      }),
    );
}

function auditedSpan(
  { since, until, timezone }: AuditOptions,
  { nowMs, wanted }: { readonly nowMs: number; readonly wanted: readonly Policy[] },
) {
  const now = { nowMs, timezone: timezoneFor(timezone, wanted), side: "past" } as const;
  const fromMs = since === undefined ? undefined : parseTime(since, "--since", now);
  const toMs = until === undefined ? undefined : parseTime(until, "--until", now);
  if (fromMs !== undefined && toMs !== undefined && fromMs > toMs)
    throw new UsageError(`--until is before --since: ${showTimes({ fromMs, toMs }, now.timezone)}`);
  return { fromMs, toMs };
}

function show(reports: readonly AuditReport[], isWhole: boolean, { json }: AuditOptions, io: CommandIo): void {
  const off = reports.reduce((sum, { findings }) => sum + findings.length, 0);
  if (json) {
    const shown = reports.flatMap(({ policy, findings }) =>
      findings.map(({ slotMs, ...finding }) => ({ policy, ...finding, slot: toIso(slotMs) })),
    );
    const sum = { ok: off === 0 && isWhole, unseen: countUnseen(reports) };
    io.out(JSON.stringify({ v: 1, ...sum, policies: reports.map(auditToJson), findings: shown }));
    return;
  }
  const heading = ["policy", "from", "to", "slots", ...auditStates, "in flight", "off", ""];
  io.out(toTable(heading, reports.map(toRow), io, { leaveOut: ["to", "from"] }));
  const lines = reports.flatMap(linesOf);
  for (const line of lines.slice(0, linesMax)) io.out(line);
  if (lines.length > linesMax) io.out(`and ${lines.length - linesMax} more like these; --json lists all`);
  printMissed(reports, io);
  if (isWhole) io.out(auditSum(reports, off));
  else for (const line of describeUnchecked(reports)) io.err(line);
  io.err("a slot is a key of its policy's ledger, so none can be recorded twice");
}

/** The findings of a policy: a line for each task, and one for all slots with the same problem. */
function linesOf({ policy, findings }: AuditReport): readonly string[] {
  const alike = Map.groupBy(findings, ({ problem, taskId }) => `${problem} ${taskId}`);
  return [...alike.values()].map((group) => {
    const [{ problem, taskId }] = group as [AuditFinding];
    const slots = group.map(({ slotMs }) => slotMs);
    const [from, to] = [Math.min(...slots), Math.max(...slots)].map((slotMs) => showInstant(slotMs));
    const span = slots.length === 1 ? "" : ` to ${to}: ${slots.length} slots; each`;
    return `${policy} ${from}${span} ${auditMeaning[problem]}${taskId === null ? "" : `: ${taskId}`}`;
  });
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

function toRow(report: AuditReport): string[] {
  const { policy, audit, inFlight, findings } = report;
  if (audit === undefined) return [policy, "", "", "0", ...auditStates.map(() => ""), "", "0", notesFor(report)];
  const counts = auditStates.map((state) => String(audit.states[state]));
  const interval = [showInstant(audit.afterMs + 1), showInstant(audit.toMs)];
  const tail = [String(inFlight), String(findings.length), notesFor(report)];
  return [policy, ...interval, String(audit.slots), ...counts, ...tail];
}
