// The text of one policy file with its lines: turns offsets into problems with a place. Used by everything that reads YAML.
import { announcesSecret, maskSecrets, maskValue } from "./mask-secrets.ts";
import type { Problem } from "./problem.ts";

/** A range of characters: start and end offset, the end not included. */
export type Range = readonly [start: number, end: number];

/** The text of a file, and how to say where in it something is wrong. */
export interface SourceText {
  readonly file: string;
  readonly text: string;
  /** The 1-based line of an offset. */
  lineOf(offset: number): number;
  /** A problem about a range of the text. */
  problemAt(range: Range, message: string, hint?: string): Problem;
}

/** A longer line is not shown at all: nobody reads it, and masking it would cost time. */
const maskedCharactersMax = 2_000;
/** How far above a value its key is looked for. */
const linesAboveMax = 50;

/** Wraps the text of a file. */
export function createSourceText(file: string, text: string): SourceText {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  const lineOf = (offset: number) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((starts[middle] ?? 0) <= offset) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  };
  const lineAt = (line: number) =>
    text.slice(starts[line - 1] ?? 0, (starts[line] ?? text.length + 1) - 1).replace(/\r$/, "");
  /** The line above that is indented less: in block style, the key that a line belongs to. */
  const headOf = (source: string, line: number) => {
    const indent = indentOf(source);
    if (indent === 0) return "";
    for (let above = line - 1; above >= Math.max(1, line - linesAboveMax); above -= 1) {
      const candidate = lineAt(above);
      if (candidate.trim() !== "" && indentOf(candidate) < indent) return candidate.slice(0, maskedCharactersMax);
    }
    return "";
  };
  const masked = (source: string, line: number) =>
    announcesSecret(headOf(source, line)) ? maskValue(source) : maskSecrets(source);
  const problemAt = ([start, end]: Range, message: string, hint?: string): Problem => {
    const offset = Math.max(0, Math.min(start, text.length));
    const line = lineOf(offset);
    const lineStart = starts[line - 1] ?? 0;
    const source = lineAt(line);
    const width = Math.max(1, Math.min(end, lineStart + source.length) - offset);
    const shown = source.length <= maskedCharactersMax ? masked(source, line) : "";
    return { file, line, column: offset - lineStart + 1, message, hint, source: shown, width };
  };
  return { file, text, lineOf, problemAt };
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}
