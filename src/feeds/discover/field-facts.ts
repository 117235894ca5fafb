// Describes the fields of a sample: types, empty values, few values, times, order. propose.ts
// decides what they mean. Accepts any JSON and never throws on it. Pure.
import { isJsonObject } from "../../core/json.ts";

/** A JSON type in people's words. */
type FieldType = "text" | "number" | "flag" | "object" | "list" | "empty";

/** How an instant is written; `iso-local`: without a zone. */
type TimeForm = "iso" | "iso-local" | "seconds" | "milliseconds";

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
  /** Its distinct values with their counts, when they are few; without null. */
  readonly few: ReadonlyMap<string | number | boolean, number> | undefined;
  readonly distinct: number;
  /** A text or whole number in every item, and never repeated. */
  readonly isUnique: boolean;
  readonly time: TimeForm | undefined;
  /** The order of its values along the list, with few exceptions. */
  readonly order: "ascending" | "descending" | "none";
}

const fieldsMax = 200;
const depthMax = 3;
const fewMax = 12;
const orderedShareMin = 0.95;
/** From 1973 to 5138 in seconds or in milliseconds, as in mapping.ts. */
const [secondsMin, millisecondsMin, millisecondsMax] = [1e8, 1e11, 1e14];

/**
 * Describes the fields of these items, at most 200, three levels deep. Leaves out annotations
 * (`@odata.…`).
 */
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

/** The instant in a value, in milliseconds, if it has one of the known forms. */
export function instantOf(value: unknown): number | undefined {
  const form = timeForm(value);
  if (form === undefined) return undefined;
  if (form === "seconds") return Number(value) * 1_000;
  if (form === "milliseconds") return Number(value);
  return Date.parse(form === "iso-local" ? `${value}Z` : String(value));
}

function visit(item: unknown, path: string[], take: (path: string[], value: unknown) => void): void {
  if (!isJsonObject(item)) return;
  for (const [name, value] of Object.entries(item)) {
    if (name.startsWith("@") || name.includes("@odata.") || name.length > 200) continue;
    const here = [...path, name];
    if (isJsonObject(value) && here.length < depthMax) visit(value, here, take);
    else take(here, value);
  }
}

function describe(path: string[], values: readonly unknown[]): FieldFacts {
  const given = values.filter((value) => value !== null && value !== undefined);
  const different = new Map<string | number | boolean, number>();
  for (const value of given) {
    const scalar = isScalar(value) ? value : "…";
    different.set(scalar, (different.get(scalar) ?? 0) + 1);
  }
  const isKeyLike = given.every((value) => Number.isSafeInteger(value) || (typeof value === "string" && value !== ""));
  const times = new Set(given.map(timeForm));
  const [time] = times;
  const areScalar = given.every(isScalar);
  return {
    path,
    values,
    types: [...new Set(values.filter((value) => value !== undefined).map(typeOf))].sort(),
    emptyShare: values.length === 0 ? 1 : 1 - given.length / values.length,
    isAlwaysThere: values.every((value) => value !== undefined),
    few:
      areScalar && different.size > 0 && different.size <= fewMax && !isMostlyOnce(different, given.length)
        ? different
        : undefined,
    distinct: different.size,
    isUnique: isKeyLike && given.length === values.length && given.length > 0 && different.size === given.length,
    time: times.size === 1 ? time : undefined,
    order: orderOf(given),
  };
}

/** Almost as many values as items: no enumeration. */
function isMostlyOnce(different: ReadonlyMap<unknown, number>, given: number): boolean {
  return different.size > 1 && different.size * 2 > given;
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean";
}

function typeOf(value: unknown): FieldType {
  if (value === null || value === undefined) return "empty";
  if (typeof value === "string") return "text";
  if (typeof value === "number" || typeof value === "bigint") return "number";
  if (typeof value === "boolean") return "flag";
  return Array.isArray(value) ? "list" : "object";
}

function timeForm(value: unknown): TimeForm | undefined {
  if (typeof value === "string") {
    const match = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(Z|[+-]\d\d:?\d\d)?$/i.exec(value);
    if (match === null || Number.isNaN(Date.parse(value))) return undefined;
    return match[1] === undefined ? "iso-local" : "iso";
  }
  if (typeof value !== "number" || value < secondsMin || value >= millisecondsMax) return undefined;
  return value < millisecondsMin ? "seconds" : "milliseconds";
}

function orderOf(given: readonly unknown[]): FieldFacts["order"] {
  const numbers = given.map((value) => (typeof value === "number" ? value : (instantOf(value) ?? Number.NaN)));
  let [up, down] = [0, 0];
  for (let index = 1; index < numbers.length; index += 1) {
    const step = (numbers[index] ?? Number.NaN) - (numbers[index - 1] ?? Number.NaN);
    if (Number.isNaN(step)) return "none";
    if (step > 0) up += 1;
    if (step < 0) down += 1;
  }
  if (up + down === 0) return "none";
  if (up / (up + down) >= orderedShareMin) return "ascending";
  return down / (up + down) >= orderedShareMin ? "descending" : "none";
}
