// The text of one policy file: turns offsets into problems with a place and a source line. Of the
// line it shows keys, and the values of keys that the schema knows and that hold no secret; every
// other text becomes asterisks.

import { LineCounter } from "yaml";
import { withoutSecretShapes } from "../../core/secrets.ts";
import { schemaWords } from "../json-schema.ts";
import type { Problem } from "../problem.ts";

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

/** A longer line is not shown: it helps no reader, and masking it takes time. */
const lineCharactersMax = 2_000;

const keyPattern = /(?<=^\s*(?:-\s+)?|[{,]\s*)["']?([\w$.-]+)["']?\s*:(?=\s|$)/g;

/** Values that may be a secret; shown only in the one form that is none. */
const harmlessForms = new Map<string, RegExp>(
  Object.entries({
    auth: /^["']?(?:basic|post)["']?$/,
    baseUrl: /^["']?(?:https?:\/\/|\$)[\w.:[\]/~${}-]*["']?$/,
    env: /^["']?[A-Z_][A-Z0-9_]{0,63}["']?$/,
    tokenUrl: /^["']?(?:https?:\/\/|\$)[\w.:[\]/~${}-]*["']?$/,
    url: /^$/,
  }),
);

/** A word with a digit, as long as a secret. */
const strangeWord = /(?=[^\s"',;=()\d]*\d)[^\s"',;=()]{8,}/g;

/**
 * Replaces each character that may belong to a secret by an asterisk, so that columns stay.
 * `head`: the line above with less indentation.
 */
export function maskLine(line: string, head = ""): string {
  if (line.length > lineCharactersMax) return "";
  const above = /^[\s-]*["']?([\w$.-]+)["']?\s*:\s*(?:#.*)?$/.exec(head)?.[1] ?? "";
  const keys = [...line.matchAll(keyPattern)];
  const first = line.slice(0, keys[0]?.index);
  let shown = schemaWords().lists.has(above) ? maskComment(first) : maskValue(first);
  let parent = above;
  for (const [index, match] of keys.entries()) {
    const [whole, key = ""] = match;
    const value = line.slice(match.index + whole.length, keys[index + 1]?.index);
    // A token may stand there instead of a key: `token: { SECRET: x }`.
    const isStrange = /^(?:token|oauth2)$/.test(parent) && !schemaWords().all.has(key);
    shown += (isStrange ? stars(whole) : whole) + (isHarmless(key, value) ? maskComment(value) : maskValue(value));
    if (value.trim() === "{" || value.trim() === "") parent = key;
  }
  return shown;
}

function isHarmless(key: string, value: string): boolean {
  if (withoutSecretShapes(value) !== value) return false;
  const text = value.replace(/(?:^|\s)#.*$/s, "").replace(/[\s},]*$/, "");
  const form = harmlessForms.get(key);
  return form === undefined ? schemaWords().shown.has(key) : form.test(text.trim());
}

/** Masks a value, but not the brackets around it. */
function maskValue(value: string): string {
  return value.replace(/^([\s{[-]*)(.*?)([\s}\],]*)$/s, (_, before: string, text: string, after: string) =>
    [before, stars(text), after].join(""),
  );
}

/** The words of a comment may be anything. */
function maskComment(value: string): string {
  return value.replace(/(?:^|\s)#.*$/s, (comment) => comment.replace(strangeWord, stars));
}

function stars(text: string): string {
  return "*".repeat(text.length);
}
