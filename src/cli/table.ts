// Tables and colours for people. Commands print these without `--json`. A table never wraps:
// columns share the width of the terminal, and a cell that does not fit ends with "…".
import { stripVTControlCharacters, styleText } from "node:util";
import { Option } from "commander";
import stringWidth from "string-width";
import { isGood, type Outcome, type OutcomeStatus } from "../model/outcome.ts";
import type { Screen } from "./command-io.ts";

const gap = "  ";
/** Cells of times, numbers and durations: cut last, as a cut number says something else. */
const figure = /^$|^\p{Nd}[\d:.TZ+-]*( ?[\d:.+-]+Z?| ?[A-Z]{2,5})*$/u;

const narrow = /^[\x20-\x7e…]*$/;
const segmenter = new Intl.Segmenter();

/** A text in a colour, if `colours` is set. */
export function paint(style: Parameters<typeof styleText>[0], text: string, colours: boolean): string {
  return colours ? styleText(style, text, { validateStream: false }) : text;
}

/** `--wide` of a command with tables. program.ts reads it before the command is made. */
export function wideOption(): Option {
  return new Option("--wide", "show whole cells on a terminal, also beyond its width");
}

/** Formats rows under a heading, without borders, no wider than the screen. */
export function toTable(heading: readonly string[], rows: readonly (readonly string[])[], screen: Screen): string {
  const cells = [heading.map((title) => paint("bold", title, screen.colours)), ...rows].map((row) =>
    row.map((cell) => cell.split("\n")),
  );
  const natural = heading.map((_, column) =>
    cells.reduce((widest, row) => (row[column] ?? []).reduce((most, text) => Math.max(most, widthOf(text)), widest), 0),
  );
  const widths = fitted(
    natural,
    heading.map((_, column) => isText(rows, column)),
    screen.columns,
  );
  if (widths.some((width, column) => width < (natural[column] ?? 0))) screen.onCut?.();
  return cells.flatMap((row) => toLines(row, widths)).join("\n");
}

/** The lines of one row: a cell may have several. */
function toLines(row: readonly (readonly string[])[], widths: readonly number[]): string[] {
  const height = Math.max(1, ...row.map((cell) => cell.length));
  return Array.from({ length: height }, (_, index) =>
    widths
      .map((width, column) => pad(row[column]?.[index] ?? "", width))
      .join(gap)
      .trimEnd(),
  );
}

function isText(rows: readonly (readonly string[])[], column: number): boolean {
  return rows.some((row) => !figure.test(row[column] ?? ""));
}

/** Narrows the last text first, then all texts, then all columns, the widest first. */
function fitted(natural: readonly number[], texts: readonly boolean[], columns = Number.POSITIVE_INFINITY): number[] {
  const room = columns - gap.length * (natural.length - 1);
  const last = texts.lastIndexOf(true);
  const widths = shrink([...natural], (column) => column === last, 12, room);
  shrink(widths, (column) => texts[column] === true, 8, room);
  return shrink(widths, () => true, 1, room);
}

function shrink(widths: number[], may: (column: number) => boolean, floor: number, room: number): number[] {
  for (let excess = widths.reduce((sum, width) => sum + width, 0) - room; excess > 0; excess -= 1) {
    const widest = Math.max(...widths.filter((_, column) => may(column)));
    if (!(widest > floor)) break;
    const column = widths.findIndex((width, index) => may(index) && width === widest);
    widths[column] = widest - 1;
  }
  return widths;
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
  if (narrow.test(text)) return text.slice(0, width);
  let kept = "";
  for (const { segment } of segmenter.segment(text)) {
    if (stringWidth(kept + segment) > width) break;
    kept += segment;
  }
  return kept;
}

function widthOf(text: string): number {
  return narrow.test(text) ? text.length : stringWidth(text);
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
