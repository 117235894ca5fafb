import { describe, expect, it } from "vitest";
import { outcomeTable } from "../../../src/cli/history.ts";
import { showStatus } from "../../../src/cli/table.ts";
import { testOutcome } from "../../support/outcomes.ts";

const outcome = testOutcome({ detail: "d".repeat(101) });

describe("an outcome in a table", () => {
  it.each([
    [{}, "succeeded"],
    [{ confidence: "certain" }, "succeeded"],
    [{ confidence: "likely" }, "succeeded"],
    [{ confidence: "ambiguous" }, "succeeded (ambiguous)"],
    [{ evidence: "inferred" }, "succeeded (inferred)"],
    [{ evidence: "inferred", confidence: "likely" }, "succeeded (inferred, likely)"],
    [{ evidence: "none", status: "unknown" }, "unknown"],
  ] as const)("with %o is %s", (changes, shown) => {
    expect(showStatus({ ...outcome, ...changes }, false)).toBe(shown);
  });

  it("is green only where it is good and sure", () => {
    expect(showStatus(outcome, true)).toContain("\u001b[32m");
    expect(showStatus({ ...outcome, evidence: "inferred" }, true)).toContain("\u001b[33m");
  });

  it("takes two lines at 80 columns, and one with all of it without a width", () => {
    const poll = { ...outcome, offending: 12, offendingItems: ["Draft 3 (3)", "Draft 4 (4)"] };
    const narrow = outcomeTable(
      [poll],
      { colours: false, columns: 80 },
      { isBrief: true, zoneOf: () => "Europe/Vienna" },
    );
    expect(narrow.split("\n")).toHaveLength(4);
    expect(narrow).toMatch(/\n {2}d{77}…$/);
    expect(outcomeTable([poll], { colours: false })).toMatch(/ d{101}; Draft 3 \(3\), Draft 4 \(4\) and 10 more$/);
  });
});
