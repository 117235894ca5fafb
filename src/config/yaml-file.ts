// One policy file as plain values, with the place of every value. Called by load-policies.ts.
// Checks what YAML allows and policy files do not: doubled keys, merge keys, aliases without end. Knows nothing of policies.
import { type Alias, isAlias, isMap, isScalar, isSeq, type Node, type Pair, type YAMLMap } from "yaml";
import { createNodePlaces, type Path, type Place } from "./node-places.ts";
import { parseYaml } from "./parse-yaml.ts";
import { policyLimits } from "./policy-limits.ts";
import type { Problem } from "./problem.ts";
import { createSourceText, type SourceText } from "./source-text.ts";
import { substitute, type Variables } from "./substitute.ts";

/** A file's values and where they stand. */
export interface YamlFile {
  readonly file: string;
  /** JSON-like: null, booleans, numbers, texts, lists, objects without a prototype. undefined when it could not be read. */
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** Where a variable or an alias stands for nothing: what is said of these values otherwise is noise. */
  readonly unresolved: readonly Path[];
  /** The 1-based line of the value at a path. */
  lineOf(path: Path): number;
  /** A problem about the value (or the key) at a path; of a path that is not there, about its nearest ancestor. */
  problemAt(
    path: Path,
    message: string,
    options?: { readonly hint?: string | undefined; readonly place?: Place },
  ): Problem;
}

/** Reads the text of a file; never throws. Undefined variables are problems. */
export function readYamlFile(file: string, text: string, variables: Variables): YamlFile {
  const source = createSourceText(file, text);
  const parsed = parseYaml(source);
  const problems: Problem[] = parsed.ok ? [] : [...parsed.problems];
  const root = parsed.ok ? parsed.root : null;
  const survey = surveyNodes(root, source);
  problems.push(...survey.problems);
  if (parsed.ok && root === null)
    problems.push(source.problemAt([0, 1], "the file is empty", 'it starts with: apiVersion: "syncline/v1"'));
  const used = new Map<string, string>();
  const { targets } = survey;
  const conversion: Conversion = { source, variables, targets, problems, unresolved: [], values: 0, used };
  const plain = root === null ? undefined : toPlain(root, [], conversion);
  // Half a file says nothing about what is missing in it.
  const value = conversion.values > policyLimits.valuesMax ? undefined : plain;
  const places = createNodePlaces(root, survey.targets);
  return {
    file,
    value,
    problems,
    unresolved: conversion.unresolved,
    lineOf: (path) => source.lineOf(places.rangeOf(path, "value")[0]),
    problemAt: (path, message, options) => {
      const hint = options?.hint === undefined ? undefined : withNames(options.hint, used);
      return source.problemAt(places.rangeOf(path, options?.place ?? "value"), withNames(message, used), hint);
    },
  };
}

/** A shorter value of a variable is also a word. */
const valueLengthMin = 6;

/** A text that quotes the value of a variable, with the variable in its place: the value may be a secret. */
function withNames(text: string, used: ReadonlyMap<string, string>): string {
  let result = text;
  for (const [value, name] of used) {
    if (value.length >= valueLengthMin) result = result.replaceAll(value, () => `\${${name}}`);
  }
  return result;
}

interface Survey {
  readonly problems: readonly Problem[];
  /** What each alias stands for. */
  readonly targets: ReadonlyMap<Alias, Node>;
}

/** Walks the tree as written, without following aliases: depth is bounded by parse-yaml.ts. */
function surveyNodes(root: Node | null, source: SourceText): Survey {
  const problems: Problem[] = [];
  const targets = new Map<Alias, Node>();
  const anchors = new Map<string, Node>();
  const visit = (node: unknown): void => {
    if (isAlias(node)) {
      const target = anchors.get(node.source);
      if (target === undefined) {
        const hint = "a value that starts with * must be in quotes";
        problems.push(problemOfNode(source, node, "there is no anchor of this name before this alias", hint));
      } else targets.set(node, target);
    } else if (isSeq(node)) {
      for (const item of node.items) visit(item);
    } else if (isMap(node)) {
      problems.push(...problemsOfKeys(node, source));
      for (const pair of node.items) visit(pair.value);
    }
    // After the children, so that an anchor that holds itself has no target and is a problem, not a loop.
    if ((isSeq(node) || isMap(node) || isScalar(node)) && node.anchor !== undefined) anchors.set(node.anchor, node);
  };
  visit(root);
  return { problems, targets };
}

function problemsOfKeys(map: YAMLMap, source: SourceText): Problem[] {
  const problems: Problem[] = [];
  const lines = new Map<string, number>();
  for (const pair of map.items) {
    const key = keyOf(pair);
    const offset = isScalar(pair.key) ? (pair.key.range?.[0] ?? 0) : (map.range?.[0] ?? 0);
    if (isScalar(pair.key) && pair.key.value === "<<") {
      const hint = "use defaults, or write the values out";
      problems.push(problemOfNode(source, pair.key, "policy files have no merge keys (<<)", hint));
    } else if (key === undefined) {
      problems.push(problemOfNode(source, pair.key, "a key must be a plain word"));
    } else if (lines.has(key)) {
      problems.push(
        problemOfNode(
          source,
          pair.key,
          `"${key}" stands here twice: first in line ${lines.get(key)}`,
          "remove one of them",
        ),
      );
    } else lines.set(key, source.lineOf(offset));
  }
  return problems;
}

interface Conversion {
  readonly source: SourceText;
  readonly variables: Variables;
  readonly targets: ReadonlyMap<Alias, Node>;
  readonly problems: Problem[];
  readonly unresolved: Path[];
  values: number;
  /** The variables that were put in: name by value. */
  readonly used: Map<string, string>;
}

/** Follows aliases: the count of values bounds what they unfold to. */
function toPlain(node: unknown, path: Path, conversion: Conversion): unknown {
  conversion.values += 1;
  if (conversion.values > policyLimits.valuesMax) {
    if (conversion.values === policyLimits.valuesMax + 1) {
      const message = `more than ${policyLimits.valuesMax} values once aliases are written out`;
      conversion.problems.push(problemOfNode(conversion.source, node, message, "use fewer aliases (*name)"));
    }
    return undefined;
  }
  if (isAlias(node)) {
    const target = conversion.targets.get(node);
    if (target === undefined) conversion.unresolved.push(path);
    return toPlain(target, path, conversion);
  }
  if (isSeq(node)) return node.items.map((item, index) => toPlain(item, [...path, index], conversion));
  if (isMap(node)) {
    const result: Record<string, unknown> = Object.create(null);
    for (const pair of node.items) {
      const key = keyOf(pair);
      if (key !== undefined) result[key] = toPlain(pair.value, [...path, key], conversion);
    }
    return result;
  }
  if (!isScalar(node)) return null;
  return typeof node.value === "string" ? toText(node.value, node, path, conversion) : node.value;
}

function toText(text: string, node: Node, path: Path, conversion: Conversion): string {
  // token.env is the name of a variable: putting the variable's value there would show a secret.
  if (!text.includes("${") || (path.at(-1) === "env" && path.at(-2) === "token")) return text;
  const result = substitute(text, conversion.variables, (name, value) => conversion.used.set(value, name));
  if (result.ok) return result.text;
  const [start = 0, end = 0] = node.range ?? [];
  const index = conversion.source.text.slice(start, end).indexOf(result.reference);
  const at = start + Math.max(0, index);
  conversion.unresolved.push(path);
  conversion.problems.push(
    conversion.source.problemAt([at, at + result.reference.length], result.message, result.hint),
  );
  return text;
}

/** The keys that are problems of their own are left out of the values. */
const keysLeftOut: readonly string[] = ["", "<<", "__proto__"];

function keyOf(pair: Pair): string | undefined {
  const key = isScalar(pair.key) ? pair.key.value : undefined;
  return typeof key === "string" && !keysLeftOut.includes(key) ? key : undefined;
}

function problemOfNode(source: SourceText, node: unknown, message: string, hint?: string): Problem {
  const range = isAlias(node) || isScalar(node) || isMap(node) || isSeq(node) ? node.range : undefined;
  return source.problemAt([range?.[0] ?? 0, range?.[1] ?? 1], message, hint);
}
