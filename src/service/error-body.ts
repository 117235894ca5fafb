// Reads bodies that are no data: what may be quoted from an error answer, code and message, short
// and masked, and whether it is a web page. Never fails on a body, never quotes HTML or plain text.
import { isJsonObject, type JsonObject, parseJson } from "../core/json.ts";
import { cutText } from "../core/plain-text.ts";
import { notedLengthMin, withoutKnownSecrets, withoutSecretShapes } from "../core/secrets.ts";

const bodyLengthMax = 64 * 1024;
const excerptLengthMax = 200;
const secretLengthMin = 12;
const scrubLengthMax = 2_000;

/**
 * The service's own words for an error; undefined for a body of unknown shape. The interface shows
 * none (§7), so OData errors, RFC 9457 problems and `{"message"}` are tried.
 */
export function errorExcerpt(body: string, token: string): string | undefined {
  if (body.length > bodyLengthMax) return undefined;
  const parsed = parseJson(body);
  if (!isJsonObject(parsed)) return undefined;
  const parts = isJsonObject(parsed["error"]) ? odataParts(parsed["error"]) : problemParts(parsed);
  const text = parts.filter((part) => typeof part === "string" && part.trim() !== "").join(": ");
  return text === ""
    ? undefined
    : cutText(escapeControls(scrub(text.slice(0, scrubLengthMax), token)), excerptLengthMax);
}

/** Whether a web page came instead of data: a proxy answered, not the service. */
export function isPage(contentType: string | undefined, text: string): boolean {
  // Some frameworks call each text HTML, also an empty one.
  const isMarkup = /^\s*(text\/html|application\/xhtml\+xml)\b/i.test(contentType ?? "") && text.includes("<");
  return isMarkup || /^\s*<(!doctype|html)\b/i.test(text);
}

/** A header value that is safe to show: at most 100 printable ASCII characters. */
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

/**
 * Masks the live token and parts of it, other bearer tokens and JWTs, and everything in URLs but
 * host and path.
 */
function scrub(text: string, token: string): string {
  const strict = withoutKnownSecrets(withoutToken(text, token)).replaceAll(
    /\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+/gi,
    "$1 […]",
  );
  return withoutSecretShapes(strict);
}

function withoutToken(text: string, token: string): string {
  if (token === "") return text;
  // A short token may be an ordinary word: mask it only as a whole word.
  if (token.length < notedLengthMin) return text.replaceAll(wholeWord(token), "[…]");
  if (token.length < secretLengthMin) return text.replaceAll(token, "[…]");
  let result = "";
  for (let at = 0; at < text.length; ) {
    let length = 0;
    while (at + length < text.length && token.includes(text.slice(at, at + length + 1))) length += 1;
    // A shorter run can be chance; twelve characters are a piece of the token.
    const isPiece = length >= secretLengthMin;
    result += isPiece ? "[…]" : text.charAt(at);
    at += isPiece ? length : 1;
  }
  return result;
}

function wholeWord(word: string): RegExp {
  return new RegExp(`(?<![A-Za-z0-9])${word.replaceAll(/[^A-Za-z0-9]/g, "\\$&")}(?![A-Za-z0-9])`, "g");
}

/** Escapes control, format and line-separating characters, so that a message stays one line. */
export function escapeControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (char) => {
    const hex = (char.codePointAt(0) ?? 0).toString(16);
    return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex.padStart(4, "0")}`;
  });
}
