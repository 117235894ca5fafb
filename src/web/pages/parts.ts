// Small pieces that pages share: times, durations, links, tables.
import { html } from "hono/html";
import type { Policy, Schedule } from "../../config/policy-set.ts";
import { formatDuration, formatRoughly } from "../../core/duration.ts";
import { showInstant } from "../../core/instant.ts";
import { type Pause, type PauseSubject, showSubject, subjectKey } from "../../model/pause.ts";
import type { Html } from "./marks.ts";

/** Stands where there is nothing to show. */
export const nothing = html`<span class="none">–</span>`;

/** An instant beside now: `3h ago`, `in 20m`; its title has the whole of it. */
export function when(instantMs: number | undefined, nowMs: number): Html {
  if (instantMs === undefined) return nothing;
  return timeOf(instantMs, agoText(instantMs - nowMs));
}

/** Seconds are not told: what is asked again within a minute is the same. */
function agoText(awayMs: number): string {
  const minutesMs = Math.floor(Math.abs(awayMs) / 60_000) * 60_000;
  if (minutesMs === 0) return awayMs > 0 ? "within a minute" : "just now";
  const rough = minutesMs < 120_000 ? "1m" : formatRoughly(minutesMs, Math.floor);
  return awayMs > 0 ? `in ${rough}` : `${rough} ago`;
}

function timeOf(instantMs: number, text: string): Html {
  return html`<time datetime="${new Date(instantMs).toISOString()}" title="${showInstant(instantMs)}">${text}</time>`;
}

/** An instant in a zone, and in UTC beside it. */
export function fullTime(instantMs: number | undefined, timezone: string): Html {
  if (instantMs === undefined) return nothing;
  const local = timezone === "UTC" ? "" : html` <span class="quiet">${showInstant(instantMs)}</span>`;
  return html`${timeOf(instantMs, timezone === "UTC" ? showInstant(instantMs) : showInstant(instantMs, timezone))}${local}`;
}

/** A duration in one or two units: `850ms`, `42s`, `3m 10s`, `2h 5m`. */
export function tookText(durationMs: number | undefined): string {
  if (durationMs === undefined) return "";
  if (durationMs < 1_000) return `${Math.round(durationMs)}ms`;
  const seconds = Math.round(durationMs / 1_000);
  if (seconds < 60) return `${seconds}s`;
  const [big, bigUnit, small, smallUnit] =
    seconds < 3_600
      ? [Math.floor(seconds / 60), "m", seconds % 60, "s"]
      : [Math.floor(seconds / 3_600), "h", Math.floor((seconds % 3_600) / 60), "m"];
  return small === 0 ? `${big}${bigUnit}` : `${big}${bigUnit} ${small}${smallUnit}`;
}

/** The address of a policy's page. */
export function policyPath(name: string): string {
  return `/policies/${encodeURIComponent(name)}`;
}

/** The address of a slot's story. */
export function slotPath(policy: string, slotMs: number): string {
  return `${policyPath(policy)}/slots/${new Date(slotMs).toISOString()}`;
}

/** The address of a task's story. */
export function taskPath(id: string): string {
  return `/tasks/${encodeURIComponent(id)}`;
}

/** A link to a policy. */
export function policyLink(name: string): Html {
  return html`<a class="name" href="${policyPath(name)}">${name}</a>`;
}

/** A link to a page that changes something; `of`: what. */
export function actLink(act: string, of: string, words: string): Html {
  return html`<a class="act" href="/${act}?of=${encodeURIComponent(of)}">${words}</a> `;
}

/** A link to pause a subject, or to resume it where one of these pauses is its own. */
export function pauseLink(subject: PauseSubject, pauses: readonly Pause[]): Html {
  const act = pauses.some((one) => subjectKey(one) === subjectKey(subject)) ? "resume" : "pause";
  const of = subject.scope === "all" ? "all" : `${subject.scope}:${subject.name}`;
  return actLink(act, of, `${act === "pause" ? "Pause" : "Resume"} ${showSubject(subject)}…`);
}

/** When a policy is due, in short. */
export function scheduleText({ schedule, after }: Policy): string {
  if (after !== undefined) return `after ${after.policy}`;
  return schedule === undefined ? "by hand only" : `${schedulePattern(schedule)}${spreadText(schedule)}`;
}

function schedulePattern(schedule: Schedule): string {
  if (schedule.kind === "every") return `every ${formatDuration(schedule.everyMs)}`;
  if (schedule.kind === "once") return `once, ${schedule.at.replace("T", " ")} ${schedule.timezone}`;
  return `${schedule.expressions.join(" and ")} ${schedule.timezone}`;
}

function spreadText({ spreadMs }: Schedule): string {
  return spreadMs === 0 ? "" : `, spread over ${formatDuration(spreadMs)}`;
}

/** What a policy does, in short. */
export function actionText({ action }: Policy): string {
  if (action.kind === "poll") return `poll ${action.list}`;
  if (action.kind === "delete") return `delete sync job ${action.syncJob}`;
  if (action.kind === "apply") return `apply ${action.objects.length} objects`;
  if ("fromMasks" in action) return "run the sync jobs of masks";
  const [first, ...others] = action.syncJobs;
  const shown = action.syncJobs.slice(0, 5).join(", ");
  const more = action.syncJobs.length > 5 ? ` and ${action.syncJobs.length - 5} more` : "";
  return `${action.kind} sync job${others.length === 0 ? "" : "s"} ${first === undefined ? "" : shown}${more}`;
}

/** Links to the pages before and after, with the filter of this one. */
export function pageLinks(
  path: string,
  filter: Readonly<Record<string, string>>,
  { page, pages }: { readonly page: number; readonly pages: number },
): Html | "" {
  if (pages <= 1) return "";
  const to = (target: number, words: string) => {
    if (target < 1 || target > pages) return html`<span class="quiet">${words}</span>`;
    const pairs = Object.entries({ ...filter, page: String(target) }).filter(([, value]) => value !== "");
    return html`<a href="${path}?${new URLSearchParams(pairs).toString()}">${words}</a>`;
  };
  return html`<nav class="pages" aria-label="Pages">${to(page - 1, "Page before")} <span>page ${page} of ${pages}</span> ${to(page + 1, "Next page")}</nav>`;
}

/** A column. `isNumber`: aligned to the right. */
export interface Column {
  readonly label: string;
  readonly isNumber?: true;
  /** Long words may break. */
  readonly isWide?: true;
  readonly isRoomy?: true;
}

/**
 * A table; on a narrow screen each row becomes a card, so roles say that it is still a table.
 * `kind`: a brief one needs no labels there.
 */
export function table(
  caption: string,
  columns: readonly Column[],
  rows: readonly (readonly (Html | string)[])[],
  kind: "brief" | "" = "",
): Html {
  const cell = (content: Html | string, { label, isNumber, isWide, isRoomy }: Column) => {
    const align = isNumber ? "num" : isWide ? "wide" : isRoomy ? "roomy" : "";
    return html`<td role="cell" class="${align}" data-label="${label}">${content}</td>`;
  };
  const head = columns.map(
    ({ label, isNumber }) => html`<th role="columnheader" scope="col" class="${isNumber ? "num" : ""}">${label}</th>`,
  );
  const body = rows.map(
    (cells) =>
      html`<tr role="row">${cells.map((content, index) => cell(content, columns[index] ?? { label: "" }))}</tr>`,
  );
  return html`<table role="table" class="${kind}"><caption class="hidden">${caption}</caption><thead role="rowgroup"><tr role="row">${head}</tr></thead><tbody role="rowgroup">${body}</tbody></table>`;
}
