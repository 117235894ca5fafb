import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { errorTable } from "../../support/error-table.ts";

it("docs/outcomes.md holds the tables of errors as the code has them", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../docs/outcomes.md"), "utf8");
  for (const table of errorTable().split("\n\n")) expect(page).toContain(table);
});
