// Tables for people: no wider than the terminal, and never silent about what is cut.
import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { paint, toTable } from "../../../src/cli/table.ts";

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

  it("fits into 80 columns: the last text gives way, times and names stay whole", () => {
    let cuts = 0;
    const screen = { colours: true, columns: 80, onCut: () => (cuts += 1) };
    const lines = stripVTControlCharacters(toTable(heading, rows, screen)).split("\n");
    expect(Math.max(...lines.map((line) => line.length))).toBe(80);
    expect(lines[1]).toBe(`${at}  contracts-nightly  succeeded  the service said so, in its…`);
    expect(lines[2]).toMatch(/verträge-für-köln +failed +500$/);
    expect(cuts).toBe(1);
  });

  it("leaves columns out before it cuts a name, and says which", () => {
    const told: (readonly string[])[] = [];
    const screen = { colours: false, columns: 52, onCut: (columns: readonly string[]) => told.push(columns) };
    const lines = toTable(heading, rows.slice(0, 1), screen, ["finished", "status"]).split("\n");
    expect(lines[0]).toBe("policy             status     detail");
    expect(lines[1]).toMatch(/^contracts-nightly {2}succeeded {2}the service said so,…$/);
    expect(told).toEqual([["finished"]]);
  });

  it("keeps a colour whole when it cuts the text, and figures longer than texts", () => {
    const lines = toTable(["at", "what"], [[at, paint("red", "a b c d e f g h i", true)]], {
      colours: true,
      columns: 30,
    });
    expect(lines.split("\n")[1]).toBe(`${at}  \u001b[31ma b c d…\u001b[39m`);
    expect(toTable(["n", "wide"], [["7", "日本語日本語"]], { colours: false, columns: 10 })).toContain("7  日本語…");
  });

  it("takes 20,000 rows at once", () => {
    const many = Array.from({ length: 20_000 }, () => rows[0] ?? []);
    const before = process.cpuUsage();
    toTable(heading, many, { colours: false, columns: 80 });
    expect(process.cpuUsage(before).user).toBeLessThan(2_000_000);
  });
});
