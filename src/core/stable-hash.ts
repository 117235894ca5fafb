// Hashes that are the same on every replica: for task ids, fingerprints and spread.
import { hash } from "node:crypto";
import { isJsonObject } from "./json.ts";

/** The first `length` hex digits of the SHA-256 of a text (16 by default; 64 at most). */
export function hashText(text: string, length = 16): string {
  return hash("sha256", text, "hex").slice(0, length);
}

/** Writes a JSON value with sorted keys: equal values give equal texts. Cuts below 64 levels. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(sorted(value, 0)) ?? "null";
}

function sorted(value: unknown, depth: number): unknown {
  if (depth > 64) return "…";
  if (Array.isArray(value)) return value.map((item) => sorted(item, depth + 1));
  if (!isJsonObject(value)) return value;
  const copy: Record<string, unknown> = {};
  for (const key of sortedNames(value)) {
    const part = sorted(value[key], depth + 1);
    // Assigned, this key would be the prototype, and not be written.
    if (key === "__proto__") Object.defineProperty(copy, key, { value: part, enumerable: true });
    else copy[key] = part;
  }
  return copy;
}

/** Of the object before: the items of a list have the same names a million times. */
let last: { readonly names: readonly string[]; readonly sorted: readonly string[] } = { names: [], sorted: [] };

function sortedNames(value: object): readonly string[] {
  const names = Object.keys(value);
  if (names.length !== last.names.length || names.some((name, index) => name !== last.names[index]))
    last = { names, sorted: names.toSorted() };
  return last.sorted;
}
