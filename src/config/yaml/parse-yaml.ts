// Parses the text of a policy file into a YAML document, or problems. Deep nesting is refused
// before yaml composes it: its composer would end the whole process (a failed RegExp allocation,
// not an exception). Its lexer and parser survive such a text: their stack is on the heap.
// `parseDocuments` reads YAML that is no policy file, for `syncline import`, without these limits.
import { Composer, CST, type Document, Lexer, Parser, parseAllDocuments, type YAMLError } from "yaml";
import { firstLine } from "../../core/errors.ts";
import { cutText } from "../../core/plain-text.ts";
import type { Problem } from "../problem.ts";
import { policyLimits } from "../rules/policy-limits.ts";
import type { SourceText } from "./source-text.ts";

/** The document of a file, or what is wrong with its syntax. */
export type ParsedYaml =
  | { readonly ok: true; readonly document: Document.Parsed }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Parses one YAML document within the limits of policy-limits.ts. Never throws for any text. */
export function parseYaml(source: SourceText): ParsedYaml {
  const tokens = readTokens(source);
  if (!Array.isArray(tokens)) return { ok: false, problems: [tokens] };
  const composer = new Composer({ uniqueKeys: false, stringKeys: true, merge: false, schema: "core" });
  const [document, second] = composer.compose(tokens, true, source.text.length);
  const errors = [...(document?.errors ?? []), ...(document?.warnings ?? [])];
  if (errors.length > 0) return { ok: false, problems: toProblems(source, errors) };
  if (second !== undefined)
    return { ok: false, problems: [source.problemAt([second.range[0], second.range[0] + 3], ...secondDocument)] };
  if (document !== undefined && document.contents !== null) return { ok: true, document };
  const empty = source.problemAt([0, 1], "the file is empty", 'it starts with: apiVersion: "syncline/v1"');
  return { ok: false, problems: [empty] };
}

/** The tokens of the file, or the first limit that it breaks. */
function readTokens(source: SourceText): CST.Token[] | Problem {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  const seen = new Map<string, number>();
  const { nestingMax } = policyLimits;
  for (const lexeme of new Lexer().lex(source.text)) {
    const start = parser.offset;
    for (const token of parser.next(lexeme)) tokens.push(token);
    // What is refused, or counted, begins with one of these signs.
    if (/^[!%&*-]/.test(lexeme)) {
      const type = CST.tokenType(lexeme) ?? "";
      seen.set(type, (seen.get(type) ?? 0) + 1);
      const refusal = refuseLexeme(type, lexeme, seen.get(type) ?? 0);
      if (refusal !== undefined) return source.problemAt([start, start + lexeme.length], ...refusal);
    }
    // The stack also holds the document and the current scalar: only collections count.
    if (parser.stack.length > nestingMax && parser.stack.filter(CST.isCollection).length > nestingMax) {
      const hint = "a policy file needs seven levels: is something indented wrongly?";
      return source.problemAt([start, start + 1], `nested deeper than ${nestingMax} levels`, hint);
    }
  }
  for (const token of parser.end()) tokens.push(token);
  return tokens;
}

/** One problem a line; only the first where the others follow from it. */
function toProblems(source: SourceText, errors: readonly YAMLError[]): readonly Problem[] {
  const [first] = errors;
  const cause = findUnclosed(source) ?? (first && findMisplaced(source, source.lineOf(first.pos[0])));
  if (cause !== undefined) return [cause];
  const lines = Map.groupBy(errors, ({ pos }) => source.lineOf(pos[0]));
  const problems = [...lines.values()].flatMap(([error]) =>
    error === undefined ? [] : [toProblem(source, error.code, error.message, error.pos)],
  );
  return problems.slice(0, first?.code === "TAB_AS_INDENT" ? 1 : policyLimits.syntaxProblemsMax);
}

/** The bracket or brace that is never closed: yaml complains of every line after it. */
function findUnclosed(source: SourceText): Problem | undefined {
  const open: { readonly sign: string; readonly at: number }[] = [];
  let at = 0;
  for (const lexeme of new Lexer().lex(source.text)) {
    const type = CST.tokenType(lexeme) ?? "";
    if (type === "flow-error-end") break;
    if (type === "flow-seq-start" || type === "flow-map-start") open.push({ sign: lexeme, at });
    const last = open.at(-1);
    if (type === "flow-seq-end" || type === "flow-map-end") {
      if (last !== undefined && (last.sign === "[") !== (lexeme === "]")) break;
      open.pop();
    }
    // The lexer's own marks are no text: doc-mode, and the \u001f before a scalar.
    if (type !== "doc-mode" && type !== "scalar") at += lexeme.length;
  }
  const last = open.at(-1);
  if (last === undefined) return undefined;
  const end = last.sign === "[" ? "]" : "}";
  return source.problemAt(
    [last.at, last.at + 1],
    `this ${last.sign} is never closed`,
    `close it with ${end}, or remove it`,
  );
}

/** A key that stands beside its neighbours: in this line, or in the next one. */
function findMisplaced(source: SourceText, line: number): Problem | undefined {
  const lines = source.text.split("\n", line + 2);
  for (const index of [line - 1, line]) {
    const [before, own, after] = [index - 1, index, index + 1].map((one) => indentOf(lines[one]));
    // A line that ends with its key opens a block, which may be indented by any number.
    if (before === undefined || own === undefined || own === before || /:\s*$/.test(lines[index - 1] ?? "")) continue;
    // A smaller indent ends a block, unless the next line goes on at the old one.
    if (own < before && after !== before) continue;
    const start = lines.slice(0, index).reduce((sum, { length }) => sum + length + 1, 0);
    const message = `indented by ${own}, its neighbours by ${before}`;
    return source.problemAt([start + own, start + own + 1], message, "line the key up with its neighbours");
  }
  return undefined;
}

/** Where the key of a line begins; undefined for a line without one. */
function indentOf(line = ""): number | undefined {
  return /^ *(?:- +)?(?=["'\w$-]+\s*:)/.exec(line)?.[0].length;
}

type Refusal = readonly [message: string, hint: string];

const secondDocument: Refusal = [
  "a second YAML document starts here",
  "keep one document a file: remove the ---, or move the rest into a file of its own",
];

/** `count`: how many lexemes of this type there are so far. */
function refuseLexeme(type: string, lexeme: string, count: number): Refusal | undefined {
  const { aliasesMax } = policyLimits;
  if (type === "tag") {
    const what = quoteIf(/^!{0,2}[a-z/]{1,20}$/i, lexeme);
    return [`${what} is a YAML tag: policy files have none`, "put quotes around a value that starts with !"];
  }
  if (type === "directive-line")
    return [`${quoteIf(/^%(?:YAML|TAG)\b/, lexeme)} is a YAML directive: policy files have none`, "remove the line"];
  if ((type === "anchor" || type === "alias") && count > aliasesMax) {
    const what = type === "anchor" ? "anchors (&name)" : "aliases (*name)";
    return [`more than ${aliasesMax} ${what} in one file`, "use defaults, or write the values out"];
  }
  return type === "doc-start" && count > 1 ? secondDocument : undefined;
}

function toProblem(source: SourceText, code: string, message: string, position: readonly [number, number]): Problem {
  const lineStart = source.text.lastIndexOf("\n", Math.max(0, position[0] - 1)) + 1;
  // The hints see a short line only: their patterns are not made for 256 KiB of commas.
  const [line = ""] = source.text.slice(lineStart, lineStart + 300).split("\n", 1);
  return source.problemAt(position, `YAML: ${cutText(message.trim(), 200)}`, hintOfSyntax(code, message, line));
}

/** What helps against a common syntax error of `yaml` (its code and message), if that is known. */
function hintOfSyntax(code: string, message: string, line: string): string | undefined {
  if (/(cron\s*:|-)\s*\[?\s*\*/.test(line)) return 'put the cron expression in quotes: cron: "* * * * *"';
  if (/:\s*[*]/.test(line)) return "a value that starts with * must be in quotes";
  if (/[{,[][^"']*\$\{/.test(line)) return `inside { } or [ ] put a value with \${NAME} in quotes: "\${NAME}"`;
  if (/:\s+[@`%]/.test(line)) return "a value that starts with @, ` or % must be in quotes";
  if (/^\s*\t/.test(line) || /tab/i.test(message)) return "indent with spaces, not with tabs";
  if (/^\s*(?:- +)?[A-Za-z]+:[^\s/]/.test(line)) return "put a space after the colon";
  if (/nested mappings|compact mapping/i.test(message)) return "put a value that holds a colon and a space in quotes";
  if (code === "BAD_INDENT" || /indent/i.test(message)) return "line the key up with its neighbours";
  if (/:\s*[[{].*\bin\b/.test(line) || /in \[/.test(line)) return "put an expression that holds [ ] in single quotes";
  return undefined;
}

/** Quotes a text of this form; any other may be a secret that begins with such a sign. */
function quoteIf(form: RegExp, lexeme: string): string {
  return form.test(lexeme) ? `"${cutText(lexeme.trim(), 40)}"` : "this";
}

/** The values of the documents, without empty ones; or what is wrong with the first wrong one. */
export function parseDocuments(text: string): { readonly values: readonly unknown[] } | { readonly problem: string } {
  const values: unknown[] = [];
  try {
    for (const document of parseAllDocuments(text, { merge: true, uniqueKeys: false, logLevel: "error" })) {
      const [error] = document.errors;
      if (error !== undefined) throw error;
      const value: unknown = document.toJS();
      if (value !== null) values.push(value);
    }
  } catch (error) {
    // Also yaml's error for more than 100 aliases.
    return { problem: firstLine(error) };
  }
  return { values };
}
