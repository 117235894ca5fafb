// One policy file as plain values, with the place of every value. It refuses what YAML allows and
// policy files do not: doubled keys, merge keys, endless aliases. Knows nothing of policies. Called
// by load-policies.ts.

import { type Alias, isAlias, isMap, isScalar, isSeq, type Node, type Pair, type YAMLMap } from "yaml";
import type { Problem } from "../problem.ts";
import { policyLimits } from "../rules/policy-limits.ts";
import { parseYaml } from "./parse-yaml.ts";
import { createSourceText, type Range, type SourceText } from "./source-text.ts";

const reference = /\$(\$\{)|\$\{([^}]*)(\}?)/g;

const referenceBody = /^([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?$/s;

/** A file's values and their places. */
export interface YamlFile {
  readonly file: string;
  /**
   * JSON-like: null, booleans, numbers, texts, lists, objects without a prototype. undefined when
   * it could not be read.
   */
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** Values with an unknown variable or alias: further problems about them are noise. */
  readonly unresolved: readonly Path[];
  /** The 1-based line of the value at a path. */
  lineOf(path: Path): number;
  /**
   * A problem about the value (or key) at a path; for a missing path, about its nearest ancestor.
   */
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
  // In half a file, missing keys mean nothing.
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

/** A shorter value of a variable may be an ordinary word. */
const valueLengthMin = 6;

/** Replaces the values of variables in a text by their names: a value may be a secret. */
function withNames(text: string, used: ReadonlyMap<string, string>): string {
  let result = text;
  for (const [value, name] of used) {
    if (value.length >= valueLengthMin) result = result.replaceAll(value, () => `\${${name}}`);
  }
  return result;
}

interface Survey {
  readonly problems: readonly Problem[];
  /** The target of each alias. */
  readonly targets: ReadonlyMap<Alias, Node>;
}

/** Walks the tree without following aliases; parse-yaml.ts limits its depth. */
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
    // Set after the children, so that an anchor inside itself has no target: a problem, not a loop.
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
  /** The variables that were used: name by value. */
  readonly used: Map<string, string>;
}

/**
 * Converts nodes to plain values, following aliases; the limit of values bounds what they expand
 * to.
 */
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
  // token.env is the name of a variable: its value would show a secret.
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

/** Keys that are problems of their own are left out of the values. */
const keysLeftOut: readonly string[] = ["", "<<", "__proto__"];

function keyOf(pair: Pair): string | undefined {
  const key = isScalar(pair.key) ? pair.key.value : undefined;
  return typeof key === "string" && !keysLeftOut.includes(key) ? key : undefined;
}

function problemOfNode(source: SourceText, node: unknown, message: string, hint?: string): Problem {
  const range = isAlias(node) || isScalar(node) || isMap(node) || isSeq(node) ? node.range : undefined;
  return source.problemAt([range?.[0] ?? 0, range?.[1] ?? 1], message, hint);
}

/** Variables by name; an empty one counts as unset. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** The value with its variables filled in, or what is wrong with it and at which index. */
type Substituted =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly reference: string; readonly message: string; readonly hint: string };

/**
 * Fills variables into one value, and notes each in `used`. It does not scan the result again, and
 * no message holds a variable's value.
 */
export function substitute(
  text: string,
  variables: Variables,
  used: (name: string, value: string) => void = () => {},
): Substituted {
  let failure: Substituted | undefined;
  const result = text.replace(reference, (whole: string, escaped?: string, body?: string, close?: string) => {
    if (escaped !== undefined) return escaped;
    const match = close === "}" ? referenceBody.exec(body ?? "") : null;
    const name = match?.[1];
    if (name === undefined) {
      const hint = `write \${NAME} or \${NAME:-default}; for a literal \${ write $\${`;
      failure ??= { ok: false, reference: whole, message: "this is not a variable", hint };
      return "";
    }
    const own = Object.hasOwn(variables, name) ? variables[name] : undefined;
    if (own) used(name, own);
    const value = own || match?.[2];
    if (value === undefined) {
      const message = `the environment variable ${name} is not set`;
      failure ??= { ok: false, reference: whole, message, hint: `set ${name}, or give a default: \${${name}:-value}` };
    }
    return value ?? "";
  });
  return failure ?? { ok: true, text: result };
}

/** The path from the root of a file to a value: keys and 0-based indexes. */
export type Path = readonly (string | number)[];

/** Which end of "key: value" a problem points at. */
export type Place = "key" | "value";

/** Finds ranges by path. */
interface NodePlaces {
  /** The range of the value or key at a path; of its nearest ancestor when it is missing. */
  rangeOf(path: Path, place: Place): Range;
}

interface Step {
  readonly node: unknown;
  readonly key: unknown;
}

/**
 * Prepares the lookup of places below a root node. Keys are indexed on first use, so repeated
 * lookups in a big map are cheap.
 */
function createNodePlaces(root: Node | null, targets: ReadonlyMap<Alias, Node>): NodePlaces {
  const indexes = new WeakMap<YAMLMap, Map<string, Pair>>();
  const indexOf = (map: YAMLMap) => {
    const known = indexes.get(map);
    if (known !== undefined) return known;
    const index = new Map<string, Pair>();
    for (const pair of map.items) {
      if (isScalar(pair.key) && typeof pair.key.value === "string") index.set(pair.key.value, pair);
    }
    indexes.set(map, index);
    return index;
  };
  const child = (parent: unknown, part: string | number): Step | undefined => {
    if (isSeq(parent) && typeof part === "number" && part < parent.items.length) {
      return { node: parent.items[part], key: undefined };
    }
    const pair = isMap(parent) ? indexOf(parent).get(String(part)) : undefined;
    return pair === undefined ? undefined : { node: pair.value, key: pair.key };
  };
  const resolve = (node: unknown) => (isAlias(node) ? targets.get(node) : node);
  return {
    rangeOf: (path, place) => {
      let step: Step = { node: root, key: undefined };
      for (const part of path) {
        const next = child(resolve(step.node), part);
        if (next === undefined) return rangeOfStep(step, "key");
        step = next;
      }
      return rangeOfStep(step, place);
    },
  };
}

/**
 * A key; or a value that is written on the line. A collection is pointed at by its key, or by the
 * first key in it.
 */
function rangeOfStep(step: Step, place: Place): Range {
  const keyRange = isScalar(step.key) ? step.key.range : undefined;
  const node = step.node;
  const isWritten =
    (isScalar(node) || isAlias(node)) &&
    node.range !== undefined &&
    node.range !== null &&
    node.range[1] > node.range[0];
  if (place === "value" && isWritten && node.range) return [node.range[0], node.range[1]];
  if (keyRange) return [keyRange[0], keyRange[1]];
  if (isMap(node)) {
    const first = node.items[0]?.key;
    if (isScalar(first) && first.range) return [first.range[0], first.range[1]];
  }
  const range = isScalar(node) || isAlias(node) || isMap(node) || isSeq(node) ? node.range : undefined;
  return [range?.[0] ?? 0, (range?.[0] ?? 0) + 1];
}
