// `syncline report`: what policies did on some days, against as many days before.
import { type Command, Option } from "commander";
import type { Policy } from "../config/policy-set.ts";
import { dayAfter, localDate } from "../core/instant.ts";
import { counted } from "../core/plain-text.ts";
import {
  besides,
  daysIn,
  type PolicyRow,
  type Report,
  type ReportRow,
  readReport,
  reportSummary,
  type SpanSums,
  showSpan,
  showTook,
  slowerPolicies,
} from "../queries/report.ts";
import { redisTimeMs } from "../store/redis.ts";
import type { CommandIo } from "./command-io.ts";
import {
  choosePolicies,
  countArgument,
  labelOption,
  type PolicyChoice,
  redisCommand,
  type SetOptions,
  withPolicies,
} from "./shared-options.ts";
import { paint, toTable, wideOption } from "./table.ts";
import { parsePast, timeForms, timezoneFor, timezoneOption } from "./time-argument.ts";

const rowsShownMax = 50;

interface ReportOptions extends SetOptions, PolicyChoice {
  readonly since: string;
  readonly until?: string;
  readonly timezone?: string;
  readonly slower?: true;
  readonly limit?: number;
  readonly markdown?: true;
}

const help = `
It counts whole days, each in the zone of its policy, from the first day that begins at --since or later (today, if none does). A task belongs to the day of its slot.
"good": succeeded, accepted. "bad": conflicts, failed, blocked, timed-out, unknown, not-started. Durations are those of runs that ended well, up to 5 % off; the change is that against as many days before.
It reaches 400 days back.
Times: ${timeForms}.

Examples:
  $ syncline report
  $ syncline report --since 30d --label team=hr
  $ syncline report --since yesterday --until today --markdown
  $ syncline report --since 90d --slower
  $ syncline report contracts-nightly --since 2026-11-01 --json | jq .all.now`;

/** The command `report`. */
export function reportCommand(io: CommandIo): Command {
  return redisCommand("report", "set")
    .argument("[policies...]", "only these policies")
    .option("--since <time>", "the first day", "7d")
    .option("--until <time>", "the end of the last day (default: now)")
    .addOption(timezoneOption())
    .addOption(labelOption())
    .option("--service <name>", "only policies of this service")
    .option("--slower", "only policies whose runs take longer than in the days before, the most grown first")
    .option(
      "-n, --limit <count>",
      `how many policies (default: ${rowsShownMax}; with --json all)`,
      countArgument(100_000),
    )
    .option("--json", "print JSON")
    .addOption(new Option("--markdown", "print Markdown").conflicts("json"))
    .addOption(wideOption())
    .addHelpText("after", help)
    .action((names: readonly string[], options: ReportOptions) =>
      withPolicies(options, io, async ({ set, store }) => {
        const policies = choosePolicies(set, { ...options, names });
        const days = daysOf(options, policies, await redisTimeMs(store));
        const withRemoved = names.length === 0 && options.service === undefined && options.label?.length === 0;
        show(await readReport(store, { policies, withRemoved, ...days }), options, io);
      }),
    );
}

/** The days asked for. @throws UsageError */
function daysOf({ since, until, timezone }: ReportOptions, policies: readonly Policy[], nowMs: number) {
  const zone = timezoneFor(timezone, policies);
  const { fromMs, toMs } = parsePast({ since, until }, { nowMs, timezone: zone });
  const today = localDate(nowMs, zone);
  const last = toMs > nowMs ? today : localDate(toMs - 1, zone);
  const first = dayAfter(localDate(fromMs - 1, zone), 1);
  return { span: { first: first > last ? last : first, last }, today };
}

function show(report: Report, options: ReportOptions, io: CommandIo): void {
  const rows = options.slower ? slowerPolicies(report) : report.policies;
  const shown = rows.slice(0, options.limit ?? (options.json ? rows.length : rowsShownMax));
  if (options.json) io.out(JSON.stringify({ v: 1, ...toJson(report), policies: shown.map(policyToJson) }));
  else {
    const none = options.slower ? "no policy is known to take a tenth longer than before" : "there is no policy";
    const toRows = options.markdown
      ? toMarkdown
      : (cells: readonly string[][]) => toTable(heading, cells, io, { leaveOut: ["longest", "p95"] });
    io.out(`${options.markdown ? "## " : ""}${headline(report)}\n\n${reportSummary(report)}\n`);
    io.out(shown.length === 0 ? none : toRows(shown.map((row) => toCells(row, io.colours && !options.markdown))));
  }
  const cut = `only ${shown.length} of ${counted(rows.length, "policy", "policies")}; --limit shows more`;
  for (const line of [...(shown.length < rows.length ? [cut] : []), ...report.notes]) io.err(line);
}

const heading = ["policy", "ended", "good", "bad", "median", "p95", "longest", "besides"];

function toCells(row: PolicyRow, colours: boolean): string[] {
  const { now, before } = row;
  return [
    row.policy,
    ...[now.ended, now.good].map(String),
    now.bad + now.missed > 0 ? paint("red", `${now.bad}`, colours) : `${now.bad}`,
    showTook(now.medianMs, before.medianMs),
    showTook(now.p95Ms, before.p95Ms),
    showTook(now.longestMs),
    besides(now),
  ];
}

function headline({ span, before }: Report): string {
  return `${showSpan(span)} (${counted(daysIn(span), "day")}), changes against ${showSpan(before)}`;
}

function toMarkdown(rows: readonly string[][]): string {
  const escaped = rows.map((row) => row.map((cell) => cell.replaceAll(/[|\\`*_<>[\]]/g, "\\$&")));
  const lines = [heading, heading.map((_, column) => (column === 0 || column === 7 ? "---" : "--:")), ...escaped];
  return lines.map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function toJson({ span, before, all, notes }: Report) {
  return {
    from: span.first,
    to: span.last,
    before: { from: before.first, to: before.last },
    all: rowToJson(all),
    notes,
  };
}

function policyToJson(row: PolicyRow) {
  const { policy, service = null, youngerThan = null } = row;
  return { policy, service, since: youngerThan, ...rowToJson(row) };
}

function rowToJson({ now, before, slower }: ReportRow) {
  return { now: sumsToJson(now), before: sumsToJson(before), slower: slower ?? null };
}

/** Field by field: 10,000 policies have 20,000 of these, and spreads are slow. */
function sumsToJson(sums: SpanSums) {
  return {
    skippedSlots: sums.skippedSlots,
    missedSlots: sums.missedSlots,
    newConflicts: sums.newConflicts,
    timed: sums.timed,
    ended: sums.ended,
    good: sums.good,
    bad: sums.bad,
    skipped: sums.skipped,
    missed: sums.missed,
    statuses: Object.fromEntries(sums.statuses),
    medianMs: sums.medianMs ?? null,
    p95Ms: sums.p95Ms ?? null,
    longestMs: sums.longestMs ?? null,
  };
}
