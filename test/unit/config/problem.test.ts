import { describe, expect, it } from "vitest";
import { formatProblem, problemOfFile, sortProblems } from "../../../src/config/problem.ts";
import { createSourceText } from "../../../src/config/yaml/source-text.ts";

const source = createSourceText("p.yaml", "one: 1\r\n\tfor: 22\nthree: 3");

describe("a problem", () => {
  it("is shown with its place, its line, a caret and a hint", () => {
    expect(formatProblem(source.problemAt([14, 16], "too many", "write one"), false)).toBe(
      "p.yaml:2:7: too many\n  2 |  for: 22\n    |       ^^\n  hint: write one",
    );
  });

  it("of a whole file has no line", () => {
    expect(formatProblem(problemOfFile("p.yaml", "is missing"), false)).toBe("p.yaml: is missing");
  });

  it("has colours only when they are wanted", () => {
    const problem = source.problemAt([0, 3], "wrong");
    expect(formatProblem(problem, true)).toContain("\u001b[31mwrong\u001b[0m");
    expect(formatProblem(problem, false)).not.toContain("\u001b");
  });

  it("shows no control characters of the file, and only a part of a long line", () => {
    const nasty = createSourceText("p.yaml", `name: ${"x".repeat(494)}\u001b[2Jhere`);
    const [, line = "", caret = ""] = formatProblem(nasty.problemAt([504, 508], "bad \u001b[2J key"), false).split(
      "\n",
    );
    expect(line).toContain("\u00b7[2Jhere");
    expect(line.length).toBeLessThan(130);
    expect(line.slice(caret.indexOf("^"), caret.lastIndexOf("^") + 1)).toBe("here");
    expect(formatProblem(nasty.problemAt([0, 1], "bad \u001b[2J key"), false)).not.toContain("\u001b");
  });

  it("is sorted by file, line and column, and said once", () => {
    const problems = [
      source.problemAt([16, 17], "c"),
      source.problemAt([0, 1], "b"),
      problemOfFile("a.yaml", "a"),
      source.problemAt([0, 1], "b"),
    ];
    expect(sortProblems(problems).map(({ message }) => message)).toEqual(["a", "b", "c"]);
  });
});
