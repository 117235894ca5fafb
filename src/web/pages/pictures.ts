// Pictures as SVG, drawn from data: the strip of the last slots, the calendar of days, the time
// line of a task. Geometry stands in attributes, colours in the style sheet. Pure.
import { html } from "hono/html";
import { counted } from "../../core/plain-text.ts";
import type { EndedSlot, SlotEnding } from "../../queries/slot-strips.ts";
import { type Html, wordOf } from "./marks.ts";

const [barWidth, step, height] = [5, 7, 20];

/** What each ending looks like in a strip: a bar's path at 0. Another ending, another outline. */
const bars: Readonly<Record<SlotEnding, string>> = {
  succeeded: "v-13h5v13z",
  accepted: "v-13h5v13z",
  conflicts: "v-13l2.5-5 2.5 5v13z",
  blocked: "v-13l2.5-5 2.5 5v13z",
  failed: "v-20h5v20z",
  "timed-out": "v-20h5v20z",
  "not-started": "v-20h5v20z",
  unknown: "v-8h5v8zm0-12v-8h5v8z",
  missed: "v-20h5v20zm1.2-1.2h2.6v-17.6h-2.6z",
  skipped: "v-5h5v5z",
  coalesced: "v-2h5v2z",
  started: "v-13h5v13zm1.2-1.2h2.6v-10.6h-2.6z",
};

/** How often each ending stands in these slots: `55 succeeded, 2 failed`. */
export function countsOf(slots: readonly EndedSlot[]): string {
  const counts = [...Map.groupBy(slots, ({ ending }) => ending)].toSorted((a, b) => b[1].length - a[1].length);
  return counts.map(([ending, group]) => `${group.length} ${wordOf(ending)}`).join(", ");
}

/** The last slots of a policy, oldest first, one bar a slot. */
export function strip(slots: readonly EndedSlot[], count: number): Html {
  if (slots.length === 0) return html`<span class="none">no slot yet</span>`;
  const width = count * step - (step - barWidth);
  const from = count - slots.length;
  const paths = [...Map.groupBy(slots.entries(), ([, { ending }]) => ending)].map(([ending, group]) => {
    const d = group.map(([index]) => `M${(from + index) * step} ${height}${bars[ending]}`).join("");
    return html`<path class="bar ${ending}" d="${d}"/>`;
  });
  const title = `last ${counted(slots.length, "slot")}: ${countsOf(slots)}`;
  return html`<svg class="strip" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${title}"><title>${title}</title>${paths}</svg>`;
}

/** The same with a link a slot; `hrefOf` names the page of each. */
export function linkedStrip(slots: readonly EndedSlot[], hrefOf: (slot: EndedSlot) => string): Html {
  if (slots.length === 0) return html`<p class="none">No slot has come due yet.</p>`;
  const [wide, tall] = [10, 20];
  const links = slots.map((slot, index) => {
    const title = `${new Date(slot.slotMs).toISOString().slice(0, 16).replace("T", " ")}Z ${wordOf(slot.ending)}`;
    // Pointers use the picture; the table below has the same links for keyboards and readers.
    return html`<a href="${hrefOf(slot)}" tabindex="-1"><title>${title}</title><path class="hit" d="M${index * wide} 0h${wide}v${tall}h-${wide}z"/><path class="bar ${slot.ending}" d="M${index * wide + 2} ${tall}${bars[slot.ending]}"/></a>`;
  });
  const width = slots.length * wide;
  return html`<div class="scroll"><svg class="strip large" viewBox="0 0 ${width} ${tall}" width="${width * 1.6}" height="${tall * 1.6}" aria-hidden="true" focusable="false">${links}</svg></div>`;
}

/** One bar of each outline, with its words. */
export function legend(): Html {
  const kinds: readonly [SlotEnding, string][] = [
    ["succeeded", "succeeded, accepted"],
    ["conflicts", "conflicts, blocked"],
    ["failed", "failed, timed out, not started"],
    ["unknown", "unknown"],
    ["missed", "missed"],
    ["skipped", "skipped"],
    ["coalesced", "coalesced"],
    ["started", "no outcome yet, or no longer kept"],
  ];
  const items = kinds.map(
    ([ending, words]) =>
      html`<li><svg class="strip" viewBox="0 0 5 20" width="5" height="20" aria-hidden="true"><path class="bar ${ending}" d="M0 20${bars[ending]}"/></svg> ${words}</li>`,
  );
  return html`<details class="legend"><summary>What the bars mean</summary><ul>${items}</ul><p>Of a policy with many sync jobs fewer slots are drawn.</p></details>`;
}

/** How a day went: by its worst ending. `none`: nothing ended on it. */
type DayTone = "good" | "bad" | "doubt" | "warn" | "calm" | "none";

/** A day of a calendar. `words`: what happened, for a pointer. */
export interface CalendarDay {
  readonly date: string;
  readonly tone: DayTone;
  readonly words: string;
}

const [cell, gap] = [11, 3];
/** A mark inside a day's square, so that colour is not all that tells days apart. */
const dayMarks: Readonly<Partial<Record<DayTone, string>>> = {
  bad: "m3 3 5 5m0-5-5 5",
  doubt: "m5.5 2.5v3.5m0 2.4v.1",
  warn: "m3 5.5h5",
};

/** Days as squares, a column a week from Monday to Sunday, oldest first; each leads to its page. */
export function calendar(days: readonly CalendarDay[], title: string, hrefOf: (date: string) => string): Html {
  const [first] = days;
  if (first === undefined) return html``;
  const shift = (new Date(first.date).getUTCDay() + 6) % 7;
  const at = (index: number) => {
    const place = index + shift;
    return [Math.floor(place / 7) * (cell + gap), (place % 7) * (cell + gap) + 14] as const;
  };
  const squares = days.map(({ date, tone, words }, index) => {
    const [x, y] = at(index);
    const inner = dayMarks[tone];
    const sign = inner === undefined ? "" : html`<path class="sign" d="M${x} ${y}${inner}"/>`;
    const square = html`<title>${date}: ${words}</title><rect class="day ${tone}" x="${x}" y="${y}" width="${cell}" height="${cell}" rx="2"/>${sign}`;
    // Pointers use the picture; the table below has the same links for keyboards and readers.
    return tone === "none" ? html`<g>${square}</g>` : html`<a href="${hrefOf(date)}" tabindex="-1">${square}</a>`;
  });
  const months = days.flatMap(({ date }, index) =>
    date.endsWith("-01") ? [html`<text x="${at(index)[0]}" y="9">${monthOf(date)}</text>`] : [],
  );
  const width = (Math.floor((days.length - 1 + shift) / 7) + 1) * (cell + gap) + 12;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="${title}"><svg class="calendar" viewBox="0 0 ${width} 112" width="${width * 1.25}" height="140" aria-hidden="true" focusable="false">${months}${squares}</svg></div>`;
}

function monthOf(date: string): string {
  return new Date(date).toLocaleString("en-GB", { timeZone: "UTC", month: "short" });
}

/** The way of a task from due to its end: waiting, then at the service. Instants in ms. */
export function timeLine(task: {
  readonly dueMs: number;
  readonly sentMs: number | undefined;
  readonly endMs: number;
  readonly usualMs: number | undefined;
  readonly tone: string;
}): Html {
  const { dueMs, sentMs = task.endMs, endMs, usualMs, tone } = task;
  const allMs = Math.max(endMs - dueMs, sentMs - dueMs + (usualMs ?? 0), 1);
  const at = (ms: number) => Math.round((ms / allMs) * 10_000) / 10;
  const [waited, ran] = [at(Math.max(sentMs - dueMs, 0)), at(Math.max(endMs - sentMs, 0))];
  const usual = usualMs === undefined ? undefined : waited + at(usualMs);
  const tick = usual === undefined ? "" : html`<path class="usual" d="M${usual} 0v20"/>`;
  return html`<svg class="timeline" viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true"><rect class="waited" x="0" y="7" width="${waited}" height="6"/><rect class="ran ${tone}" x="${waited}" y="4" width="${Math.max(ran, 3)}" height="12"/>${tick}</svg>`;
}

/** A slot in a lane. `from`, `to`: 0 to 1. `away`: it will not start; `meets`: another run. */
export interface LaneBar {
  readonly from: number;
  readonly to: number;
  readonly kind: "due" | "away" | "meets";
  readonly title: string;
}

/** What a lane says of itself; `now`: 0 to 1. */
interface Lane {
  readonly title: string;
  readonly now: number;
}

/** 40 for each of 25 hours. */
const laneWidth = 1_000;
const [laneHeight, countHeight] = [18, 44];
/** The least width of a bar: 0 seconds are seen, too. */
const barMin = 4;

/** One policy's slots: full while it runs, hollow where it falls away, notched where runs meet. */
export function slotLane(bars: readonly LaneBar[], lane: Lane): Html {
  const drawn = bars.map(({ from, to, kind, title }) => {
    const x = Math.round(from * laneWidth * 10) / 10;
    const width = Math.max(barMin, Math.round((Math.min(to, 1) - from) * laneWidth * 10) / 10);
    const notch =
      kind === "meets" ? html`<path class="notch" d="M${x} 1h${Math.max(width, 6)}v3h-${Math.max(width, 6)}z"/>` : "";
    return html`<g><title>${title}</title><rect class="slot ${kind}" x="${x}" y="6" width="${width}" height="9"/>${notch}</g>`;
  });
  return laneSvg(drawn, lane, laneHeight);
}

/** Counts, a bar each: full for what starts, hollow above for what falls away. */
export function countLane(
  counts: readonly { readonly count: number; readonly away: number; readonly isMarked: boolean }[],
  lane: Lane,
): Html {
  const most = Math.max(1, ...counts.map(({ count, away }) => count + away));
  const width = laneWidth / counts.length;
  const tall = (count: number) => (count === 0 ? 0 : Math.max(1.5, Math.round((count / most) * 340) / 10));
  const drawn = counts.map(({ count, away, isMarked }, index) => {
    const x = Math.round(index * width * 10) / 10 + 0.5;
    const [full, hollow] = [tall(count), tall(away)];
    const bar = (kind: string, y: number, height: number) =>
      height === 0
        ? ""
        : html`<rect class="slot ${kind}" x="${x}" y="${countHeight - y - height}" width="${Math.max(width - 1.5, 1)}" height="${height}"/>`;
    return html`${bar("due", 0, full)}${bar("away", full, hollow)}${isMarked ? html`<path class="notch" d="M${x} 1h${width - 1.5}v4h-${width - 1.5}z"/>` : ""}`;
  });
  return laneSvg(drawn, lane, countHeight);
}

function laneSvg(drawn: readonly Html[], { title, now }: Lane, height: number): Html {
  const hours = Array.from({ length: 8 }, (_, index) => `M${(index + 1) * 120} 0v${height}`).join("");
  const x = Math.round(now * laneWidth * 10) / 10;
  return html`<svg class="hours" viewBox="0 0 ${laneWidth} ${height}" height="${height}" preserveAspectRatio="none" role="img" aria-label="${title}"><path class="grid" d="${hours}"/>${drawn}<path class="now" d="M${x} 0v${height}"/></svg>`;
}
