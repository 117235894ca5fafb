import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");
const sources = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => readFileSync(join(root, "src", file), "utf8"))
  .join("\n");
const inCode = new Set(
  [...sources.matchAll(/(?:\.(?:info|warn|error)|\[level\])\(\s*"([a-z]+\.[a-z-]+)"/g)].map(([, event]) => event),
);
const inDocs = new Set(
  // The names at the beginning of a line, or in the first cell of a row.
  [
    ...readFileSync(join(root, "docs/log-events.md"), "utf8").matchAll(/^(?:\| )?((?:`[a-z]+\.[a-z-]+`[ ,]*)+)/gm),
  ].flatMap(([, names = ""]) => names.match(/[a-z]+\.[a-z-]+/g) ?? []),
);

describe("docs/log-events.md", () => {
  it("names every event that the code writes, and no other", () => {
    expect(inCode.size).toBeGreaterThan(20);
    expect([...inDocs].sort()).toEqual([...inCode].sort());
  });
});
