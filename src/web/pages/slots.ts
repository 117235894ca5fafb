// What a policy did: its slots as a table, its days as a calendar, and the page of one day.
import { html } from "hono/html";
import { dayAfter, localDate, toIso } from "../../core/instant.ts";
import { counted } from "../../core/plain-text.ts";
import { type Change, describeReason } from "../../model/change.ts";
import type { OutcomeStatus } from "../../model/outcome.ts";
import type { PolicyLine } from "../../queries/policy-lines.ts";
import type { EndedSlot, PolicyDay } from "../../queries/slot-strips.ts";
import { type Html, mark, tag, wordOf } from "./marks.ts";
import { fullTime, policyLink, policyPath, section, slotPath, table, tookText, when } from "./parts.ts";
import { type CalendarDay, calendar, linkedStrip } from "./pictures.ts";

/** How many days the calendar can show. */
export const daySpans = [30, 90, 365] as const;
/** How many slots of a day its page shows. */
export const daySlotsMax = 500;

function dayPath(policy: string, date: string): string {
  return `${policyPath(policy)}/days/${date}`;
}

/** What the page of a day is made of. */
export interface DayView {
  readonly line: PolicyLine;
  readonly date: string;
  /** Newest first. */
  readonly slots: readonly EndedSlot[];
  /** How many older ones the day has. */
  readonly more: number;
  readonly changes: readonly Change[];
  readonly nowMs: number;
}

/** Shows the slots of one day. */
export function dayPage({ line, date, slots, more, changes, nowMs }: DayView): Html {
  const { name, timezone } = line.policy;
  const oldestFirst = slots.toReversed();
  const ofDay = changes.filter(({ at }) => localDate(Date.parse(at), timezone) === date);
  const others = html`, the newest of the day, and ${more} more: <a href="/api/v1/policies/${name}/slots?after=${toIso(oldestFirst[0]?.slotMs)}&amp;limit=${more}">the API</a> has them`;
  const content =
    slots.length === 0
      ? html`<p class="none">No slot of this day is kept: none has come due yet or was due, or it is too long ago. The calendar keeps its sums.</p>`
      : html`${linkedStrip(oldestFirst, ({ slotMs }) => slotPath(name, slotMs))}
<p class="quiet">${counted(slots.length, "slot")}${more > 0 ? others : ""}; days are those of ${timezone}.</p>
${slotTable(line, oldestFirst, { changes: ofDay, nowMs })}`;
  return html`<p class="crumbs"><a href="/policies">Policies</a> / ${policyLink(name)}</p>
<h1>${name}, ${date}</h1>
${content}
<nav class="pages" aria-label="Days around"><a href="${dayPath(name, dayAfter(date, -1))}">Day before</a> <a href="${dayPath(name, dayAfter(date, 1))}">Day after</a></nav>`;
}

/** Slots as a table, newest first, with what was changed by hand between them. */
export function slotTable(
  { policy, usualMs }: PolicyLine,
  slots: readonly EndedSlot[],
  { changes, nowMs }: { readonly changes: readonly Change[]; readonly nowMs: number },
): Html | "" {
  if (slots.length === 0) return "";
  const ended = slots.map(({ slotMs, ending, durationMs, note }) => ({
    atMs: slotMs,
    cells: [
      html`<a href="${slotPath(policy.name, slotMs)}">${fullTime(slotMs, policy.timezone)}</a>`,
      mark(ending),
      durationText(durationMs, usualMs),
      note,
      when(slotMs, nowMs),
    ],
  }));
  const firstMs = Math.min(...slots.map(({ slotMs }) => slotMs));
  const changed = changes.map(({ at, what, actor, ...rest }) => ({
    atMs: Date.parse(at),
    cells: [
      html`<span class="quiet">${fullTime(Date.parse(at), policy.timezone)}</span>`,
      tag("calm", "fence", "by hand"),
      "",
      html`${what} by ${actor}${rest.reason === null && !rest.isBegun ? "" : `: ${describeReason(rest)}`}`,
      when(Date.parse(at), nowMs),
    ],
  }));
  const all = [...ended, ...changed.filter(({ atMs }) => atMs >= firstMs)].toSorted((a, b) => b.atMs - a.atMs);
  const rows = all.map(({ cells }) => cells);
  const columns = [["slot", "wide"], "ended", ["took", "num"], ["said", "wide"], "when"] as const;
  return html`<details${slots.length <= 10 ? html` open` : ""}><summary>The same as a table</summary>${table("Last slots, newest first", columns, rows)}</details>`;
}

/** A run three times as long as usual is marked. */
function durationText(durationMs: number | undefined, usualMs: number | undefined): Html | string {
  if (durationMs === undefined) return "";
  const text = tookText(durationMs);
  if (usualMs === undefined || durationMs < 3 * usualMs || durationMs - usualMs < 60_000) return text;
  return html`${text} <span class="mark warn">long</span>`;
}

const badEndings = ["failed", "timed-out", "not-started"] as const;
const waitingEndings = ["conflicts", "blocked", "missed"] as const;

/** The worst of a day, and all of it in words. */
function toCalendarDay({ date, statuses, skippedSlots, missedSlots, newConflicts }: PolicyDay): CalendarDay {
  const of = (ending: OutcomeStatus) => statuses.get(ending) ?? 0;
  const ended = [...statuses].flatMap(([ending, count]) => (count === 0 ? [] : [`${count} ${wordOf(ending)}`]));
  const slots = [
    ...(skippedSlots > 0 ? [`${counted(skippedSlots, "slot")} skipped`] : []),
    ...(missedSlots > 0 ? [`${counted(missedSlots, "slot")} missed`] : []),
    ...(newConflicts > 0 ? [counted(newConflicts, "new conflict")] : []),
  ];
  const words = [...ended, ...slots].join(", ") || "nothing";
  if (badEndings.some((ending) => of(ending) > 0)) return { date, tone: "bad", words };
  if (of("unknown") > 0) return { date, tone: "doubt", words };
  if (missedSlots > 0 || waitingEndings.some((ending) => of(ending) > 0)) return { date, tone: "warn", words };
  if (of("succeeded") + of("accepted") > 0) return { date, tone: "good", words };
  return { date, tone: words === "nothing" ? "none" : "calm", words };
}

/** The calendar of some days, each open to its slots. */
export function daysSection(policy: string, days: readonly PolicyDay[]): Html {
  const all = days.map(toCalendarDay);
  const known = all.filter(({ tone }) => tone !== "none").toReversed();
  const tones: readonly [CalendarDay["tone"], string][] = [
    ["bad", "with failures"],
    ["doubt", "with unknown ends"],
    ["warn", "with conflicts, blocks or misses"],
    ["good", "well"],
    ["calm", "with skips only"],
  ];
  const counts = tones.flatMap(([tone, words]) => {
    const count = all.filter((day) => day.tone === tone).length;
    return count === 0 ? [] : [`${count} ${words}`];
  });
  const summary =
    counts.length === 0 ? "no day with an outcome yet" : `${counted(known.length, "day")}: ${counts.join(", ")}`;
  const rows = known.map(({ date, words }) => [html`<a href="${dayPath(policy, date)}">${date}</a>`, words]);
  const spans = daySpans.map((span) =>
    span === days.length
      ? html`<b aria-current="true">${span} days</b>`
      : html`<a href="${policyPath(policy)}?days=${span}">${span} days</a>`,
  );
  const columns = ["day", ["what happened", "wide"]] as const;
  const more = html`<details><summary>The same as a table</summary>${table("Days, newest first", columns, rows)}</details>`;
  const picture = calendar(all, `Calendar of the last ${days.length} days, ${summary}`, (date) =>
    dayPath(policy, date),
  );
  const content = html`<nav class="pages" aria-label="How many days">${spans}</nav>${picture}<p class="quiet">${summary}</p>${rows.length === 0 ? "" : more}`;
  return section("year", "Days", content);
}
