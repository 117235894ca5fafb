// Tables and colours for people. Commands print these without `--json`. Columns share the width of
// the terminal: prose is wrapped or goes below its row, and a name that does not fit ends with "…".
import { styleText } from "node:util";
import { Option } from "commander";
import { isGood, type Outcome, type OutcomeStatus } from "../model/outcome.ts";
import type { Screen } from "./command-io.ts";
import { cutToWidth, widthOf, wrapLines } from "./width.ts";

const gap = "  ";
/** Texts wider than this may go below their row. */
const shortMax = 24;
/** A cell of prose is wrapped down to this width; where it gets less, it goes below its row. */
const wrapMin = 40;
/** Cells of times, numbers and durations: cut last, as a cut number says something else. */
const figure = /^$|^\p{Nd}[\d:.TZ+-]*( ?[\d:.+-]+Z?| ?[A-Z]{2,5})*$/u;
const instant = /\b(\d{4}-)(\d\d-\d\d \d\d:\d\d)(:\d\d)?(?=Z| [A-Z]{2,5}\b)/g;
/** The same time in UTC, to the second. */
const besideExact = /[A-Z] \d\d:\d\d:\d\dZ/;

/** A text in a colour, if `colours` is set. */
export function paint(style: Parameters<typeof styleText>[0], text: string, colours: boolean): string {
  return colours ? styleText(style, text, { validateStream: false }) : text;
}

/** `--wide` of a command with tables. program.ts reads it before the command is made. */
export function wideOption(): Option {
  return new Option("--wide", "show whole cells on a terminal, also beyond its width");
}

/** What a table gives up where it is too wide. */
interface Narrowing {
  /** Columns to leave out, the first of these first. */
  readonly leaveOut?: readonly string[];
  /** Prose has one line below its row, cut to it, in place of as many as it needs. */
  readonly isBrief?: boolean;
}

/**
 * Formats rows under a heading, without borders, no wider than the screen. Where they are wider,
 * times get shorter, prose is wrapped or goes below its row, and columns are left out; only then a
 * name is cut.
 */
export function toTable(
  heading: readonly string[],
  rows: readonly (readonly string[])[],
  screen: Screen,
  { leaveOut = [], isBrief = false }: Narrowing = {},
): string {
  const titles = heading.map((title) => (title === "" ? "" : paint("bold", title, screen.colours)));
  const most = screen.columns ?? Number.POSITIVE_INFINITY;
  const whole = measure(heading, rows);
  const cells = excessOf(whole, most) <= 0 ? rows : withShortTimes(rows);
  const columns = cells === rows ? whole : measure(heading, cells);
  const isCut = giveWidths(columns, most, { leaveOut, isBrief });
  const left = columns.filter(({ place }) => place === "out").map(({ title }) => title);
  const isBriefCut = isBrief && cells.some((row) => widthOf(gap + cellsBelow(row, columns).join(gap)) > most);
  if (isCut || isBriefCut || cells !== rows || left.length > 0) screen.onCut?.(left);
  const showBelow = (texts: readonly string[]) => {
    if (!isBrief) return texts.map((text) => wrapLines(text.replaceAll(/^/gm, gap), most));
    return texts.length === 0 ? [] : [briefLine(texts, most)];
  };
  return [titles, ...cells]
    .flatMap((row) => [...toLines(row, columns), ...showBelow(cellsBelow(row, columns))])
    .join("\n");
}

interface Column {
  readonly title: string;
  readonly natural: number;
  readonly isText: boolean;
  /** Its width; or on lines of its own below the row; or left out. */
  place: number | "below" | "out";
}

function measure(heading: readonly string[], rows: readonly (readonly string[])[]): Column[] {
  return heading.map((title, column) => {
    const widest = (most: number, row: readonly string[]) =>
      Math.max(most, ...(row[column] ?? "").split("\n").map(widthOf));
    const natural = rows.reduce(widest, widthOf(title));
    return { title, natural, place: natural, isText: rows.some((row) => !figure.test(row[column] ?? "")) };
  });
}

/** By how much the columns are too wide. */
function excessOf(columns: readonly Column[], most: number): number {
  const widths = columns.flatMap(({ place }) => (typeof place === "number" ? [place] : []));
  return widths.reduce((sum, width) => sum + width, gap.length * (widths.length - 1)) - most;
}

/**
 * `11-23 03:04Z` for `2026-11-23 03:04:20Z`: the year stays where there are several, and the
 * seconds where two times of a column would become the same.
 */
function withShortTimes(rows: readonly (readonly string[])[]): readonly (readonly string[])[] {
  const years = new Set(
    rows.flatMap((row) => row.flatMap((cell) => [...cell.matchAll(instant)].map(([, year]) => year))),
  );
  if (years.size === 0) return rows;
  const year = years.size > 1 ? "$1" : "";
  const shorten = (to: string) => rows.map((row) => row.map((cell) => cell.replaceAll(instant, to)));
  const isAmbiguous = rows[0]?.some((_, column) => {
    const cells = rows.map((row) => row[column] ?? "");
    const times = cells.flatMap((cell) => cell.match(instant) ?? []);
    const minutes = times.map((time) => time.slice(0, "2026-11-23 03:04".length));
    return new Set(times).size > new Set(minutes).size || cells.some((cell) => besideExact.test(cell));
  });
  return shorten(isAmbiguous ? `${year}$2$3` : `${year}$2`);
}

/** Gives each column its place; true when names had to be cut. */
function giveWidths(columns: readonly Column[], most: number, { leaveOut, isBrief }: Required<Narrowing>): boolean {
  for (const title of [undefined, ...leaveOut, undefined, undefined]) {
    const excess = excessOf(columns, most);
    if (excess <= 0) return false;
    const column = title === undefined ? proseIn(columns) : columns.find((one) => one.title === title);
    if (typeof column?.place !== "number") continue;
    if (title !== undefined) column.place = "out";
    else column.place = !isBrief && column.place - excess >= wrapMin ? column.place - excess : "below";
  }
  let isCut = false;
  for (const [floor, isMeant] of [[8, (column: Column) => column.isText] as const, [1, () => true] as const]) {
    while (excessOf(columns, most) > 0) {
      const widths = columns.map((one) => (isMeant(one) && typeof one.place === "number" ? one.place : 0));
      const widest = Math.max(...widths);
      const column = columns[widths.indexOf(widest)];
      if (column === undefined || widest <= floor) break;
      column.place = widest - 1;
      isCut = true;
    }
  }
  return isCut;
}

/** The last column of prose that still stands in the row; the first column names the row. */
function proseIn(columns: readonly Column[]): Column | undefined {
  return columns.findLast(
    ({ isText, natural, place }, index) => index > 0 && isText && natural > shortMax && typeof place === "number",
  );
}

/** The lines of one row: a cell may have several. */
function toLines(row: readonly string[], columns: readonly Column[]): string[] {
  const beside = columns.flatMap(({ place }, index) => {
    const cell = row[index] ?? "";
    if (typeof place !== "number") return [];
    return [{ place, lines: (place < wrapMin ? cell : wrapLines(cell, place)).split("\n") }];
  });
  const height = Math.max(1, ...beside.map(({ lines }) => lines.length));
  return Array.from({ length: height }, (_, index) =>
    beside
      .map(({ place, lines }) => pad(lines[index] ?? "", place))
      .join(gap)
      .trimEnd(),
  );
}

/** The cells that stand below a row. */
function cellsBelow(row: readonly string[], columns: readonly Column[]): string[] {
  const cells = columns.flatMap(({ place }, index) => (place === "below" ? (row[index] ?? []) : []));
  return cells.filter((cell) => cell !== "");
}

/** One line of several cells: the last one is cut. */
function briefLine(cells: readonly string[], most: number): string {
  const before = cells
    .slice(0, -1)
    .map((cell) => gap + cell)
    .join("");
  return before + gap + cutToWidth(cells.at(-1) ?? "", Math.max(1, most - widthOf(before + gap)));
}

function pad(cell: string, width: number): string {
  const shown = cutToWidth(cell, width);
  return shown + " ".repeat(Math.max(0, width - widthOf(shown)));
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

interface ShownStatus extends Pick<Outcome, "status" | "evidence"> {
  readonly confidence?: Outcome["confidence"] | undefined;
}

/** A status in its colour, and why it is not certain: `succeeded (inferred, ambiguous)`. */
export function showStatus({ status, evidence, confidence }: ShownStatus, colours: boolean): string {
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
