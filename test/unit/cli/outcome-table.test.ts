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

  it("says that its reason is cut", () => {
    expect(outcomeTable([outcome], { colours: false })).toMatch(/ d{99}…$/);
  });
});
