// One problem in a policy file, and how it is shown. Never holds a value from the environment. Made
// by the loader; printed by `syncline validate` and `serve`.

/** What is wrong, where, and what to do about it. */
export interface Problem {
  readonly file: string;
  /** 1-based; 0 when the problem is about the whole file or folder. */
  readonly line: number;
  /** 1-based, in UTF-16 units; 0 when the line is 0. */
  readonly column: number;
  readonly message: string;
  /** What to do, where known. */
  readonly hint: string | undefined;
  /**
   * The source line, secrets masked, without its line end; empty when very long; undefined when the
   * line is 0.
   */
  readonly source: string | undefined;
  /** How many characters of the line the problem covers, at least 1. */
  readonly width: number;
}

/** The path from the root of a file to a value: keys and 0-based indexes. */
export type Path = readonly (string | number)[];

/** What a report may add. `place`: which end of "key: value" it points at; default the value. */
export interface ReportOptions {
  readonly hint?: string | undefined;
  readonly place?: "key" | "value";
}

/** Reports a problem about the value (or key) at a path. */
export type ReportProblem = (path: Path, message: string, options?: ReportOptions) => void;

/** With the number of the line, it fits into 80 columns. */
const sourceCharactersMax = 68;

/** A problem about a whole file or folder. */
export function problemOfFile(file: string, message: string, hint?: string): Problem {
  return { file, line: 0, column: 0, message, hint, source: undefined, width: 1 };
}

/** Sorts problems by file, line and column, and drops repeated ones. */
export function sortProblems(problems: readonly Problem[]): readonly Problem[] {
  const seen = new Set<string>();
  const once = problems.filter((problem) => {
    const key = JSON.stringify([problem.file, problem.line, problem.column, problem.message]);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
  return once.sort(
    (a, b) =>
      compareTexts(a.file, b.file) || a.line - b.line || a.column - b.column || compareTexts(a.message, b.message),
  );
}

/** Formats a problem: place and message, the source line, a caret, the hint. */
export function formatProblem(problem: Problem, colours: boolean): string {
  const paint = (code: string, text: string) => (colours ? `\u001b[${code}m${text}\u001b[0m` : text);
  const place = problem.line === 0 ? problem.file : `${problem.file}:${problem.line}:${problem.column}`;
  const lines = [`${paint("1", printable(place))}: ${paint("31", printable(problem.message))}`];
  if (problem.source !== undefined && problem.source !== "") {
    const shown = windowOf(problem.source, problem.column - 1);
    const gutter = String(problem.line);
    const width = Math.max(1, Math.min(problem.width, shown.text.length - shown.caret));
    lines.push(`  ${gutter} | ${printable(shown.text)}`);
    lines.push(`  ${" ".repeat(gutter.length)} | ${" ".repeat(shown.caret)}${paint("31", "^".repeat(width))}`);
  }
  if (problem.hint !== undefined) lines.push(`  ${paint("36", "hint:")} ${printable(problem.hint)}`);
  return lines.join("\n");
}

/** The part of a long line around the caret. */
function windowOf(source: string, caret: number): { text: string; caret: number } {
  if (source.length <= sourceCharactersMax) return { text: source, caret };
  const start = Math.max(0, Math.min(caret - 40, source.length - sourceCharactersMax));
  return { text: source.slice(start, start + sourceCharactersMax), caret: caret - start };
}

/**
 * Replaces control characters, which could rewrite the screen, by one visible character each, so
 * that the caret still fits.
 */
function printable(text: string): string {
  return text.replace(/\t/g, " ").replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, "\u00b7");
}

function compareTexts(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
