// That the quick reader of policy files and the one that knows places read the same.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, it } from "vitest";
import { parseYaml } from "../../../src/config/yaml/parse-yaml.ts";
import { readPlainYaml } from "../../../src/config/yaml/plain-yaml.ts";
import { createSourceText } from "../../../src/config/yaml/source-text.ts";

const example = (name: string) =>
  readFileSync(new URL(`../../../config/${name}.yaml`, import.meta.url), "utf8").replace(/\$\{.*?\}/g, "x");
const texts = [
  ...["chain", "first-light", "notify", "once", "watch"].map(example),
  "a:\n  - b: [1, {c: d}]\n    e: 'x''y'\n  - \"z\\n\"\n  - |\n    text\n\n    more\n  - >-\n    fold\n    ed\nq: plain\n  lines\n? k\n: v\n",
];
const signs =
  ": |- |? |#| #|[|]|{|}|,|'|\"|\\|&a |*a|!!str |%|@|~|0x1F|0o7|08|-0|1e5|.inf|null|True|---|...|<<: |a: b|''";
const bits = [
  ...signs.split("|"),
  "|",
  ">+\n",
  "\n",
  "\n  ",
  " ",
  "\t",
  "\r",
  "\r\n",
  "\uFEFF",
  "\u2028",
  "\0",
  "\ud800",
];
bits.push("\n---\n", "\n...\n", "__proto__: 1", `${"k".repeat(1_030)}: 1`);

/** What the reader with places says: the value, or nothing for a file with errors. */
function slowly(text: string): unknown {
  const parsed = parseYaml(createSourceText("f.yaml", text));
  return parsed.ok ? parsed.document.toJS() : undefined;
}

it("reads what is in order as the reader with places does, and nothing else", () => {
  for (const text of texts) expect(readPlainYaml(text)?.value).toBeDefined();
  const edit = fc.record({ at: fc.nat(2_000), bit: fc.constantFrom(...bits), left: fc.nat(2) });
  fc.assert(
    fc.property(fc.constantFrom(...texts), fc.array(edit, { maxLength: 2 }), (text, edits) => {
      const changed = edits.reduce((all, { at, bit, left }) => {
        const place = at % all.length;
        return all.slice(0, place) + bit + all.slice(place + left);
      }, text);
      const value = readPlainYaml(changed)?.value;
      if (value !== undefined) expect(value).toEqual(slowly(changed));
    }),
    { numRuns: 300 },
  );
});

it.each([
  ["a variable", `a: \${B}`],
  ["an anchor", "a: &b 1"],
  ["a tag", "a: !!str 1"],
  ["a number as a key", "a: { 0x10: 1 }"],
  ["a number that is too large", "a: 7e4129"],
  ["a doubled key", "a: 1\na: 2"],
  ["a tab", "a:\n\t"],
  ["a directive", "%: b\n---\na: 1"],
  ["a merge key", "a: 1\n<<: { b: 2 }"],
  ["two documents", "a: 1\n---\nb: 2"],
  ["a list", "- 1"],
  ["an error", "a: b: c"],
])("leaves %s to the reader with places", (_, text) => {
  expect(readPlainYaml(text)?.value).toBeUndefined();
});
