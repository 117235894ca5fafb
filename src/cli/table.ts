// Tables and colours for people. Commands print these without `--json`. A table never wraps:
// columns share the width of the terminal, and a cell that does not fit ends with "…".
import { stripVTControlCharacters, styleText } from "node:util";
import { Option } from "commander";
import stringWidth from "string-width";
import { isGood, type Outcome, type OutcomeStatus } from "../model/outcome.ts";
import type { Screen } from "./command-io.ts";

const gap = "  ";
/** The last text of a row is prose: it gives way first, down to this width. */
const proseMin = 16;
/** Cells of times, numbers and durations: cut last, as a cut number says something else. */
const figure = /^$|^\p{Nd}[\d:.TZ+-]*( ?[\d:.+-]+Z?| ?[A-Z]{2,5})*$/u;

const plainText = /^[\x20-\x7e…]*$/;
const segmenter = new Intl.Segmenter();

/** A text in a colour, if `colours` is set. */
export function paint(style: Parameters<typeof styleText>[0], text: string, colours: boolean): string {
  return colours ? styleText(style, text, { validateStream: false }) : text;
}

/** `--wide` of a command with tables. program.ts reads it before the command is made. */
export function wideOption(): Option {
  return new Option("--wide", "show whole cells on a terminal, also beyond its width");
}

/**
 * Formats rows under a heading, without borders, no wider than the screen. `leaveOut`: columns that
 * go before a name is cut, the first of these first.
 */
export function toTable(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  screen: Screen,
  leaveOut: readonly string[] = [],
): string {
  const cells = [heading.map((title) => paint("bold", title, screen.colours)), ...rows].map((row) =>
    row.map((cell) => cell.split("\n")),
  );
  const columns = heading.map((title, column) => ({
    title,
    natural: cells.reduce((widest, row) => Math.max(widest, ...(row[column] ?? []).map(widthOf)), 0),
    isText: rows.some((row) => !figure.test(row[column] ?? "")),
  }));
  const widths = widthsFor(columns, screen.columns ?? Number.POSITIVE_INFINITY, leaveOut);
  const left = heading.filter((_, column) => widths[column] === undefined);
  if (widths.some((width, column) => width !== columns[column]?.natural)) screen.onCut?.(left);
  return cells.flatMap((row) => toLines(row, widths)).join("\n");
}

/** The lines of one row: a cell may have several. */
function toLines(row: readonly (readonly string[])[], widths: readonly (number | undefined)[]): string[] {
  const height = Math.max(1, ...row.map((cell) => cell.length));
  return Array.from({ length: height }, (_, index) =>
    widths
      .flatMap((width, column) => (width === undefined ? [] : [pad(row[column]?.[index] ?? "", width)]))
      .join(gap)
      .trimEnd(),
  );
}

interface Column {
  readonly title: string;
  readonly natural: number;
  readonly isText: boolean;
}

/** The width of each column; undefined: left out. Leaves out as few as make room for the texts. */
function widthsFor(columns: readonly Column[], most: number, leaveOut: readonly string[]): (number | undefined)[] {
  for (let count = 0; ; count += 1) {
    const gone = leaveOut.slice(0, count);
    const kept = columns.filter(({ title }) => !gone.includes(title));
    const last = kept.findLastIndex(({ isText }) => isText);
    const room = most - gap.length * (kept.length - 1);
    const widths = kept.map(({ natural }) => natural);
    const isFit = narrow(widths, [last], proseMin, room);
    if (!isFit && count < leaveOut.length) continue;
    const texts = kept.flatMap(({ isText }, index) => (isText ? [index] : [])).reverse();
    for (const floor of [12, 8]) narrow(widths, texts, floor, room);
    narrow(widths, widths.map((_, index) => index).reverse(), 1, room);
    return columns.map((column) => widths[kept.indexOf(column)]);
  }
}

/** Narrows these columns, one after the other, until all fit into the room; false: they do not. */
function narrow(widths: number[], which: readonly number[], floor: number, room: number): boolean {
  for (const column of which) {
    const width = widths[column] ?? 0;
    const excess = widths.reduce((sum, one) => sum + one, 0) - room;
    if (excess > 0) widths[column] = Math.max(Math.min(width, floor), width - excess);
  }
  return widths.reduce((sum, one) => sum + one, 0) <= room;
}

function pad(cell: string, width: number): string {
  const is = widthOf(cell);
  return is <= width ? cell + " ".repeat(width - is) : pad(cutCell(cell, width), width);
}

/** Cuts a text to a width and keeps the colour around it. */
function cutCell(cell: string, width: number): string {
  const plain = stripVTControlCharacters(cell);
  const start = Math.max(0, cell.indexOf(plain));
  return `${cell.slice(0, start)}${cutPlain(plain, width - 1).trimEnd()}…${cell.slice(start + plain.length)}`;
}

function cutPlain(text: string, width: number): string {
  if (plainText.test(text)) return text.slice(0, width);
  let kept = "";
  for (const { segment } of segmenter.segment(text)) {
    if (stringWidth(kept + segment) > width) break;
    kept += segment;
  }
  return kept;
}

function widthOf(text: string): number {
  return plainText.test(text) ? text.length : stringWidth(text);
}

const statusColour = {
  succeeded: "green",
  accepted: "green",
  skipped: "gray",
  conflicts: "yellow",
  blocked: "yellow",
  "timed-out": "red",
  failed: "red",
  unknown: "magenta",
  "not-started": "red",
  missed: "red",
} as const satisfies Record<OutcomeStatus, string>;

/** A status in its colour, and why it is not certain: `succeeded (inferred, ambiguous)`. */
export function showStatus(
  {
    status,
    evidence,
    confidence,
  }: Pick<Outcome, "status" | "evidence"> & { readonly confidence?: Outcome["confidence"] | undefined },
  colours: boolean,
): string {
  const isInferred = evidence === "inferred";
  const doubts = [
    ...(isInferred ? [evidence] : []),
    ...(confidence === "ambiguous" || (isInferred && confidence === "likely") ? [confidence] : []),
  ];
  const shown = doubts.length === 0 ? status : `${status} (${doubts.join(", ")})`;
  const colour = doubts.length > 0 && isGood[status] ? "yellow" : statusColour[status];
  return paint(colour, shown, colours);
}

/** Where an object is: its service, and the repository if one is named. */
export function showPlace(service: string, repository: string | null | undefined): string {
  return repository === undefined || repository === null ? service : `${service}, ${repository}`;
}

/** Text for one line of a terminal: control characters could rewrite the screen. */
export function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu, " ");
}

/** JSON for a terminal: it escapes the control characters that JSON itself leaves as they are. */
export function safeJson(value: unknown, indent = 0): string {
  return (JSON.stringify(value, undefined, indent) ?? "null").replaceAll(
    /[\u007f-\u009f\u2028\u2029\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** An important line: red on a terminal. */
export function alarming(line: string, colours: boolean): string {
  return paint("red", line, colours);
}
