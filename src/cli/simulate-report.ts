// Renders the result of `simulate` for people and for machines, and holds it against the limits for
// CI. Called by simulate.ts.
import { describeExpectation, type Policy } from "../config/policy-set.ts";
import { formatDuration } from "../core/duration.ts";
import { showInstant, toIso } from "../core/instant.ts";
import { lowest } from "../core/min-heap.ts";
import { someNames } from "../core/plain-text.ts";
import type { Assumptions } from "../simulate/assumptions.ts";
import { type Load, minuteToJson, showMinute } from "../simulate/load-meter.ts";
import type { SlotRow } from "../simulate/slot-list.ts";
import { type Counts, noCounts, type Totals } from "../simulate/totals.ts";
import type { VirtualTime } from "../simulate/virtual-ticks.ts";
import type { Screen } from "./command-io.ts";
import { describeAssumptions, showRange } from "./look-ahead.ts";
import { toTable } from "./table.ts";
import { showTimes } from "./time-argument.ts";

/** The result of a simulation. */
export interface SimulationReport {
  readonly policies: readonly Policy[];
  readonly time: VirtualTime;
  /** In which times were read. */
  readonly timezone: string;
  readonly assumptions: Assumptions;
  readonly totals: Totals;
  readonly load: Load;
  readonly loads: ReadonlyMap<string, Load>;
  readonly limits: readonly LimitResult[];
  /** Every slot, if asked for. */
  readonly rows: readonly SlotRow[] | undefined;
  readonly tookMs: number;
}

/** The values of the options. */
export interface LimitOptions {
  readonly maxOverlaps?: number;
  readonly maxMissed?: number;
  readonly maxSkipped?: number;
  readonly maxLate?: number;
  readonly maxPeak?: number;
}

/** One limit, and whether it holds. */
export interface LimitResult {
  readonly limit: "overlaps" | "missed" | "skipped" | "late" | "peak";
  readonly max: number;
  readonly is: number;
  readonly isOver: boolean;
}

/** What the limits count: slots and tasks together, each once. */
function limitedCounts({ overlaps, skipped, missed, notStarted }: Counts) {
  return {
    overlaps,
    missed: sum(missed) + notStarted["too-late"],
    skipped: sum(skipped) + notStarted.overlap,
  };
}

/** Compares the limits with the totals. `peak`: the most starts in one minute. */
export function findLimits(options: LimitOptions, totals: Counts, peak: number): readonly LimitResult[] {
  const { overlaps, missed, skipped } = limitedCounts(totals);
  const all = [
    { limit: "overlaps", max: options.maxOverlaps, is: overlaps },
    { limit: "missed", max: options.maxMissed, is: missed },
    { limit: "skipped", max: options.maxSkipped, is: skipped },
    { limit: "late", max: options.maxLate, is: totals.deadlines.late },
    { limit: "peak", max: options.maxPeak, is: peak },
  ] as const;
  return all.flatMap(({ limit, max, is }) => (max === undefined ? [] : [{ limit, max, is, isOver: is > max }]));
}

/** How many policies the table for people shows; the JSON has all. */
const rowsMax = 50;

/** The report for people. */
export function reportToText(report: SimulationReport, screen: Screen): string {
  const { policies, time, timezone, assumptions, totals, limits, rows } = report;
  const scheduled = policies.filter(hasSchedule);
  const unscheduled = policies.filter((policy) => !hasSchedule(policy)).map(({ name }) => name);
  const seconds = (report.tookMs / 1_000).toFixed(1);
  const parts = [
    `Simulated ${showTimes(time, timezone)}: ${several(scheduled.length, "policy", "policies")}, ${several(totals.all.slots, "slot", "slots")}, in ${seconds} s.`,
    `Assumed: ${[...describeAssumptions(assumptions, scheduled), ...assumedInputs(scheduled)].join("; ")}.`,
    ...(unscheduled.length === 0 ? [] : [`Not simulated, without a schedule: ${someNames(unscheduled)}.`]),
    "",
    policyTable(scheduled, totals, screen),
    "",
    serviceTable(report, screen),
    ...deadlineLines(scheduled, totals),
    ...problemLines(totals, screen),
    ...(rows === undefined ? [] : ["", slotTable(rows, screen)]),
    ...limitLines(limits),
  ];
  return parts.join("\n");
}

function assumedInputs(policies: readonly Policy[]): string[] {
  return policies.some(({ needs }) => needs !== undefined) ? ["what policies need is fresh at the beginning"] : [];
}

/** Whether a policy has slots: one that runs by hand only has none. */
function hasSchedule({ schedule, after }: Policy): boolean {
  return schedule !== undefined || after !== undefined;
}

function limitLines(limits: readonly LimitResult[]): string[] {
  const over = limits.filter(({ isOver }) => isOver);
  return over.length === 0
    ? []
    : ["", ...over.map(({ limit, max, is }) => `over the limit: ${limit} ${is}, at most ${max}`)];
}

function policyTable(policies: readonly Policy[], totals: Totals, screen: Screen): string {
  const countsOf = ({ name }: Policy) => totals.byPolicy.get(name) ?? noCounts();
  const trouble = (policy: Policy) => {
    const { overlaps, missed, skipped } = limitedCounts(countsOf(policy));
    return overlaps + missed + skipped;
  };
  const isLong = policies.length > rowsMax;
  const shown = isLong ? lowest(policies, rowsMax, (policy) => -trouble(policy)) : policies;
  const rows = shown.map((policy) => countRow(policy.name, countsOf(policy)));
  if (policies.length > 1) rows.push(countRow("all", totals.all));
  const heading = ["policy", "slots", "started", "coalesced", "skipped", "missed", "tasks", "not started"];
  heading.push("at once", "waited", "longest wait");
  const idle = heading.filter((_, column) => rows.every((row) => /^0?$/.test(row[column] ?? "")));
  const table = toTable(heading, rows, screen, { leaveOut: [...idle, "coalesced", "longest wait", "at once"] });
  return isLong ? `${table}\n(the ${rowsMax} policies with most trouble; --json has all ${policies.length})` : table;
}

function countRow(name: string, counts: Counts): string[] {
  const { slots, started, late, coalesced, skipped, missed, runs, ended, notStarted, waited, atOnce } = counts;
  return [
    name,
    String(slots),
    late === 0 ? String(started) : `${started}, ${late} late`,
    String(coalesced),
    reasons(skipped),
    reasons(missed),
    [String(runs), ...(sum(ended) === 0 ? [] : [reasons(ended)])].join(", "),
    reasons(notStarted),
    String(atOnce),
    reasons({ "behind a run": waited.behindRun, "for a worker": waited.forWorker }),
    counts.longestWaitMs === 0 ? "" : roundedDuration(counts.longestWaitMs),
  ];
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

/** `3 blackout, 1 holiday`, or `0`. */
function reasons(counts: Readonly<Record<string, number>>): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  return some.length === 0 ? "0" : some.map(([reason, count]) => `${count} ${reason}`).join(", ");
}

function roundedDuration(durationMs: number): string {
  return formatDuration(durationMs < 1_000 ? durationMs : Math.round(durationMs / 1_000) * 1_000);
}

function serviceTable({ load, loads }: SimulationReport, screen: Screen): string {
  const rows = [...loads].map(([service, one]) => loadRow(service, one));
  if (loads.size !== 1) rows.push(loadRow("all", load));
  return toTable(["service", "starts", "most runs at once", "busiest minute", "of"], rows, screen);
}

function loadRow(name: string, { starts, busiest, runsAtOnce }: Load): string[] {
  const [minute] = busiest;
  const atOnce = runsAtOnce.atMs === undefined ? "0" : `${runsAtOnce.runs}, ${showInstant(runsAtOnce.atMs)}`;
  if (minute === undefined) return [name, String(starts), atOnce, "", ""];
  const [most, when, of] = showMinute(minute);
  return [name, String(starts), atOnce, `${most}, ${when}`, of];
}

function deadlineLines(policies: readonly Policy[], { byPolicy }: Totals): string[] {
  const lines = policies.flatMap(({ name, expect }) => {
    const deadlines = byPolicy.get(name)?.deadlines;
    if (expect === undefined || deadlines === undefined) return [];
    return [`  ${name}, ${describeExpectation(expect)}: ${reasons(deadlines)}`];
  });
  return lines.length === 0 ? [] : ["", "Deadlines:", ...lines];
}

function problemLines({ problems, problemsCount }: Totals, screen: Screen): string[] {
  if (problemsCount === 0) return ["", "No problem."];
  const rows = problems.map(({ policy, slotMs, target, problem, why }) => [
    policy.name,
    showInstant(slotMs, policy.timezone),
    showInstant(slotMs),
    target ?? "",
    problem,
    why,
  ]);
  const title =
    problems.length < problemsCount ? `The first ${problems.length} of ${problemsCount} problems:` : "Problems:";
  return [
    "",
    title,
    toTable(["policy", "slot (local)", "slot (utc)", "target", "problem", "why"], rows, screen, {
      leaveOut: ["slot (utc)"],
    }),
  ];
}

function slotTable(slots: readonly SlotRow[], screen: Screen): string {
  const rows = slots.map((row) => [
    row.policy.name,
    showInstant(row.slotMs, row.policy.timezone),
    showInstant(row.slotMs),
    row.state,
    row.detail,
    row.state === "started" ? String(row.runs) : "",
    reasons({ overlap: row.overlap, "too late": row.tooLate, "at once": row.atOnce }).replace(/^0$/, ""),
    row.longestWaitMs === 0 ? "" : roundedDuration(row.longestWaitMs),
  ]);
  return toTable(["policy", "local", "utc", "state", "detail", "tasks", "trouble", "wait"], rows, screen, {
    leaveOut: ["utc"],
  });
}

/** The report for machines: all policies, and the problems that were kept. */
export function reportToJson(report: SimulationReport): object {
  const { policies, time, assumptions, totals, load, loads, limits, rows } = report;
  const scheduled = policies.filter(hasSchedule);
  const intervals = (all: VirtualTime["outages"]) =>
    all.map((one) => ({ from: toIso(one.fromMs), to: toIso(one.toMs) }));
  return {
    from: toIso(time.fromMs),
    to: toIso(time.toMs),
    outages: intervals(time.outages),
    assumptions: {
      duration: showRange(assumptions.durations.otherwise),
      durations: Object.fromEntries([...assumptions.durations.byPolicy].map(([name, one]) => [name, showRange(one)])),
      maskJobs: assumptions.maskJobs.otherwise,
      maskJobsByPolicy: Object.fromEntries(assumptions.maskJobs.byPolicy),
      failures: assumptions.failures.otherwise,
      failuresByPolicy: Object.fromEntries(assumptions.failures.byPolicy),
      requestMs: assumptions.requestMs,
      seed: assumptions.seed,
    },
    totals: totals.all,
    policies: scheduled.map(({ name, service }) => ({
      policy: name,
      service,
      ...(totals.byPolicy.get(name) ?? noCounts()),
    })),
    notSimulated: policies.filter((policy) => !hasSchedule(policy)).map(({ name }) => name),
    load: loadToJson(load),
    services: Object.fromEntries([...loads].map(([service, one]) => [service, loadToJson(one)])),
    problemsCount: totals.problemsCount,
    problems: totals.problems.map(({ policy, slotMs, target, problem, why }) => ({
      policy: policy.name,
      slot: toIso(slotMs),
      local: showInstant(slotMs, policy.timezone),
      target: target ?? null,
      problem,
      why,
    })),
    limits,
    ...(rows === undefined ? {} : { slots: rows.map(slotToJson) }),
  };
}

function loadToJson({ starts, busiest, runsAtOnce }: Load): object {
  const atOnce = { runs: runsAtOnce.runs, at: toIso(runsAtOnce.atMs) };
  return { starts, runsAtOnce: atOnce, busiestMinutes: busiest.map(minuteToJson) };
}

function slotToJson({ policy, slotMs, plannedMs, endsMs, ...row }: SlotRow): object {
  return { policy: policy.name, slot: toIso(slotMs), planned: toIso(plannedMs), ends: toIso(endsMs), ...row };
}

function several(count: number, one: string, many: string): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
