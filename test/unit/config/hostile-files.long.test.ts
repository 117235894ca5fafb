// Each hostile file is loaded by a child process, so that an abort of the process (not only an
// exception) is seen.
import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, it } from "vitest";
import { bundle } from "../../support/bundle.ts";

const run = promisify(execFile);
const child = await bundle(fileURLToPath(new URL("./parse-child.ts", import.meta.url)), "parse-child");
const levels = 100_000;
const folder = await mkdtemp(join(tmpdir(), "syncline-hostile-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The outcome of a child process; rejects when it dies or takes longer than 50 seconds. */
async function loadInChild(
  content: string | Uint8Array,
): Promise<{ ok: boolean; count: number; first: readonly string[] }> {
  const file = join(folder, `${randomUUID()}.yaml`);
  await writeFile(file, content);
  const { stdout } = await run(process.execPath, [child, file], { timeout: 50_000 });
  return JSON.parse(stdout);
}

const indented = (count: number) => Array.from({ length: count }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n");
const laughs = ["a0: &a0 [x, x, x, x, x]"];
for (let level = 1; level < 10; level += 1)
  laughs.push(
    `a${level}: &a${level} [${Array(5)
      .fill(`*a${level - 1}`)
      .join(", ")}]`,
  );
const wide = Array.from({ length: 4_000 }, (_, index) => `k${index}: 1`).join(", ");
const merge = `a: &a { ${wide} }\nb: { ${Array(4_000).fill("<<: *a").join(", ")} }`;

const tooDeep = "nested deeper than 32 levels";
const tooLarge = "0 is larger than 256 KiB";

const cases: readonly (readonly [string, string | Uint8Array, string])[] = [
  ["100,000 levels of [", "[".repeat(levels), `1 ${tooDeep}`],
  ["100,000 levels of {", "{".repeat(levels), `1 ${tooDeep}`],
  ["levels of {a:", "{a: ".repeat(60_000), `1 ${tooDeep}`],
  ["levels of [{a: below a key", `policies: ${"[{a: ".repeat(50_000)}`, `1 ${tooDeep}`],
  ["100,000 levels of - ", "- ".repeat(levels), `1 ${tooDeep}`],
  ["100,000 levels of ? ", "? ".repeat(levels), `1 ${tooDeep}`],
  ["100,000 levels of : ", ": ".repeat(levels), `1 ${tooDeep}`],
  ["mixed levels of - ? -", "- ? ".repeat(60_000), `1 ${tooDeep}`],
  ["700 levels of indentation", indented(700), `33 ${tooDeep}`],
  ["indentation beyond the size", indented(800), tooLarge],
  ["33 levels of sequences", `${"[".repeat(33)}${"]".repeat(33)}`, `1 ${tooDeep}`],
  ["a bomb of aliases", laughs.slice(0, 9).join("\n"), "1 too many values once aliases are written out"],
  ["a billion laughs", laughs.join("\n"), "1 too many values once aliases are written out"],
  ["51 aliases", `a: &a 1\nb: [${"*a, ".repeat(51)}]`, "2 more than 50 aliases (*name) in one file"],
  [
    "51 anchors",
    Array.from({ length: 51 }, (_, index) => `a${index}: &a${index} 1`).join("\n"),
    "51 more than 50 anchors (&name) in one file",
  ],
  ["an alias of itself", "a: &a [*a]", "1 there is no anchor of this name before this alias"],
  ["an alias of nothing", "a: *b", "1 there is no anchor of this name before this alias"],
  ["a merge of 4,000 by 4,000", merge, "2 more than 50 aliases (*name) in one file"],
  ["a merge key", "a: &a { b: 1 }\n<<: *a", "2 policy files have no merge keys (<<)"],
  ["NUL bytes", "apiVersion: \0", "1 a control character (U+0000) stands here"],
  ["only NUL bytes", new Uint8Array(1_000), "1 a control character (U+0000) stands here"],
  ["bytes that are not UTF-8", new Uint8Array([0x61, 0x3a, 0x20, 0xff, 0xfe]), "0 is not UTF-8 text"],
  ["a lone byte order mark", "\uFEFF", "1 the file is empty"],
  ["nothing", "", "1 the file is empty"],
  ["comments only", "# nothing\n", "1 the file is empty"],
  ["a tag of JavaScript", "a: !!js/function 'x'", '1 "!!js/function" is a YAML tag: policy files have none'],
  ["a tag", "a: !x 1", '1 "!x" is a YAML tag: policy files have none'],
  [
    "a directive that would turn merge keys on",
    "%YAML 1.1\n---\na: 1",
    '1 "%YAML 1.1" is a YAML directive: policy files have none',
  ],
  ["two documents", "a: 1\n---\nb: 2", "2 a second YAML document starts here"],
  ["60,000 documents", "---\n".repeat(60_000), "2 a second YAML document starts here"],
  ["a key that is a list", "? [a]\n: b", "1 "],
  ["the key __proto__", "__proto__: { apiVersion: syncline/v1 }", "1 a key must be a plain word"],
  [
    "40,000 unknown keys",
    Array.from({ length: 24_000 }, (_, index) => `k${index}: 1`).join("\n"),
    '1 a policy file has no key "k0"',
  ],
  ["24,000 doubled keys", "k: 1\n".repeat(24_000), '2 "k" stands here twice: first in line 1'],
  ["100,000 closing brackets", "]".repeat(levels), "1 YAML:"],
  ["200,000 commas", `[${",".repeat(200_000)}`, "1 this [ is never closed"],
  ["100,000 quotes", '"'.repeat(levels), "1 YAML:"],
  ["100,000 bars", "|".repeat(levels), "1 YAML:"],
  ["a text of 200 KiB", `a: "${"x".repeat(200_000)}"`, "1 "],
  ["130,000 numbers", `a: [${"1,".repeat(130_000)}]`, "1 "],
  ["300 KiB", "#".repeat(300_000), tooLarge],
];

describe.concurrent("a hostile file", { timeout: 60_000 }, () => {
  it.each(cases)("of %s is a problem and does not end the process", async (_, content, first) => {
    const outcome = await loadInChild(content);
    expect(outcome.ok).toBe(false);
    expect(outcome.count).toBeLessThanOrEqual(1_001);
    expect(outcome.first.map((problem) => problem.slice(0, first.length))).toContain(first);
  });
});

describe("a file at the limits", () => {
  it("may nest 32 levels and have 50 aliases, as far as YAML goes", async () => {
    const deep = await loadInChild(`${"[".repeat(32)}${"]".repeat(32)}`);
    expect(deep.first).toEqual(["1 must be a block of keys"]);
    const many = await loadInChild(`a: &a 1\nb: [${"*a, ".repeat(50)}]`);
    expect(many.first).toEqual([
      '1 a policy file has no key "a"',
      "1 apiVersion: is missing",
      '2 a policy file has no key "b"',
    ]);
  });
});
