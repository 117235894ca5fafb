import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { errorTable } from "../../support/error-table.ts";

describe("docs/errors.md", () => {
  it("holds the tables as the code has them", () => {
    const page = readFileSync(join(import.meta.dirname, "../../../docs/errors.md"), "utf8");
    const tables = page.split("\n").filter((line) => line.startsWith("|"));
    expect(tables).toEqual(
      errorTable()
        .split("\n")
        .filter((line) => line !== ""),
    );
  });
});
