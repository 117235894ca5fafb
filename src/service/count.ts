// Reads the answer of a $count request in every shape that servers use. Pure; called by answer.ts.
import { isJsonObject } from "../core/json.ts";
import { parseExactJson } from "./exact-json.ts";

/**
 * The number in a $count answer: bare digits (the standard's text/plain), a JSON number, digits in quotes, or an object with
 * `@odata.count`, `@count` or `value`; a byte order mark and white space around it do not matter.
 * Undefined for anything else: signs, fractions, exponents, numbers beyond 2^53-1, NaN, text, arrays, nothing.
 * Source: service-interface §4.2; the shape is not shown.
 */
export function parseCount(text: string): number | undefined {
  const plain = text.replace(/^\uFEFF/, "").trim();
  const bare = toCount(plain);
  if (bare !== undefined) return bare;
  // A JSON number that is not bare digits is one of those to refuse.
  if (!/^["{]/.test(plain)) return undefined;
  let parsed: unknown;
  try {
    parsed = parseExactJson(plain);
  } catch {
    return undefined;
  }
  if (!isJsonObject(parsed)) return toCount(parsed);
  const given = [parsed["@odata.count"], parsed["@count"], parsed["value"]].find((value) => value !== undefined);
  return toCount(given);
}

function toCount(value: unknown): number | undefined {
  if (typeof value === "number")
    return Number.isSafeInteger(value) && !Object.is(value, -0) && value >= 0 ? value : undefined;
  if (typeof value !== "string" || !/^\d{1,16}$/.test(value)) return undefined;
  const count = Number(value);
  return Number.isSafeInteger(count) ? count : undefined;
}
