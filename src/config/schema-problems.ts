// Checks the values of a file against the schema, and turns zod's issues into our words and places.
// Never quotes a value, which may come from the environment: the source line shows what stands
// there.
import type { z } from "zod";
import { isJsonObject } from "../core/json.ts";
import { didYouMean, nearestWord, zoneHint } from "../core/nearest-word.ts";
import { keysThatHold, knownKeysAt } from "./json-schema.ts";
import type { Path, Problem, ReportOptions, ReportProblem } from "./problem.ts";
import {
  type PolicyFileDraft,
  type PolicyFileInput,
  policyDraftSchema,
  policyFileSchema,
} from "./schema/policy-file.ts";
import type { YamlFile } from "./yaml/yaml-file.ts";

/** One issue of the schema. */
interface SchemaComplaint extends ReportOptions {
  readonly path: Path;
  readonly message: string;
}

/** The values that fit, and what is wrong with the others. */
export interface SchemaResult {
  /** The whole file; undefined when something is wrong with it. */
  readonly input: PolicyFileInput | undefined;
  /** The file without what is wrong, for the rules. */
  readonly draft: PolicyFileDraft;
  readonly complaints: readonly SchemaComplaint[];
}

/** A file that was checked against the schema. */
export interface CheckedFile {
  readonly yaml: YamlFile;
  readonly draft: PolicyFileDraft;
  /** The whole file; undefined when the schema refuses something. */
  readonly input: PolicyFileInput | undefined;
  readonly report: ReportProblem;
}

/** Checks a file against the schema; its report adds to `problems`. */
export function checkFile(yaml: YamlFile, problems: Problem[]): CheckedFile {
  const { input, draft, complaints } = checkSchema(yaml.value);
  const add: ReportProblem = (path, message, options) => {
    const problem = yaml.problemAt(path, message, options);
    if (problem !== undefined) problems.push(problem);
  };
  for (const { path, message, ...options } of complaints) add(path, message, options);
  const isDoubted = doubtedBy(complaints.map(({ path }) => path));
  const report: ReportProblem = (path, message, options) => {
    if (!isDoubted(path)) add(path, message, options);
  };
  return { yaml, input, draft, report };
}

/** Whether a path has a problem below or above it: a second problem there would only confuse. */
function doubtedBy(wrong: readonly Path[]): (path: Path) => boolean {
  const keyOf = (path: Path) => JSON.stringify(path);
  const own = new Set(wrong.map(keyOf));
  const above = new Set(wrong.flatMap((path) => prefixesOf(path).map(keyOf)));
  return (path) =>
    own.size > 0 && (above.has(keyOf(path)) || prefixesOf(path).some((prefix) => own.has(keyOf(prefix))));
}

function prefixesOf(path: Path): readonly Path[] {
  return [...path, ""].map((_, length) => path.slice(0, length));
}

/** Checks the values of one file. */
export function checkSchema(value: unknown): SchemaResult {
  const result = policyFileSchema.safeParse(value, { error: wordsFor });
  if (result.success) return { input: result.data, draft: result.data, complaints: [] };
  const complaints = result.error.issues.flatMap((issue) => toComplaints(issue, value));
  return { input: undefined, draft: toDraft(value), complaints };
}

/** "schedule.every" for policies.3.schedule.every; the whole path elsewhere. */
export function labelOf(path: Path): string {
  return (path[0] === "policies" ? path.slice(2) : path).join(".");
}

/** Takes out what is wrong until the rest is right. A missing value takes its object with it. */
function toDraft(value: unknown): PolicyFileDraft {
  const rest = structuredClone(value);
  while (isJsonObject(rest)) {
    const result = policyDraftSchema.safeParse(rest);
    if (result.success) return result.data;
    for (const issue of result.error.issues) {
      const path = issue.path.filter((part) => typeof part !== "symbol");
      if (issue.code === "unrecognized_keys") for (const key of issue.keys) remove(rest, [...path, key]);
      else if (path.length === 0) return {};
      else remove(rest, path);
    }
  }
  return {};
}

function remove(root: unknown, path: Path): void {
  // Of a list with a wrong item nothing is left, but the list of policies keeps its places.
  const list = path.findIndex((part, index) => index > 1 && typeof part === "number");
  const target = list === -1 ? path : path.slice(0, list);
  const parent = target.slice(0, -1).reduce<unknown>(valueBelow, root);
  const key = target.at(-1) ?? "";
  if (typeof parent !== "object" || parent === null || target.length === 0) return;
  if (!Object.hasOwn(parent, key)) remove(root, target.slice(0, -1));
  else if (target.length === 2 && !isJsonObject(Reflect.get(parent, key))) Reflect.set(parent, key, {});
  else Reflect.deleteProperty(parent, key);
}

const kinds: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a block of keys",
  record: "a block of keys",
};

const emptyValue = "is empty: fill it in, or remove the key";

/** Messages for issues without one in the schema. */
export const wordsFor: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "is missing";
      if (issue.input === null) return emptyValue;
      return `must be ${kinds[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      if (issue.input === undefined) return "is missing";
      return `must be ${orList(issue.values.map(String))}`;
    case "invalid_union":
      return issue.input === null ? emptyValue : undefined;
    case "too_small":
      return issue.origin === "array" ? `needs at least ${issue.minimum}` : `must be at least ${issue.minimum}`;
    case "too_big":
      if (issue.origin === "string") return `is longer than ${issue.maximum} characters`;
      return issue.origin === "array" ? `has more than ${issue.maximum} items` : `must be at most ${issue.maximum}`;
    default:
      return undefined;
  }
};

/** Joins words as `a, b or c`. */
export function orList(words: readonly string[]): string {
  return words.join(", ").replace(/, ([^,]*)$/, " or $1");
}

const keysMax = 100;

function toComplaints(issue: z.core.$ZodIssue, value: unknown): SchemaComplaint[] {
  const path = issue.path.filter((part) => typeof part !== "symbol");
  const meant = issue.code === "invalid_union" ? meantOption(issue) : undefined;
  if (meant !== undefined) return meant.flatMap((one) => toComplaints({ ...one, path: [...path, ...one.path] }, value));
  if (issue.code === "unrecognized_keys") {
    const parent = path.reduce<unknown>(valueBelow, value);
    return issue.keys.slice(0, keysMax).map((key) => unknownKey(path, key, valueBelow(parent, key)));
  }
  const label = labelOf(path);
  if (issue.code === "invalid_key") {
    const reason = issue.issues[0]?.message ?? "this key is not allowed";
    return [{ path, place: "key", message: `${label}: ${reason}` }];
  }
  const message = label === "" ? issue.message : `${label}: ${issue.message}`;
  return [{ path, message, hint: hintFor(issue, path.reduce<unknown>(valueBelow, value)) }];
}

/** For a choice without a message of its own: the issues of the option of the right kind. */
function meantOption(issue: Extract<z.core.$ZodIssue, { code: "invalid_union" }>): z.core.$ZodIssue[] | undefined {
  if (issue.message !== "Invalid input") return undefined;
  const isKind = (issues: readonly z.core.$ZodIssue[]) =>
    !issues.some(({ code, path }) => code === "invalid_type" && path.length === 0);
  const meant = issue.errors.filter(isKind);
  return meant.length === 1 ? meant[0] : undefined;
}

function unknownKey(path: Path, key: string, value: unknown): SchemaComplaint {
  const where = labelOf(path) || (path.length === 0 ? "a policy file" : "a policy");
  const known = knownKeysAt(path);
  const holders = keysThatHold(path, key);
  const isSlip = nearestWord(key, known) !== undefined;
  const hint = !isSlip && holders.length > 0 ? `it belongs under ${holders.join(" or ")}` : didYouMean(key, known);
  // A token may stand there instead of a key: `token: { SECRET }`.
  const mayBeToken = /^(?:token|oauth2)$/.test(String(path.at(-1))) && !isSlip && holders.length === 0;
  return {
    path: [...path, key],
    place: "key",
    message: `${where} has no ${mayBeToken ? "such key" : `key "${key}"`}`,
    hint: value === null ? (slipIn(key, isSlip) ?? hint) : hint,
  };
}

const unspacedColon = /^[A-Za-z]+:[^\s/]/;
const spaceHint = "put a space after the colon";

/** What `{ every:10m }` and `{ owner: HR, ext. 4711 }` lack: YAML sees keys without a value. */
function slipIn(key: string, isNearKey: boolean): string | undefined {
  if (unspacedColon.test(key)) return spaceHint;
  return /\S \S/.test(key) && !isNearKey ? "put a value that holds a comma in quotes" : undefined;
}

function hintFor(issue: z.core.$ZodIssue, value: unknown): string | undefined {
  const text = typeof value === "string" ? value : "";
  if (issue.code === "invalid_value" && text !== "") {
    const near = nearestWord(text, issue.values.map(String));
    return near === undefined ? undefined : `did you mean ${near}?`;
  }
  if (issue.message.includes("a duration is") && typeof value === "number") return "add the unit: 10s, 10m or 10h";
  if (issue.code === "invalid_type" && issue.expected === "string" && /number|boolean/.test(typeof value))
    return "put it in quotes";
  if (issue.code === "invalid_type" && issue.expected === "object" && unspacedColon.test(text))
    return `${spaceHint}, and such keys on lines of their own or in { }`;
  if (issue.code === "invalid_type" && issue.expected === "number" && /^\d+(?:\.\d+)?$/.test(text))
    return "write the number without quotes; a variable gives a text, never a number";
  if (issue.code === "invalid_type" && issue.expected === "array" && value !== undefined)
    return "a list is written [a, b]";
  return issue.message.includes("IANA") && text !== "" ? zoneHint(text) : undefined;
}

function valueBelow(value: unknown, part: string | number): unknown {
  if (Array.isArray(value)) return value[Number(part)];
  return isJsonObject(value) && Object.hasOwn(value, part) ? value[part] : undefined;
}
