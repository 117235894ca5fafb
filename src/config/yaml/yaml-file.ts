// One policy file as plain values, with the place of every value and its variables filled in.
// Refuses what YAML allows and policy files do not: doubled keys, merge keys, endless aliases.
import { type Document, isAlias, isMap, isNode, isPair, isScalar, isSeq, type Scalar, visit, type YAMLMap } from "yaml";
import type { Path, Problem, ReportOptions } from "../problem.ts";
import { policyLimits } from "../rules/policy-limits.ts";
import type { Variables } from "../settings.ts";
import { type ParsedYaml, parseYaml } from "./parse-yaml.ts";
import { readPlainYaml } from "./plain-yaml.ts";
import { createSourceText, type Range, type SourceText } from "./source-text.ts";

/** A file's values and their places. */
export interface YamlFile {
  readonly file: string;
  /** null, booleans, numbers, texts, lists and objects; undefined when it could not be read. */
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** The 1-based line of the value at a path. */
  lineOf(path: Path): number;
  /**
   * A problem about the value (or key) at a path, or its nearest ancestor; undefined for a value
   * with an unknown variable, which is a problem already.
   */
  problemAt(path: Path, message: string, options?: ReportOptions): Problem | undefined;
}

interface Filling {
  readonly source: SourceText;
  readonly variables: Variables;
  readonly problems: Problem[];
  readonly used: UsedVariables;
  /** Scalars with an unknown variable. */
  readonly unresolved: Set<unknown>;
}

/** The variables that were used: the name of each, keyed by its value. */
export type UsedVariables = Map<string, string>;

/**
 * Reads the text of a file; never throws. Unknown variables are problems. `used`: that of all files
 * of a set, since a problem may show a value from another file.
 */
export function readYamlFile(
  file: string,
  text: string,
  variables: Variables,
  used: UsedVariables = new Map(),
): YamlFile {
  const source = createSourceText(file, text);
  const plain = readPlainYaml(text);
  const read = plain?.value === undefined ? readTree(source, variables, used) : undefined;
  if (read?.ok === false)
    return { file, value: undefined, problems: read.problems, lineOf: () => 1, problemAt: () => undefined };
  // A tree takes a hundred times its text. It is read again where a problem needs its place.
  let again: ReadTree | undefined;
  const tree = () => {
    again ??= readTree(source, variables, used);
    return again;
  };
  return {
    file,
    value: read === undefined ? plain?.value : read.value,
    problems: read?.filling.problems ?? [],
    lineOf: (path) => {
      const start = plain?.starts.get(JSON.stringify(path));
      if (start !== undefined) return source.lineOf(start);
      const found = tree();
      return found.ok ? source.lineOf(rangeOfStep(stepTo(found.document, path), "value")[0]) : 1;
    },
    problemAt: (path, message, { hint, place = "value" } = {}) => {
      const found = tree();
      if (!found.ok) return found.problems[0];
      const { document, filling } = found;
      const step = stepTo(document, path);
      if (filling.unresolved.has(resolved(document, step.node))) return undefined;
      const shown = (words: string) => withNames(words, used);
      return source.problemAt(rangeOfStep(step, place), shown(message), hint === undefined ? undefined : shown(hint));
    },
  };
}

type ReadTree =
  | (Extract<ParsedYaml, { readonly ok: true }> & { readonly filling: Filling; readonly value: unknown })
  | Extract<ParsedYaml, { readonly ok: false }>;

function readTree(source: SourceText, variables: Variables, used: UsedVariables): ReadTree {
  const parsed = parseYaml(source);
  if (!parsed.ok) return parsed;
  const filling: Filling = { source, variables, problems: [], used, unresolved: new Set() };
  return { ...parsed, filling, value: toValue(parsed.document, filling) };
}

/** Fills in the variables, and gives the values; undefined when an alias leads nowhere. */
function toValue(document: Document.Parsed, filling: Filling): unknown {
  const { source, problems } = filling;
  let isComplete = true;
  visit(document, {
    Map: (_, map) => removeWrongKeys(map, filling),
    Alias: (_, alias, ancestors) => {
      const isInside = ancestors.some((node) => isNode(node) && "anchor" in node && node.anchor === alias.source);
      if (!isInside && alias.resolve(document) !== undefined) return;
      isComplete = false;
      const hint = "a value that starts with * must be in quotes";
      problems.push(source.problemAt(rangeOf(alias), "there is no anchor of this name before this alias", hint));
    },
    Scalar: (key, scalar, ancestors) => {
      if (typeof scalar.value !== "string" || !scalar.value.includes("${")) return;
      // token.env is the name of a variable: its value would show a secret.
      const [token, , env] = ancestors
        .slice(-3)
        .map((node) => (isPair(node) && isScalar(node.key) ? node.key.value : ""));
      if (key !== "key" && !(token === "token" && env === "env")) fillIn(scalar, filling);
    },
  });
  if (!isComplete) return undefined;
  // `yaml` counts uses of aliases only; what they stand for is shared, and counted here.
  const value: unknown = document.toJS({ maxAliasCount: -1 });
  if (countValues(value, new Map()) <= policyLimits.valuesMax) return value;
  const hint = `${policyLimits.valuesMax} is the most: use fewer aliases (*name)`;
  problems.push(source.problemAt([0, 1], "too many values once aliases are written out", hint));
  return undefined;
}

/** How many values stand in one, those of an alias at each use. `known`: in lists and objects. */
function countValues(value: unknown, known: Map<object, number>): number {
  if (typeof value !== "object" || value === null) return 1;
  let count = known.get(value);
  if (count === undefined) {
    count = 1;
    for (const part of Object.values(value)) count += countValues(part, known);
    known.set(value, count);
  }
  return count;
}

/** Reports merge keys, keys that are no words and doubled keys, and leaves them out. */
function removeWrongKeys(map: YAMLMap, { source, problems }: Filling): void {
  const lines = new Map<string, number>();
  map.items = map.items.filter(({ key }) => {
    const range = rangeOf(isNode(key) ? key : map);
    const name = isScalar(key) && typeof key.value === "string" ? key.value : "";
    const first = lines.get(name);
    if (name === "<<")
      problems.push(
        source.problemAt(range, "policy files have no merge keys (<<)", "use defaults, or write the values out"),
      );
    else if (name === "" || name === "__proto__") problems.push(source.problemAt(range, "a key must be a plain word"));
    else if (first !== undefined)
      problems.push(
        source.problemAt(range, `"${name}" stands here twice: first in line ${first}`, "remove one of them"),
      );
    else {
      lines.set(name, source.lineOf(range[0]));
      return true;
    }
    return false;
  });
}

function fillIn(scalar: Scalar, { source, variables, problems, used, unresolved }: Filling): void {
  const result = substitute(String(scalar.value), variables, (name, value) => used.set(value, name));
  if (result.ok) {
    scalar.value = result.text;
    return;
  }
  unresolved.add(scalar);
  const [start, end] = rangeOf(scalar);
  const at = start + Math.max(0, source.text.slice(start, end).indexOf(result.reference));
  problems.push(source.problemAt([at, at + result.reference.length], result.message, result.hint));
}

/** The value with its variables filled in, or what is wrong with which reference in it. */
type SubstitutionResult =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly reference: string; readonly message: string; readonly hint: string };

/**
 * Fills variables into one value, and tells `noteUse` of each. It does not scan the result again,
 * and no message holds a variable's value.
 */
export function substitute(
  text: string,
  variables: Variables,
  noteUse: (name: string, value: string) => void = () => {},
): SubstitutionResult {
  let failure: SubstitutionResult | undefined;
  const result = text.replace(
    /\$(\$\{)|\$\{([^}]*)(\}?)/g,
    (reference: string, escaped?: string, body = "", close = "") => {
      if (escaped !== undefined) return escaped;
      const [, name, fallback] = (close === "}" && /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s.exec(body)) || [];
      if (name === undefined) {
        const hint = `write \${NAME} or \${NAME:-default}; for a literal \${ write $\${`;
        failure ??= { ok: false, reference, message: "this is not a variable", hint };
        return "";
      }
      const own = Object.hasOwn(variables, name) ? variables[name] : undefined;
      if (own) noteUse(name, own);
      if (!own && fallback === undefined) {
        const hint = `set ${name}, or give a default: \${${name}:-value}`;
        failure ??= { ok: false, reference, message: `the environment variable ${name} is not set`, hint };
      }
      return own || (fallback ?? "");
    },
  );
  return failure ?? { ok: true, text: result };
}

/** A shorter value of a variable may be an ordinary word. */
const valueLengthMin = 6;

/** Replaces the values of variables in a text by their names: a value may be a secret. */
function withNames(text: string, used: UsedVariables): string {
  let result = text;
  for (const [value, name] of used) {
    if (value.length >= valueLengthMin) result = result.replaceAll(value, () => `\${${name}}`);
  }
  return result;
}

/** A value in the document, with its key where it has one. */
interface Step {
  readonly node: unknown;
  readonly key: unknown;
}

/** The step to a path; for a missing path, its nearest ancestor without the value. */
function stepTo(document: Document.Parsed, path: Path): Step {
  let step: Step = { node: document.contents, key: undefined };
  for (const part of path) {
    const parent = resolved(document, step.node);
    const pair = isMap(parent)
      ? parent.items.find(({ key }) => isScalar(key) && key.value === String(part))
      : undefined;
    if (pair !== undefined) step = { node: pair.value, key: pair.key };
    else if (isSeq(parent) && Number(part) < parent.items.length)
      step = { node: parent.items[Number(part)], key: undefined };
    else return { node: isMap(parent) ? parent : undefined, key: step.key };
  }
  return step;
}

function resolved(document: Document.Parsed, node: unknown): unknown {
  return isAlias(node) ? node.resolve(document) : node;
}

/**
 * The range of a key, or of a value on the line; of a collection, its key or the first key in it.
 */
function rangeOfStep({ node, key }: Step, place: "key" | "value"): Range {
  const [start, end] = rangeOf(node);
  if (place === "value" && (isScalar(node) || isAlias(node)) && end > start) return [start, end];
  if (isNode(key)) return rangeOf(key);
  const first = isMap(node) ? node.items[0]?.key : undefined;
  return first === undefined ? [start, start + 1] : rangeOf(first);
}

function rangeOf(node: unknown): Range {
  const [start, end] = (isNode(node) && node.range) || [0, 1];
  return [start, end];
}
