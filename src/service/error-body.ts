// What may be quoted of an error answer: the code and message of an OData error or a problem document, short and scrubbed.
// Called by call.ts. Never fails on a body, never quotes HTML or plain text, never lets a secret or a control character through.
import { isJsonObject, type JsonObject } from "../core/json.ts";
import { withoutKnownSecrets, withoutSecretShapes } from "../core/secrets.ts";

const bodyLengthMax = 64 * 1024;
const excerptLengthMax = 200;
const secretLengthMin = 12;
const scrubLengthMax = 2_000;

/**
 * The service's own words for an error, at most 200 characters; undefined when the body has no known shape.
 * The shape is not described (service-interface §7), so OData errors, RFC 9457 problems and `{"message"}` are tried.
 */
export function errorExcerpt(body: string, token: string): string | undefined {
  if (body.length > bodyLengthMax) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (!isJsonObject(parsed)) return undefined;
  const parts = isJsonObject(parsed["error"]) ? odataParts(parsed["error"]) : problemParts(parsed);
  const text = parts.filter((part) => typeof part === "string" && part.trim() !== "").join(": ");
  return text === "" ? undefined : shorten(escapeControls(scrub(text.slice(0, scrubLengthMax), token)));
}

/** A header value that is safe to show: printable ASCII, at most 100 characters; undefined otherwise. */
export function safeHeader(value: string | undefined, token: string): string | undefined {
  if (value === undefined || !/^[\x20-\x7e]{1,100}$/.test(value)) return undefined;
  return scrub(value, token);
}

function odataParts(error: JsonObject): unknown[] {
  const message = isJsonObject(error["message"]) ? error["message"]["value"] : error["message"];
  return [error["code"], message];
}

function problemParts(problem: JsonObject): unknown[] {
  return [problem["title"] ?? problem["message"], problem["detail"]];
}

/** Takes out the live token, also parts of it, other bearer tokens and JWTs, and what URLs carry besides host and path. */
function scrub(text: string, token: string): string {
  const strict = withoutKnownSecrets(withoutToken(text, token)).replaceAll(
    /\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+/gi,
    "$1 […]",
  );
  return withoutSecretShapes(strict);
}

function withoutToken(text: string, token: string): string {
  if (token.length < secretLengthMin) return token === "" ? text : text.replaceAll(token, "[…]");
  let result = "";
  for (let at = 0; at < text.length; ) {
    let length = 0;
    while (at + length < text.length && token.includes(text.slice(at, at + length + 1))) length += 1;
    // A shorter run can be chance; from twelve characters on it is a piece of the token.
    const isPiece = length >= secretLengthMin;
    result += isPiece ? "[…]" : text.charAt(at);
    at += isPiece ? length : 1;
  }
  return result;
}

/** Writes control, format and line-separating characters as \u escapes, so that a message stays one honest line. */
export function escapeControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (char) => {
    const hex = (char.codePointAt(0) ?? 0).toString(16);
    return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex.padStart(4, "0")}`;
  });
}

function shorten(text: string): string {
  return text.length <= excerptLengthMax ? text : `${text.slice(0, excerptLengthMax - 1)}…`;
}
