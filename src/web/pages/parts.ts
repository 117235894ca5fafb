// Small pieces that pages share: times, durations, links, tables.
import { html } from "hono/html";
import type { Policy, Schedule } from "../../config/policy-set.ts";
import { formatDuration, formatRoughly } from "../../core/duration.ts";
import { showInstant } from "../../core/instant.ts";
import { someNames } from "../../core/plain-text.ts";
import { type Pause, type PauseSubject, showSubject, subjectKey } from "../../model/pause.ts";
import { type AttentionItem, mustBeActedOn, whomToAsk } from "../../queries/attention.ts";
import { plainTime } from "../../queries/plain-troubles.ts";
import type { PolicyLine } from "../../queries/policy-lines.ts";
import { actionWords } from "../../queries/task-words.ts";
import { type Html, mark } from "./marks.ts";

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

/** A time of day with its date or weekday, unless it is of today: the page names the zone once. */
export function clock(instantMs: number, timezone: string, nowMs: number): Html {
  return timeOf(instantMs, plainTime(instantMs, { timezone, nowMs }));
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

/** The address of the story of a policy's run: its slot, or its task when a person started it. */
export function runPath(policy: string, last: NonNullable<PolicyLine["worst"]>["last"]): string {
  return last.origin === "manual" ? taskPath(last.taskId) : slotPath(policy, last.slotMs);
}

/** A link to a policy. */
export function policyLink(name: string): Html {
  return html`<a class="name" href="${policyPath(name)}">${name}</a>`;
}

/** A link to a page that changes something; `of`: what. */
export function actLink(act: string, of: string, words: string): Html {
  return html`<a class="act" href="/${act}?of=${encodeURIComponent(of)}">${words}</a> `;
}

/**
 * A link to pause a subject, or to resume it where one of these pauses is its own. A policy's
 * stands on its own page, which names it.
 */
export function pauseLink(subject: PauseSubject, pauses: readonly Pause[]): Html {
  const act = pauses.some((one) => subjectKey(one) === subjectKey(subject)) ? "Resume" : "Pause";
  const of = subject.scope === "all" ? "all" : `${subject.scope}:${subject.name}`;
  return actLink(act.toLowerCase(), of, subject.scope === "policy" ? `${act}…` : `${act} ${showSubject(subject)}…`);
}

/** What a pause is called; a quarantine is one, too. */
export function pauseWord({ cause }: Pause) {
  return cause === undefined ? "paused" : "quarantined";
}

/** A mark of a policy's pause, with what else it is about. `more`: goes on with its word. */
export function pauseMark(pause: Pause, more = ""): Html {
  const { scope, name } = pause;
  const marked = pauseWord(pause);
  return html`${mark(marked, `${marked}${more}`)}${scope === "policy" ? "" : ` with ${showSubject({ scope, name })}`}`;
}

/** When a pause ends. */
export function untilWords({ untilMs }: Pause, timezone: string): Html | string {
  return untilMs === null ? "until it is resumed" : html`until ${fullTime(untilMs, timezone)}`;
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
  if ("fromMasks" in action) return "run the sync jobs of masks";
  if (!("syncJobs" in action)) return actionWords(action);
  const { kind, syncJobs } = action;
  return `${kind} sync job${syncJobs.length > 1 ? "s" : ""} ${someNames(syncJobs.map(String), undefined, 5)}`;
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

/**
 * A column: its label, and what it holds. `num`: numbers, aligned to the right; `wide`: words that
 * may break anywhere; `roomy`: names under which more stands.
 */
export type Column = string | readonly [label: string, kind: "num" | "wide" | "roomy"];

/**
 * A table; on a narrow screen each row becomes a card, so roles say that it is still a table.
 * `none`: what stands there without rows. `isBrief`: it needs no labels on a card.
 */
export function table(
  caption: string,
  columns: readonly Column[],
  rows: readonly (readonly (Html | string)[])[],
  { none, isBrief = false }: { readonly none?: Html | string; readonly isBrief?: boolean } = {},
): Html {
  if (rows.length === 0 && none !== undefined) return html`<p class="none">${none}</p>`;
  const known = columns.map((column) => (typeof column === "string" ? ([column, ""] as const) : column));
  const head = known.map(
    ([label, kind]) => html`<th role="columnheader" scope="col" class="${kind === "num" ? kind : ""}">${label}</th>`,
  );
  const body = rows.map(
    (cells) =>
      html`<tr role="row">${known.map(([label, kind], index) => html`<td role="cell" class="${kind}" data-label="${label}">${cells[index]}</td>`)}</tr>`,
  );
  return html`<table role="table" class="${isBrief ? "brief" : ""}"><caption class="hidden">${caption}</caption><thead role="rowgroup"><tr role="row">${head}</tr></thead><tbody role="rowgroup">${body}</tbody></table>`;
}

/** The choices of a field: values, or pairs of a value and its words. */
export function options(
  choices: readonly (string | readonly [value: string, words: string])[],
  chosen: string | undefined,
): Html[] {
  return choices.map((choice) => {
    const [value, words] = typeof choice === "string" ? [choice, choice] : choice;
    return html`<option value="${value}"${value === chosen ? html` selected` : ""}>${words}</option>`;
  });
}

/** How sure an end is: `, evidence direct, certain`; empty where nothing was asked. */
export function evidenceText({ status, evidence, confidence }: NonNullable<PolicyLine["worst"]>["last"]): string {
  if (status === "skipped" || status === "missed") return "";
  return `, evidence ${evidence}${confidence === undefined ? "" : `, ${confidence}`}`;
}

/** A part of a page under a heading of its own. */
export function section(id: string, heading: Html | string, content: Html | string): Html {
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${heading}</h2>${content}</section>`;
}

/** What is known of one thing, by name. */
export function factList(facts: readonly (readonly [name: string, value: Html | string])[]): Html {
  return html`<dl class="facts">${facts.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** Whom to ask about a trouble, and whether it heals by itself. */
export function care(item: Pick<AttentionItem, "about" | "touches" | "state" | "heals">): Html {
  const words = item.heals ? "heals by itself" : mustBeActedOn(item) ? "needs a person" : "worth a look";
  return html`<span>${whomToAsk(item)}</span> <span>${words}</span>`;
}

/** A text in which words between backquotes are commands. */
export function withCode(text: string): Html[] {
  return text.split("`").map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`));
}
