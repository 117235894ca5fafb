// Hashes that are the same on every replica, machine and version: task ids, fingerprints and spread rest on them.
import { createHash } from "node:crypto";
import { isJsonObject } from "./json.ts";

/** The first `length` hex digits of the SHA-256 of a text (16 by default; 64 at most). */
export function hashText(text: string, length = 16): string {
  return createHash("sha256").update(text).digest("hex").slice(0, length);
}

/** Writes a JSON value with sorted keys, so that equal values give equal texts. Nesting beyond 64 levels is cut. */
export function canonicalJson(value: unknown, depth = 0): string {
  if (depth > 64) return '"…"';
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item, depth + 1)).join(",")}]`;
  if (!isJsonObject(value)) return JSON.stringify(value) ?? "null";
  const fields = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key], depth + 1)}`);
  return `{${fields.join(",")}}`;
}
