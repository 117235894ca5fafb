// Lists of 50 pages, paged in the ways of many services: what a walk costs, and that each item is
// told once. All cells there are:
// npm run matrix.
import { describe, expect, it } from "vitest";
import {
  allCells,
  type Cell,
  nameOf,
  nameOfCap,
  pairedCells,
  someCapCells,
  walkCap,
  walkSandbox,
} from "../../support/paging-matrix.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();

describe("a walk of 50 pages", () => {
  it("covers each pair of token style, link style and order, and both page sizes", () => {
    const pairsOf = (cells: readonly Cell[]) =>
      new Set(
        cells.flatMap(({ tokenStyle, nextLinkStyle, order, pageSize, emptyLastPage }) => [
          `${tokenStyle} ${nextLinkStyle}`,
          `${tokenStyle} ${order}`,
          `${nextLinkStyle} ${order}`,
          `${pageSize} ${emptyLastPage}`,
        ]),
      );
    expect(pairsOf(allCells).difference(pairsOf(pairedCells))).toEqual(new Set());
  });

  it.each(pairedCells.map((cell) => [nameOf(cell), cell] as const))("%s", async (_name, cell) => {
    const { findings, requests } = await walkSandbox(cell, store);
    expect(findings, requests.join("; ")).toEqual([]);
  });

  it.each(someCapCells.map((cell) => [nameOfCap(cell), cell] as const))("%s", async (_name, cell) => {
    const { findings, requests } = await walkCap(cell, store);
    expect(findings, requests.join("; ")).toEqual([]);
  });
});
