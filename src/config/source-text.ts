// The text of one policy file with its lines: turns offsets into problems with a place. Used by everything that reads YAML.
import { maskSecrets } from "./mask-secrets.ts";
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
  const problemAt = ([start, end]: Range, message: string, hint?: string): Problem => {
    const offset = Math.max(0, Math.min(start, text.length));
    const line = lineOf(offset);
    const lineStart = starts[line - 1] ?? 0;
    const source = text.slice(lineStart, (starts[line] ?? text.length + 1) - 1).replace(/\r$/, "");
    const width = Math.max(1, Math.min(end, lineStart + source.length) - offset);
    const shown = source.length <= maskedCharactersMax ? maskSecrets(source) : "";
    return { file, line, column: offset - lineStart + 1, message, hint, source: shown, width };
  };
  return { file, text, lineOf, problemAt };
}
