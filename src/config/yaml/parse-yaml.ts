// Parses the text of a policy file into YAML nodes, or problems. It counts depth and aliases before
// `yaml` composes a tree: deep nesting ends the whole process there (a failed RegExp allocation,
// not an exception). It counts on the tokens of yaml's own lexer and parser, which keep their stack
// on the heap, so nothing recurses. Called by yaml-file.ts.
import { Composer, CST, Lexer, type Node, Parser } from "yaml";
import type { Problem } from "../problem.ts";
import { policyLimits } from "../rules/policy-limits.ts";
import type { SourceText } from "./source-text.ts";
import { hintOfSyntax } from "./yaml-hints.ts";

/** The root node of a file (null when it holds only comments), or what is wrong with its syntax. */
export type ParsedYaml =
  | { readonly ok: true; readonly root: Node | null }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Parses one YAML document within the limits of policy-limits.ts. Never throws for any text. */
export function parseYaml(source: SourceText): ParsedYaml {
  const tokens = readTokens(source);
  if (!Array.isArray(tokens)) return { ok: false, problems: [tokens] };
  const composer = new Composer({ uniqueKeys: false, stringKeys: true, merge: false, schema: "core" });
  const documents = [...composer.compose(tokens, true, source.text.length)];
  const [document, second] = documents;
  if (document === undefined) return { ok: true, root: null };
  const errors = [...document.errors, ...document.warnings];
  if (errors.length > 0) {
    const problems = errors
      .slice(0, policyLimits.syntaxProblemsMax)
      .map((error) => toProblem(source, error.code, error.message, error.pos));
    return { ok: false, problems };
  }
  if (second !== undefined) {
    const at = second.range[0];
    const hint = "keep one document a file: remove the ---, or move the rest into a file of its own";
    return { ok: false, problems: [source.problemAt([at, at + 3], "a second YAML document starts here", hint)] };
  }
  return { ok: true, root: document.contents };
}

/** The tokens of the file, or the first limit that it breaks. */
function readTokens(source: SourceText): CST.Token[] | Problem {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  const seen = { anchor: 0, alias: 0, document: 0 };
  for (const lexeme of new Lexer().lex(source.text)) {
    const start = parser.offset;
    for (const token of parser.next(lexeme)) tokens.push(token);
    const refusal = refuseLexeme(CST.tokenType(lexeme), lexeme, seen);
    if (refusal !== undefined) return source.problemAt([start, start + lexeme.length], refusal.message, refusal.hint);
    if (parser.stack.length > policyLimits.nestingMax && depthOf(parser) > policyLimits.nestingMax) {
      const message = `nested deeper than ${policyLimits.nestingMax} levels`;
      return source.problemAt(
        [start, start + 1],
        message,
        "a policy file needs seven levels: is something indented wrongly?",
      );
    }
  }
  for (const token of parser.end()) tokens.push(token);
  return tokens;
}

/** The stack also holds the document and the current scalar: only collections count. */
function depthOf(parser: Parser): number {
  return parser.stack.filter((token) => CST.isCollection(token)).length;
}

function refuseLexeme(
  type: CST.TokenType | null,
  lexeme: string,
  seen: { anchor: number; alias: number; document: number },
): { message: string; hint: string } | undefined {
  const tooMany = `more than ${policyLimits.aliasesMax}`;
  if (type === "tag") {
    return {
      message: `${quoteIf(/^!{0,2}[a-z/]{1,20}$/i, lexeme, "this")} is a YAML tag: policy files have none`,
      hint: "put quotes around a value that starts with !",
    };
  }
  if (type === "directive-line") {
    const what = quoteIf(/^%(?:YAML|TAG)\b/, lexeme, "this");
    return { message: `${what} is a YAML directive: policy files have none`, hint: "remove the line" };
  }
  if (type === "anchor" && ++seen.anchor > policyLimits.aliasesMax) {
    return { message: `${tooMany} anchors (&name) in one file`, hint: "use defaults, or write the values out" };
  }
  if (type === "alias" && ++seen.alias > policyLimits.aliasesMax) {
    return { message: `${tooMany} aliases (*name) in one file`, hint: "use defaults, or write the values out" };
  }
  if (type === "doc-start" && ++seen.document > 1) {
    const hint = "keep one document a file: remove the ---, or move the rest into a file of its own";
    return { message: "a second YAML document starts here", hint };
  }
  return undefined;
}

function toProblem(source: SourceText, code: string, message: string, position: readonly [number, number]): Problem {
  const lineStart = source.text.lastIndexOf("\n", Math.max(0, position[0] - 1)) + 1;
  const lineEnd = source.text.indexOf("\n", position[0]);
  // The hints see a short line only: their patterns are not made for 256 KiB of commas.
  const line = source.text.slice(lineStart, Math.min(lineEnd === -1 ? source.text.length : lineEnd, lineStart + 300));
  return source.problemAt(position, `YAML: ${shorten(message, 200)}`, hintOfSyntax(code, message, line));
}

/** Quotes a text of this form; any other may be a secret that begins with such a sign. */
function quoteIf(form: RegExp, lexeme: string, otherwise: string): string {
  return form.test(lexeme) ? `"${shorten(lexeme)}"` : otherwise;
}

function shorten(text: string, length = 40): string {
  const line = text.trim();
  return line.length > length ? `${line.slice(0, length)}…` : line;
}
