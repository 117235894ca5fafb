// How wide texts are on a terminal, and how they are cut or wrapped to its width. Called by
// program.ts for all that commands say, by table.ts for cells, and for the log on a terminal. Pure.
import { createRequire } from "node:module";
import { stripVTControlCharacters } from "node:util";

/** Each character takes one column. `×` stands in most lines of `status`. */
const plainText = /^[\x20-\x7e…×]*$/;
const segmenter = new Intl.Segmenter();
/** Lines to copy to a shell: examples, and what `dev` says to export. */
const shellLine = /^ {2}(\$|export) /;
const shellWord = / *(?:[^\s"']|"[^"]*"|'[^']*')+/g;

let stringWidth: typeof import("string-width")["default"] | undefined;

/** The columns that a text takes, without its colours. */
export function widthOf(text: string): number {
  if (plainText.test(text)) return text.length;
  // Loaded when a text needs it: its patterns of emoji cost a short command a third of its CPU.
  stringWidth ??= loadStringWidth().default;
  return stringWidth(text);
}

function loadStringWidth(): typeof import("string-width") {
  return createRequire(import.meta.url)("string-width");
}

/** Cuts a text that is wider than this, with "…" at its end, and keeps the colour around it. */
export function cutToWidth(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  const plain = stripVTControlCharacters(text);
  const start = Math.max(0, text.indexOf(plain));
  return `${text.slice(0, start)}${cutPlain(plain, width - 1).trimEnd()}…${text.slice(start + plain.length)}`;
}

function cutPlain(text: string, width: number): string {
  if (plainText.test(text)) return text.slice(0, width);
  let kept = "";
  for (const { segment } of segmenter.segment(text)) {
    if (widthOf(kept + segment) > width) break;
    kept += segment;
  }
  return kept;
}

/**
 * Breaks long lines at blanks. What follows keeps the indent of its line, and `hang` columns more.
 * Lines for a shell are broken with a backslash, so they can be copied. A longer word stays whole.
 */
export function wrapLines(text: string, columns = Number.POSITIVE_INFINITY, hang = 0): string {
  if (columns === Number.POSITIVE_INFINITY) return text;
  return text
    .split("\n")
    .map((line) => (widthOf(line) <= columns ? line : wrapLine(line, columns, hang)))
    .join("\n");
}

function wrapLine(line: string, columns: number, hang: number): string {
  const isShell = shellLine.test(line);
  const [indent = ""] = /^ */.exec(line) ?? [];
  const words = line.trim().match(isShell ? shellWord : / *\S+/g) ?? [];
  const end = isShell ? " \\" : "";
  const next = `${indent}${" ".repeat(isShell ? 4 : hang)}`;
  const lines: string[] = [];
  let open = "";
  for (const word of words) {
    if (open !== "" && widthOf(open + word) + end.length > columns) {
      lines.push(`${open}${end}`);
      open = "";
    }
    open = open === "" ? `${lines.length === 0 ? indent : next}${word.trimStart()}` : open + word;
  }
  return [...lines, open].join("\n");
}
