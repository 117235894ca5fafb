// Masks what may be a secret in a line that a problem shows. It shows keys, and the values of keys
// that the schema knows and that hold no secret; every other text becomes asterisks.
import { withoutSecretShapes } from "../../core/secrets.ts";
import { schemaWords } from "../json-schema.ts";

/** A longer line is not shown: it helps no reader, and masking it takes time. */
export const lineCharactersMax = 2_000;

const keyPattern = /(?<=^\s*(?:-\s+)?|[{,]\s*)["']?([\w$.-]+)["']?\s*:(?=\s|$)/g;

/** Values that may be a secret; shown only in the one form that is none. */
const harmlessForms = new Map<string, RegExp>(
  Object.entries({
    auth: /^["']?(?:basic|post)["']?$/,
    baseUrl: /^["']?(?:https?:\/\/|\$)[\w.:[\]/~${}-]*["']?$/,
    env: /^["']?[A-Z_][A-Z0-9_]{0,63}["']?$/,
    tokenUrl: /^["']?(?:https?:\/\/|\$)[\w.:[\]/~${}-]*["']?$/,
    url: /^$/,
  }),
);

/** A word with a digit, as long as a secret. */
const strangeWord = /(?=[^\s"',;=()\d]*\d)[^\s"',;=()]{8,}/g;

/**
 * Replaces each character that may belong to a secret by an asterisk, so that columns stay.
 * `head`: the line above with less indentation.
 */
export function maskLine(line: string, head = ""): string {
  if (line.length > lineCharactersMax) return "";
  const above = /^[\s-]*["']?([\w$.-]+)["']?\s*:\s*(?:#.*)?$/.exec(head)?.[1] ?? "";
  const keys = [...line.matchAll(keyPattern)];
  const first = line.slice(0, keys[0]?.index);
  let shown = schemaWords().lists.has(above) ? maskComment(first) : maskValue(first);
  let parent = above;
  for (const [index, match] of keys.entries()) {
    const [whole, key = ""] = match;
    const value = line.slice(match.index + whole.length, keys[index + 1]?.index);
    // A token may stand there instead of a key: `token: { SECRET: x }`.
    const isStrange = /^(?:token|oauth2)$/.test(parent) && !schemaWords().all.has(key);
    shown += (isStrange ? stars(whole) : whole) + (isHarmless(key, value) ? maskComment(value) : maskValue(value));
    if (value.trim() === "{" || value.trim() === "") parent = key;
  }
  return shown;
}

function isHarmless(key: string, value: string): boolean {
  if (withoutSecretShapes(value) !== value) return false;
  const text = value.replace(/(?:^|\s)#.*$/s, "").replace(/[\s},]*$/, "");
  const form = harmlessForms.get(key);
  return form === undefined ? schemaWords().shown.has(key) : form.test(text.trim());
}

/** Masks a value, but not the brackets around it. */
function maskValue(value: string): string {
  return value.replace(/^([\s{[-]*)(.*?)([\s}\],]*)$/s, (_, before: string, text: string, after: string) =>
    [before, stars(text), after].join(""),
  );
}

/** The words of a comment may be anything. */
function maskComment(value: string): string {
  return value.replace(/(?:^|\s)#.*$/s, (comment) => comment.replace(strangeWord, stars));
}

function stars(text: string): string {
  return "*".repeat(text.length);
}
