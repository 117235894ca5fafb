// A careful look at values that nobody has checked: what is not of the wanted kind is simply not there.
// Used by rules.ts, so that they can speak while the schema has complaints of its own.
import { durationPattern, parseDuration } from "../core/duration.ts";
import { isJsonObject } from "../core/json.ts";
import type { Path } from "./node-places.ts";

/** A value at a path, and the values below it. */
export interface View {
  readonly path: Path;
  readonly value: unknown;
  /** False when there is no such key. A key without a value is there. */
  readonly isPresent: boolean;
  /** True for an object, also an empty one. */
  readonly isObject: boolean;
  at(key: string): View;
  text(): string | undefined;
  number(): number | undefined;
  /** The milliseconds of a duration text. */
  durationMs(): number | undefined;
  /** The items of a list; none when it is no list. */
  items(): readonly View[];
  /** The values of an object by key; none when it is no object. */
  entries(): readonly (readonly [key: string, value: View])[];
}

/** Looks at a value. */
export function viewOf(value: unknown, path: Path = []): View {
  return {
    path,
    value,
    isPresent: value !== undefined,
    isObject: isJsonObject(value),
    at: (key) => viewOf(isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined, [...path, key]),
    text: () => (typeof value === "string" ? value : undefined),
    number: () => (typeof value === "number" ? value : undefined),
    durationMs: () => (typeof value === "string" && durationPattern.test(value) ? parseDuration(value) : undefined),
    items: () => (Array.isArray(value) ? value.map((item: unknown, index) => viewOf(item, [...path, index])) : []),
    entries: () =>
      isJsonObject(value)
        ? Object.entries(value).map(([key, item]) => [key, viewOf(item, [...path, key])] as const)
        : [],
  };
}
