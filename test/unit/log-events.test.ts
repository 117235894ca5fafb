import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => readFileSync(join(root, "src", file), "utf8"))
  .join("\n");
const inCode = new Map(
  [...sources.matchAll(/(?:\.|\[)(info|warn|error|level)\]?\(\s*"([a-z]+\.[a-z-]+)"/g)].map(
    ([, level = "", event = ""]) => [event, level],
  ),
);
const page = readFileSync(join(root, "docs/log-events.md"), "utf8");
// The names at the beginning of a line, or in the first cell of a row.
const rowsOf = (text: string) =>
  [...text.matchAll(/^(?:\| )?((?:`[a-z]+\.[a-z-]+`[ ,]*)+)/gm)].map(
    ([, names = ""]) => names.match(/[a-z]+\.[a-z-]+/g) ?? [],
  );

describe("docs/log-events.md", () => {
  it("names every event that the code writes, and no other", () => {
    expect(inCode.size).toBeGreaterThan(20);
    expect(rowsOf(page).flat().sort()).toEqual([...inCode.keys()].sort());
  });

  it.each(["Error", "Warn", "Info"])("names under %s what has that level", (level) => {
    const rows = rowsOf(page.split(`\n### ${level}\n`)[1]?.split("\n### ")[0] ?? "");
    expect(rows.length).toBeGreaterThan(10);
    expect(rows.filter(([first = ""]) => inCode.get(first) !== level.toLowerCase())).toEqual([]);
  });
});
