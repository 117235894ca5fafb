// Describes the fields of a sample: types, empty values, few values, times, order. Accepts any JSON
// and never throws on it. Also the form of a proposal. Pure; propose.ts decides what fields mean.
import type { ItemMapping } from "../../config/policy-set.ts";
import { checkExpression } from "../../core/expression.ts";
import { isJsonObject } from "../../core/json.ts";
import type { ListName } from "../../model/feed.ts";
import { createItemMapper, toInstantMs } from "../mapping.ts";

/** A JSON type in people's words. */
type FieldType = "text" | "number" | "flag" | "object" | "list" | "empty";

/** A value that a state may have. */
export type Scalar = string | number | boolean;

/** One field over all items of a sample. */
export interface FieldFacts {
  /** The names that lead to it from the item. */
  readonly path: readonly string[];
  /** Its value in each item, in the order of the list; undefined where it is missing. */
  readonly values: readonly unknown[];
  readonly types: readonly FieldType[];
  /** Share of items without a value (missing or null), 0 to 1. */
  readonly emptyShare: number;
  /** True when every item has it, even as null. */
  readonly isAlwaysThere: boolean;
  /** Its distinct values, when they are few; without null. */
  readonly few: readonly Scalar[] | undefined;
  readonly distinct: number;
  /** A text or whole number in every item, and never repeated. */
  readonly isUnique: boolean;
  /** `local`: without a zone. */
  readonly time: "instant" | "local" | undefined;
  /** The order of its values along the list, with few exceptions. */
  readonly order: "ascending" | "descending" | "none";
}

const fieldsMax = 200;
const nameLengthMax = 200;
const depthMax = 3;
const fewMax = 12;
const orderedShareMin = 0.95;

/** Describes the fields of these items, at most 200, three levels deep, without annotations. */
export function describeFields(items: readonly unknown[]): FieldFacts[] {
  const columns = new Map<string, { path: string[]; values: unknown[] }>();
  items.forEach((item, index) => {
    visit(item, [], (path, value) => {
      const key = JSON.stringify(path);
      let column = columns.get(key);
      if (column === undefined) {
        if (columns.size >= fieldsMax) return;
        column = { path, values: new Array<unknown>(items.length).fill(undefined) };
        columns.set(key, column);
      }
      column.values[index] = value;
    });
  });
  return [...columns.values()].map(({ path, values }) => describe(path, values));
}

/** The path of a field as people write it. */
export function nameOf(field: FieldFacts): string {
  return field.path.join(".");
}

/** The words of a value or a field's name: `ArchiveJob_isDone` → archive, job, is, done. */
export function wordsOf(text: string): string[] {
  return text
    .slice(0, 200)
    .replaceAll(/(\p{Ll}|\d)(?=\p{Lu})/gu, "$1 ")
    .toLowerCase()
    .split(/[^\p{L}]+/u)
    .filter((word) => word !== "");
}

/** Whether a name has one of these words. */
export function hasWord(name: string, words: readonly string[]): boolean {
  return wordsOf(name).some((word) => words.includes(word));
}

/** The values that are there: neither missing nor null. */
export function givenIn({ values }: Pick<FieldFacts, "values">): readonly unknown[] {
  return values.filter((value) => value !== null && value !== undefined);
}

/** The instant in a value, in milliseconds; a local time counts as UTC. */
export function instantOf(value: unknown): number | undefined {
  return toInstantMs(isLocalTime(value) ? `${value}Z` : value);
}

const reserved = new Set(
  "as break const continue else false for function if import in let loop namespace null package return true var void while".split(
    " ",
  ),
);

/** The CEL of a field: plain where every item has it, else null where it is missing. */
export function access(field: FieldFacts, { mayBeMissing = !field.isAlwaysThere } = {}): string {
  const optional = mayBeMissing ? "?" : "";
  const steps = field.path.map((name) => {
    const isPlain = /^[A-Za-z_]\w*$/.test(name) && !reserved.has(name);
    return isPlain ? `.${optional}${name}` : `[${optional}${JSON.stringify(name)}]`;
  });
  return `item${steps.join("")}${mayBeMissing ? ".orValue(null)" : ""}`;
}

function visit(item: unknown, path: string[], take: (path: string[], value: unknown) => void): void {
  if (!isJsonObject(item)) return;
  for (const [name, value] of Object.entries(item)) {
    if (name.startsWith("@") || name.includes("@odata.") || name.length > nameLengthMax) continue;
    const here = [...path, name];
    if (isJsonObject(value) && here.length < depthMax) visit(value, here, take);
    else take(here, value);
  }
}

function describe(path: string[], values: readonly unknown[]): FieldFacts {
  const given = givenIn({ values });
  const scalars = given.filter(isScalar);
  const different = new Set(given.map((value) => (isScalar(value) ? value : "…")));
  // Almost as many values as items: no enumeration.
  const isMostlyOnce = different.size > 1 && different.size * 2 > given.length;
  const isFew = scalars.length === given.length && different.size > 0 && different.size <= fewMax && !isMostlyOnce;
  const isKeyLike = given.every((value) => Number.isSafeInteger(value) || (typeof value === "string" && value !== ""));
  const times = new Set(given.map(timeOf));
  return {
    path,
    values,
    types: [...new Set(values.filter((value) => value !== undefined).map(typeOf))].sort(),
    emptyShare: values.length === 0 ? 1 : 1 - given.length / values.length,
    isAlwaysThere: values.every((value) => value !== undefined),
    few: isFew ? [...different] : undefined,
    distinct: different.size,
    isUnique: isKeyLike && given.length === values.length && given.length > 0 && different.size === given.length,
    time: times.size === 1 ? [...times][0] : undefined,
    order: orderOf(given),
  };
}

function isScalar(value: unknown): value is Scalar {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function typeOf(value: unknown): FieldType {
  if (value === null) return "empty";
  if (typeof value === "string") return "text";
  if (typeof value === "number" || typeof value === "bigint") return "number";
  if (typeof value === "boolean") return "flag";
  return Array.isArray(value) ? "list" : "object";
}

function timeOf(value: unknown): FieldFacts["time"] {
  if (isLocalTime(value)) return "local";
  return toInstantMs(value) === undefined ? undefined : "instant";
}

function isLocalTime(value: unknown): boolean {
  return typeof value === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?$/.test(value);
}

function orderOf(given: readonly unknown[]): FieldFacts["order"] {
  const numbers = given.map((value) => (typeof value === "number" ? value : (instantOf(value) ?? Number.NaN)));
  const steps = numbers.slice(1).map((number, index) => number - (numbers[index] ?? Number.NaN));
  if (steps.some(Number.isNaN)) return "none";
  const up = steps.filter((step) => step > 0).length;
  const moved = steps.filter((step) => step !== 0).length;
  if (moved === 0) return "none";
  if (up / moved >= orderedShareMin) return "ascending";
  return 1 - up / moved >= orderedShareMin ? "descending" : "none";
}

/** One line of a mapping. `expression`: CEL; undefined when nothing can be proposed. */
export interface Line {
  readonly fact: keyof ItemMapping;
  readonly expression: string | undefined;
  readonly certainty: "high" | "medium" | "low" | "none";
  /** One sentence. */
  readonly why: string;
  /** CEL that may be meant instead; a person must decide. */
  readonly instead?: string;
}

/** In fewer items, any field may be unique or in order by chance. */
const itemsForSure = 20;
const failuresShareMax = 0.05;
const readShareMin = 0.5;

/** A line that proposes nothing. */
export function nothing(fact: Line["fact"], why: string, instead?: string): Line {
  return { fact, expression: undefined, certainty: "none", why, ...(instead === undefined ? {} : { instead }) };
}

/** Tries a line on the sample: drops it when it fails, doubts it when the items are few. */
export function tryLine(line: Line, list: ListName, items: readonly unknown[]): Line {
  const { fact, expression, why } = line;
  if (expression === undefined) return line;
  const problem = checkExpression(expression, "item");
  if (problem !== undefined) return nothing(fact, `${expression} does not compile: ${problem}`);
  const mapper = createItemMapper(list, { [fact]: expression });
  const values = items.map((item) => mapper.read(item)[fact === "startedAt" ? "startedAtMs" : fact]);
  const read = values.filter((value) => value !== undefined).length;
  const { count: failures, last } = mapper.failures();
  if (failures > items.length * failuresShareMax || read < items.length * readShareMin) {
    const because = last === "" ? "" : ` (${last})`;
    return nothing(fact, `${expression} can be read in ${read} of ${items.length} items only${because}`);
  }
  const doubts = [
    ...(failures === 0 ? [] : [`it failed on ${failures} items`]),
    ...(items.length >= itemsForSure ? [] : [`from ${items.length} item${items.length === 1 ? "" : "s"} only`]),
  ];
  return doubts.length === 0 ? line : { ...line, certainty: "low", why: [why, ...doubts].join("; ") };
}
