// What policies did on some days, against as many days before: per policy and in all, worst first.
// It sums the day summaries, so it reaches 400 days back. Its sentences are here, too. Called by
// `syncline report` and by digests.

import type { Policy } from "../config/policy-set.ts";
import { dayMs, formatTook } from "../core/duration.ts";
import { dayAfter, localDate } from "../core/instant.ts";
import { counted, someNames } from "../core/plain-text.ts";
import { isGood, type OutcomeStatus } from "../model/outcome.ts";
import { isByHand } from "../model/task.ts";
import { addCounts, type DateSpan, type DayCounts, type DaySums, readSpans, toSums } from "../store/day-summaries.ts";
import { readFirstEnds } from "../store/policy-states.ts";
import type { Store } from "../store/redis.ts";

/** How many days are kept, at least (store/day-summaries.ts). */
const daysKept = 400;
/** Medians are at most 5 % off, so a change below this may be none. */
const changeMin = 1.1;
/** Runs that ended well: both spans must have so many for a comparison of medians. */
const comparedMin = 3;

/** What is asked. Days are those of each policy's own zone. */
export interface ReportQuestion {
  readonly policies: readonly Policy[];
  /** Also counts policies that are no longer configured. */
  readonly withRemoved: boolean;
  readonly span: DateSpan;
  readonly today: string;
}

/** The sums of one span. `good` and `bad` as an outcome's status says; both of tasks that ended. */
export interface SpanSums extends DaySums {
  /** Good and bad ones. */
  readonly ended: number;
  readonly good: number;
  readonly bad: number;
  /** Tasks and slots. */
  readonly skipped: number;
  readonly missed: number;
}

/** One policy, or all. */
export interface ReportRow {
  readonly now: SpanSums;
  readonly before: SpanSums;
  /** The median by the one before; undefined when one of them says too little. */
  readonly slower: number | undefined;
}

/** A policy of a report. */
export interface PolicyRow extends ReportRow {
  readonly policy: string;
  /** Undefined for one that is no longer configured. */
  readonly service: string | undefined;
  /** The day of its first known outcome, when that lies after the first day asked for. */
  readonly youngerThan: string | undefined;
}

/** A report. */
export interface Report {
  readonly span: DateSpan;
  readonly before: DateSpan;
  readonly all: ReportRow;
  /** Worst first. */
  readonly policies: readonly PolicyRow[];
  /** What the numbers cannot say, in sentences. */
  readonly notes: readonly string[];
}

/** Makes a report. */
export async function readReport(store: Store, question: ReportQuestion): Promise<Report> {
  const { span, before, notes } = clampSpan(question);
  const firstEnds = await readFirstEnds(store);
  const configured = new Map(question.policies.map((policy) => [policy.name, policy]));
  const names = new Set([...configured.keys(), ...(question.withRemoved ? firstEnds.keys() : [])]);
  const total: readonly [DayCounts, DayCounts] = [[], []];
  const policies: PolicyRow[] = [];
  for await (const { policy, counts } of readSpans(store, [...names], [span, before])) {
    const [now = [], then = []] = counts;
    addCounts(total[0], now);
    addCounts(total[1], then);
    const known = configured.get(policy);
    if (known === undefined && now.length + then.length === 0) continue;
    const firstMs = firstEnds.get(policy);
    const first = firstMs === undefined ? undefined : localDate(firstMs, known?.timezone ?? "UTC");
    const youngerThan = first !== undefined && first > span.first ? first : undefined;
    policies.push({ policy, service: known?.service, youngerThan, ...toRow(now, then) });
  }
  return {
    ...{ span, before, all: toRow(...total), policies: policies.toSorted(worstFirst) },
    notes: [...notes, ...notesOf(policies, span)],
  };
}

/** The policies whose median grew by more than a tenth, the most grown first. */
export function slowerPolicies({ policies }: Pick<Report, "policies">): readonly PolicyRow[] {
  const slower = policies.filter(({ slower = 0 }) => slower > changeMin);
  return slower.toSorted((a, b) => (b.slower ?? 0) - (a.slower ?? 0));
}

/** The statuses that are not good and occurred, with their numbers: the most first. */
function badKinds({ statuses }: Pick<DaySums, "statuses">): readonly (readonly [OutcomeStatus, number])[] {
  const bad = [...statuses].filter(([status, count]) => count > 0 && status !== "missed" && !isGood[status]);
  return bad.toSorted(([, a], [, b]) => b - a);
}

/** How many days a span has. */
export function daysIn({ first, last }: DateSpan): number {
  return (Date.parse(last) - Date.parse(first)) / dayMs + 1;
}

/** Leaves out days that are no longer kept, and says so. */
function clampSpan({ span, today }: ReportQuestion): Pick<Report, "span" | "before" | "notes"> {
  const oldest = dayAfter(today, 1 - daysKept);
  const isCut = span.first < oldest;
  const first = isCut ? oldest : span.first;
  const last = span.last < first ? first : span.last;
  const days = daysIn({ first, last });
  const before = { first: dayAfter(first, -days), last: dayAfter(first, -1) };
  const notes = isCut ? [`days before ${oldest} are no longer kept: the report begins there`] : [];
  if (before.first < oldest) notes.push(`of the ${counted(days, "day")} before, some or all are no longer kept`);
  return { span: { first, last }, before, notes };
}

function toRow(nowCounts: DayCounts, beforeCounts: DayCounts): ReportRow {
  const [now, before] = [toSpanSums(nowCounts), toSpanSums(beforeCounts)];
  const isEnough = Math.min(now.timed, before.timed) >= comparedMin;
  const slower = isEnough ? (now.medianMs ?? 0) / Math.max(before.medianMs ?? 0, 1) : undefined;
  return { now, before, slower };
}

function toSpanSums(counts: DayCounts): SpanSums {
  const sums = toSums(counts);
  const of = (status: OutcomeStatus) => sums.statuses.get(status) ?? 0;
  const good = of("succeeded") + of("accepted");
  const bad = badKinds(sums).reduce((total, [, count]) => total + count, 0);
  return {
    ...sums,
    ended: good + bad,
    good,
    bad,
    skipped: of("skipped") + sums.skippedSlots,
    missed: of("missed") + sums.missedSlots,
  };
}

function worstFirst(a: PolicyRow, b: PolicyRow): number {
  const isWorse = b.now.bad + b.now.missed - (a.now.bad + a.now.missed);
  return isWorse || b.now.skipped - a.now.skipped || a.policy.localeCompare(b.policy);
}

/** Policies that a note names. */
const namedMax = 3;

function notesOf(policies: readonly PolicyRow[], { first }: DateSpan): readonly string[] {
  const younger = policies.filter(({ youngerThan }) => youngerThan !== undefined);
  const idle = policies.filter(({ now }) => now.ended + now.skipped + now.missed === 0);
  const removed = policies.filter(({ service, policy }) => service === undefined && !isByHand(policy));
  const about = (some: readonly PolicyRow[], what: string) => {
    const names = some.map(({ policy }) => policy);
    return names.length === 0 ? [] : [`${what}: ${someNames(names, "--json", namedMax)}`];
  };
  return [
    ...about(younger, `younger than ${first}, with fewer days to count`),
    ...about(idle, "nothing ended, was skipped or missed"),
    ...about(removed, "no longer configured"),
  ];
}

/** `2026-11-20 to 2026-11-23`. */
export function showSpan({ first, last }: DateSpan): string {
  return first === last ? first : `${first} to ${last}`;
}

/** All policies in one sentence. */
export function reportSummary(report: Report): string {
  const { now, before } = report.all;
  const durations = [
    ["median", showTook(now.medianMs, before.medianMs)],
    ["p95", showTook(now.p95Ms, before.p95Ms)],
    ["longest", showTook(now.longestMs)],
  ].flatMap(([name, text]) => (text === "" ? [] : [`${name} ${text}`]));
  return [reportCounts(report), ...durations].join("; ");
}

/** `212 policies: 424 ended, 420 good, 4 bad (4 failed)`. `words`: what a status is called. */
export function reportCounts(
  { all: { now }, policies }: Pick<Report, "all" | "policies">,
  words?: (status: string) => string,
): string {
  const more = besides(now, words);
  const counts = `${now.ended} ended, ${now.good} good, ${now.bad} bad${more === "" ? "" : ` (${more})`}`;
  return `${counted(policies.length, "policy", "policies")}: ${counts}`;
}

/** Kinds of bad ends, and what else is worth a look: `2 failed, 3 skipped, 1 new conflict`. */
export function besides(sums: SpanSums, words = (status: string) => status): string {
  const { skipped, missed, newConflicts } = sums;
  const kinds = Map.groupBy(badKinds(sums), ([status]) => words(status));
  const parts = [...kinds].map(([word, own]) => `${own.reduce((total, [, count]) => total + count, 0)} ${word}`);
  if (missed > 0) parts.push(`${missed} missed`);
  if (skipped > 0) parts.push(`${skipped} skipped`);
  if (newConflicts > 0) parts.push(counted(newConflicts, "new conflict"));
  return parts.join(", ");
}

/** A duration, and by how much it differs from another: `41s +12%`. */
export function showTook(durationMs: number | undefined, beforeMs?: number): string {
  if (durationMs === undefined) return "";
  const percent = beforeMs === undefined ? 0 : Math.round((durationMs / Math.max(beforeMs, 1) - 1) * 100);
  return `${formatTook(durationMs)}${percent === 0 ? "" : ` ${percent > 0 ? "+" : ""}${percent}%`}`;
}
