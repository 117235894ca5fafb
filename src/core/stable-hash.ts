// Hashes that are the same on every replica: for task ids, fingerprints and spread.
import { hash } from "node:crypto";
import { isJsonObject } from "./json.ts";

/** The first `length` hex digits of the SHA-256 of a text (16 by default; 64 at most). */
export function hashText(text: string, length = 16): string {
  return hash("sha256", text, "hex").slice(0, length);
}

/** A cache of field names as JSON: the same few names come a million times. */
const namesInJson = new Map<string, string>();
const namesMax = 1_000;

/** Writes a JSON value with sorted keys: equal values give equal texts. Cuts below 64 levels. */
export function canonicalJson(value: unknown, depth = 0): string {
  if (depth > 64) return '"…"';
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item, depth + 1)).join(",")}]`;
  if (!isJsonObject(value)) return JSON.stringify(value) ?? "null";
  let text = "";
  for (const key of Object.keys(value).sort()) {
    text += `${text === "" ? "" : ","}${nameInJson(key)}:${canonicalJson(value[key], depth + 1)}`;
  }
  return `{${text}}`;
}

function nameInJson(name: string): string {
  const known = namesInJson.get(name);
  if (known !== undefined) return known;
  const text = JSON.stringify(name);
  if (namesInJson.size < namesMax) namesInJson.set(name, text);
  return text;
}
