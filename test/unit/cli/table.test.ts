// Tables for people: no wider than the terminal, and never silent about what is cut.
import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { paint, toTable } from "../../../src/cli/table.ts";
import { wrapLines } from "../../../src/cli/width.ts";

const heading = ["finished", "policy", "status", "detail"];
const at = "2026-11-22 02:30:00Z";
const rows = [
  [at, "contracts-nightly", "succeeded", "the service said so, in its activities, and no conflict was found"],
  [at, "verträge-für-köln", paint("red", "failed", true), "500\n- item 1"],
];

describe("a table", () => {
  it("is as wide as its cells where nothing limits it", () => {
    expect(
      toTable(
        ["a", "b"],
        [
          ["1", ""],
          ["22", "x\ny"],
        ],
        { colours: false },
      ),
    ).toBe("a   b\n1\n22  x\n    y");
  });

  it("fits into 80 columns: times get shorter, prose is wrapped, nothing else is lost", () => {
    let cuts = 0;
    const screen = { colours: true, columns: 90, onCut: () => (cuts += 1) };
    const lines = stripVTControlCharacters(toTable(heading, rows, screen)).split("\n");
    expect(lines).toEqual([
      "finished      policy             status     detail",
      "11-22 02:30Z  contracts-nightly  succeeded  the service said so, in its activities, and no",
      "                                            conflict was found",
      "11-22 02:30Z  verträge-für-köln  failed     500",
      "                                            - item 1",
    ]);
    expect(cuts).toBe(1);
  });

  it("keeps the seconds of times that would become the same", () => {
    const slots = ["2026-11-22 02:30 CET 01:30Z", "2026-11-22 02:30:10 CET 01:30:10Z", "2026-11-22 02:31 CET 01:31Z"];
    const narrow = { colours: false, columns: 38 };
    const toRows = (some: readonly string[]) => some.map((slot) => [slot, "nightly"]);
    expect(toTable(["slot", "p"], toRows(slots), narrow).split("\n").slice(1)).toEqual([
      "11-22 02:30 CET 01:30Z        nightly",
      "11-22 02:30:10 CET 01:30:10Z  nightly",
      "11-22 02:31 CET 01:31Z        nightly",
    ]);
    expect(toTable(["slot", "p"], toRows(slots.slice(1)), narrow)).toContain("11-22 02:30:10 CET 01:30:10Z");
  });

  it("puts prose below its row where it would get less than 40 columns", () => {
    const lines = stripVTControlCharacters(toTable(heading, rows, { colours: false, columns: 60 })).split("\n");
    expect(lines).toEqual([
      "finished      policy             status",
      "  detail",
      "11-22 02:30Z  contracts-nightly  succeeded",
      "  the service said so, in its activities, and no conflict",
      "  was found",
      "11-22 02:30Z  verträge-für-köln  failed",
      "  500",
      "  - item 1",
    ]);
  });

  it("leaves columns out before it cuts a name, and says which", () => {
    const told: (readonly string[])[] = [];
    const screen = { colours: false, columns: 28, onCut: (columns: readonly string[]) => told.push(columns) };
    const lines = toTable(heading, rows.slice(0, 1), screen, { leaveOut: ["finished", "status"] }).split("\n");
    expect(lines[0]).toBe("policy             status");
    expect(lines[2]).toBe("contracts-nightly  succeeded");
    expect(told).toEqual([["finished"]]);
  });

  it("gives a brief row two lines at most, and says that it cut the second", () => {
    const told: (readonly string[])[] = [];
    const screen = { colours: true, columns: 44, onCut: (columns: readonly string[]) => told.push(columns) };
    const brief = [
      "2026-11-22 02:30:00Z",
      "contracts-nightly",
      paint("yellow", "succeeded (inferred, ambiguous)", true),
    ];
    const table = toTable(
      ["finished", "policy", "status", "detail"],
      [[...brief, "of two runs, either could be"]],
      screen,
      {
        isBrief: true,
      },
    );
    expect(table.split("\n").slice(2)).toEqual([
      "11-22 02:30Z  contracts-nightly",
      "  \u001b[33msucceeded (inferred, ambiguous)\u001b[39m  of two r…",
    ]);
    expect(told).toEqual([[]]);
  });

  it("keeps a colour whole when it cuts a name, and figures longer than names", () => {
    const lines = toTable(["at", "what"], [["02:30:00.123456789Z", paint("red", "a b c d e f g h i", true)]], {
      colours: true,
      columns: 30,
    });
    expect(lines.split("\n")[1]).toBe("02:30:00.123456789Z  \u001b[31ma b c d…\u001b[39m");
    expect(toTable(["n", "wide"], [["7", "日本語日本語"]], { colours: false, columns: 10 })).toContain("7  日本語…");
  });

  it("takes 20,000 rows at once", () => {
    const many = Array.from({ length: 20_000 }, () => rows[0] ?? []);
    const before = process.cpuUsage();
    toTable(heading, many, { colours: false, columns: 80 });
    expect(process.cpuUsage(before).user).toBeLessThan(2_000_000);
  });
});

describe("long lines", () => {
  it("break at blanks, with the indent of their line and a hanging one", () => {
    expect(wrapLines("one two three")).toBe("one two three");
    expect(wrapLines("  one two three", 9)).toBe("  one two\n  three");
    expect(wrapLines("one two three", 7, 2)).toBe("one two\n  three");
    expect(wrapLines("\u001b[31mone two\u001b[39m", 7)).toBe("\u001b[31mone two\u001b[39m");
  });

  it("can be copied to a shell where they are commands", () => {
    const example = "  $ syncline run x --reason 'it was down' --wait";
    expect(wrapLines(example, 30)).toBe("  $ syncline run x --reason \\\n      'it was down' --wait");
  });
});
