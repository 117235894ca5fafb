// Turns zod's issues into problems with our words and places. Never quotes a value, which may come
// from the environment: the source line shows what the file says. Called by load-policies.ts.
import type { z } from "zod";
import { isJsonObject } from "../core/json.ts";
import { nearestWord, zoneHint } from "../core/nearest-word.ts";
import { keysThatHold, knownKeysAt } from "./json-schema.ts";
import { type PolicyFileInput, policyFileSchema } from "./schema/policy-file.ts";
import { viewOf } from "./yaml/view.ts";
import type { Path, Place } from "./yaml/yaml-file.ts";
import { didYouMean } from "./yaml/yaml-hints.ts";

/** One issue of the schema. */
interface SchemaComplaint {
  readonly path: Path;
  readonly place: Place;
  readonly message: string;
  readonly hint: string | undefined;
}

/** The file's values when they are valid, else every issue. */
export type SchemaResult =
  | { readonly ok: true; readonly input: PolicyFileInput }
  | { readonly ok: false; readonly complaints: readonly SchemaComplaint[] };

/** Checks the values of one file against the schema. */
export function checkSchema(value: unknown): SchemaResult {
  const result = policyFileSchema.safeParse(value, { error: wordsFor });
  if (result.success) return { ok: true, input: result.data };
  return { ok: false, complaints: result.error.issues.flatMap((issue) => toComplaints(issue, value)) };
}

/** "schedule.every" for policies.3.schedule.every; the whole path elsewhere. */
export function labelOf(path: Path): string {
  return (path[0] === "policies" ? path.slice(2) : path).join(".");
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

/** Messages for issues without one in the schema. */
const wordsFor: z.core.$ZodErrorMap = (issue) => {
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return "is missing";
      if (issue.input === null) return "is empty: fill it in, or remove the key";
      return `must be ${kinds[issue.expected] ?? issue.expected}`;
    case "invalid_value":
      if (issue.input === undefined) return "is missing";
      return `must be ${issue.values
        .map(String)
        .join(", ")
        .replace(/, ([^,]*)$/, " or $1")}`;
    case "too_small":
      return issue.origin === "array" ? `needs at least ${issue.minimum}` : `must be at least ${issue.minimum}`;
    case "too_big":
      if (issue.origin === "string") return `is longer than ${issue.maximum} characters`;
      return issue.origin === "array" ? `has more than ${issue.maximum} items` : `must be at most ${issue.maximum}`;
    default:
      return undefined;
  }
};

const keysMax = 100;

function toComplaints(issue: z.core.$ZodIssue, value: unknown): SchemaComplaint[] {
  const path = issue.path.filter((part) => typeof part !== "symbol");
  const meant = issue.code === "invalid_union" ? meantOption(issue) : undefined;
  if (meant !== undefined) return meant.flatMap((one) => toComplaints({ ...one, path: [...path, ...one.path] }, value));
  if (issue.code === "unrecognized_keys") return issue.keys.slice(0, keysMax).map((key) => unknownKey(path, key));
  const label = labelOf(path);
  if (issue.code === "invalid_key") {
    const reason = issue.issues[0]?.message ?? "this key is not allowed";
    return [{ path, place: "key", message: `${label}: ${reason}`, hint: undefined }];
  }
  const message = label === "" ? issue.message : `${label}: ${issue.message}`;
  return [{ path, place: "value", message, hint: hintFor(issue, path, value) }];
}

/** For a choice without a message of its own: the issues of the option of the right kind. */
function meantOption(issue: Extract<z.core.$ZodIssue, { code: "invalid_union" }>): z.core.$ZodIssue[] | undefined {
  if (issue.message !== "Invalid input") return undefined;
  const isKind = (issues: readonly z.core.$ZodIssue[]) =>
    !issues.some(({ code, path }) => code === "invalid_type" && path.length === 0);
  const meant = issue.errors.filter(isKind);
  return meant.length === 1 ? meant[0] : undefined;
}

function unknownKey(path: Path, key: string): SchemaComplaint {
  const where = labelOf(path) === "" ? (path.length === 0 ? "a policy file" : "a policy") : labelOf(path);
  const known = knownKeysAt(path);
  const holders = keysThatHold(path, key);
  const hint =
    nearestWord(key, known) === undefined && holders.length > 0
      ? `it belongs under ${holders.join(" or ")}`
      : didYouMean(key, known);
  // A token may stand there instead of a key: `token: { SECRET }`.
  const isNearToken = ["token", "oauth2"].includes(String(path.at(-1)));
  const isSafe = !isNearToken || nearestWord(key, known) !== undefined || holders.length > 0;
  const message = isSafe ? `${where} has no key "${key}"` : `${where} has no such key`;
  return { path: [...path, key], place: "key", message, hint };
}

function hintFor(issue: z.core.$ZodIssue, path: Path, value: unknown): string | undefined {
  const view = viewOf(path.reduce(valueBelow, value));
  const text = view.text();
  if (issue.code === "invalid_value" && text !== undefined) return nearestOption(text, issue.values);
  if (issue.message.includes("a duration is") && view.number() !== undefined) return "add the unit: 10s, 10m or 10h";
  if (issue.code === "invalid_type" && issue.expected === "string" && /number|boolean/.test(typeof view.value))
    return "put it in quotes";
  if (issue.code === "invalid_type" && issue.expected === "array" && view.isPresent) return "a list is written [a, b]";
  if (issue.message.includes("IANA") && text !== undefined) return zoneHint(text);
  return undefined;
}

function valueBelow(value: unknown, part: string | number): unknown {
  if (Array.isArray(value)) return value[Number(part)];
  return isJsonObject(value) && Object.hasOwn(value, part) ? value[part] : undefined;
}

function nearestOption(text: string, options: readonly unknown[]): string | undefined {
  const near = nearestWord(text, options.map(String));
  return near === undefined ? undefined : `did you mean ${near}?`;
}
