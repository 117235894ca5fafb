// Lua scripts: each file of lua/ is one atomic step. Its header says what it does, KEYS, ARGV and
// the answer; `--- @include "NAME"` puts lua/include/NAME.lua there, once. Also here: how lists are
// cut for commands and answers.
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Cluster, Redis } from "ioredis";

/** A value for ARGV. */
export type ScriptArgument = string | number | Buffer;

/** Runs a script: its keys, then its arguments, in the order of its file. */
export type Script<Answer> = (
  store: { readonly redis: Redis | Cluster },
  keys: readonly string[],
  args?: readonly ScriptArgument[],
) => Promise<Answer>;

/** Reads a script's answer. */
type Reader<Answer> = (answer: unknown) => Answer;

/** Loads `lua/NAME.lua`; `read` turns its answer into a value. */
export function createScript<Answer>(name: string, read: Reader<Answer>): Script<Answer> {
  const lua = loadLua(name);
  const sha = hash("sha1", lua);
  return async ({ redis }, keys, args = []) => {
    try {
      return read(await redis.evalsha(sha, keys.length, ...keys, ...args));
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      return read(await redis.eval(lua, keys.length, ...keys, ...args));
    }
  };
}

/** Returns the text of a script with its includes. */
export function loadLua(name: string, included: Set<string> = new Set()): string {
  const text = readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), "utf8");
  return text.replace(/^--- @include "([a-z-]+)"\n/gm, (_, part: string) => {
    if (included.has(part)) return "";
    included.add(part);
    return loadLua(`include/${part}`, included);
  });
}

const readFieldsScript = createScript("read-fields", (answer) =>
  asList(answer).map((values) => asList(values).map(asOptional(asText))),
);

/** Reads the same fields of many hashes; undefined where one has none. */
export async function readFields(
  store: Parameters<typeof readFieldsScript>[0],
  hashes: readonly string[],
  fields: readonly string[],
): Promise<readonly (readonly (string | undefined)[])[]> {
  const found: (readonly (string | undefined)[])[] = [];
  for (const batch of batchesOf(hashes, 100)) found.push(...(await readFieldsScript(store, batch, fields)));
  return found;
}

/** Reads a few hashes whole: a flat list of fields and values each. */
export const readHashes = createScript("read-hashes", (answer) => asList(answer).map(asTexts));

/** An answer that says nothing. */
export function asNothing(): undefined {
  return undefined;
}

/** 1 or 0. */
export function asFlag(answer: unknown): boolean {
  return asWord(1, 0)(answer) === 1;
}

/** One of these words. An unknown one is a mistake in the script. */
export function asWord<const Word>(...words: readonly Word[]): Reader<Word> {
  return (answer) => {
    const word = words.find((one) => one === answer);
    if (word === undefined) throw new TypeError(`a script answers ${JSON.stringify(answer)}, not ${words.join(", ")}`);
    return word;
  };
}

/** A number, or the text of one. */
export function asNumber(answer: unknown): number {
  const number = typeof answer === "string" && answer !== "" ? Number(answer) : answer;
  if (typeof number === "number" && !Number.isNaN(number)) return number;
  throw new TypeError(`a script answers ${JSON.stringify(answer)}, not a number`);
}

/** A text or number, as text. */
export function asText(answer: unknown): string {
  if (typeof answer === "string" || typeof answer === "number") return String(answer);
  throw new TypeError(`a script answers ${JSON.stringify(answer)}, not a text`);
}

/** A list. */
export function asList(answer: unknown): readonly unknown[] {
  if (Array.isArray(answer)) return answer;
  throw new TypeError(`a script answers ${JSON.stringify(answer)}, not a list`);
}

/** A list of texts. */
export function asTexts(answer: unknown): readonly string[] {
  return asList(answer).map(asText);
}

/** What `read` reads, or nothing: undefined. */
export function asOptional<Answer>(read: Reader<Answer>): Reader<Answer | undefined> {
  return (answer) => (answer === null ? undefined : read(answer));
}

/** Cuts a list into batches of at most `size` items. */
export function* batchesOf<Item>(items: readonly Item[], size = 500): Generator<readonly Item[], void, void> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size);
}

/** The pairs of a flat list: name and value in turn. */
export function pairsOf(flat: readonly string[]): [string, string][] {
  return [...batchesOf(flat, 2)].map(([name = "", value = ""]) => [name, value]);
}
