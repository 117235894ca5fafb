// The text of one policy file: turns offsets into problems with a place and a masked source line.
import { LineCounter } from "yaml";
import type { Problem } from "../problem.ts";
import { lineCharactersMax, maskLine } from "./mask-line.ts";

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

/** How far above a value its key is searched. */
const linesAboveMax = 50;

/** Wraps the text of a file. */
export function createSourceText(file: string, text: string): SourceText {
  const counter = new LineCounter();
  counter.addNewLine(0);
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) counter.addNewLine(at + 1);
  const lineAt = (line: number) => {
    const [start = 0, next = text.length + 1] = counter.lineStarts.slice(line - 1, line + 1);
    return text.slice(start, next - 1).replace(/\r$/, "");
  };
  /** The line above with less indentation: in block style, the key of this line. */
  const headOf = (source: string, line: number) => {
    const indent = indentOf(source);
    for (let above = line - 1; indent > 0 && above >= Math.max(1, line - linesAboveMax); above -= 1) {
      const candidate = lineAt(above);
      if (candidate.trim() !== "" && indentOf(candidate) < indent) return candidate.slice(0, lineCharactersMax);
    }
    return "";
  };
  return {
    file,
    text,
    lineOf: (offset) => counter.linePos(offset).line,
    problemAt: ([start, end], message, hint) => {
      const offset = Math.max(0, Math.min(start, text.length));
      const { line, col: column } = counter.linePos(offset);
      const source = lineAt(line);
      const width = Math.max(1, Math.min(end - offset, source.length - column + 1));
      return { file, line, column, message, hint, source: maskLine(source, headOf(source, line)), width };
    },
  };
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}
