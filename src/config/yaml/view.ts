// Reads unchecked values safely: a value of the wrong kind counts as absent. So the rules work
// while the schema reports its own issues. Used by the rules.
import { durationPattern, parseDuration } from "../../core/duration.ts";
import { isJsonObject } from "../../core/json.ts";
import type { Path } from "./yaml-file.ts";

/** A value at a path, and the values below it. */
export interface YamlView {
  readonly path: Path;
  readonly value: unknown;
  /** False when there is no such key. A key without a value is present. */
  readonly isPresent: boolean;
  /** True for an object, even an empty one. */
  readonly isObject: boolean;
  at(key: string): YamlView;
  text(): string | undefined;
  number(): number | undefined;
  /** The milliseconds of a duration text. */
  durationMs(): number | undefined;
  /** The items of a list; none for other values. */
  items(): readonly YamlView[];
  /** The values of an object by key; none for other values. */
  entries(): readonly (readonly [key: string, value: YamlView])[];
}

/** Makes a view of a value. */
export function viewOf(value: unknown, path: Path = []): YamlView {
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
