// The sentences of a report: which days, and how all policies did. Called by `syncline report` and
// by digests, so that both say the same.
import { formatTook } from "../core/duration.ts";
import { counted } from "../core/plain-text.ts";
import type { DateSpan } from "../store/day-summaries.ts";
import { badKinds, type Report, type SpanSums } from "./report.ts";

/** `2026-11-20 to 2026-11-23`. */
export function showSpan({ first, last }: DateSpan): string {
  return first === last ? first : `${first} to ${last}`;
}

/** All policies in one sentence. */
export function reportSummary({ all: { now, before }, policies }: Report): string {
  const durations = [
    ["median", showTook(now.medianMs, before.medianMs)],
    ["p95", showTook(now.p95Ms, before.p95Ms)],
    ["longest", showTook(now.longestMs)],
  ].flatMap(([name, text]) => (text === "" ? [] : [`${name} ${text}`]));
  const more = besides(now);
  const counts = `${now.ran} ran, ${now.good} good, ${now.bad} bad${more === "" ? "" : ` (${more})`}`;
  return `${counted(policies.length, "policy", "policies")}: ${[counts, ...durations].join("; ")}`;
}

/** Kinds of bad ends, and what else is worth a look: `2 failed, 3 skipped, 1 new conflict`. */
export function besides(sums: SpanSums): string {
  const { skipped, missed, newConflicts } = sums;
  const parts = badKinds(sums).map(([status, count]) => `${count} ${status}`);
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
