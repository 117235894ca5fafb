import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { csvLine } from "../../../src/core/csv.ts";

describe("a line of CSV", () => {
  it("quotes what needs it, and writes anything else as it is", () => {
    expect(csvLine(["a", 'b"c', "d,e", "f\ng", "", null, undefined, 1, -1, true, { h: [1] }])).toBe(
      'a,"b""c","d,e","f\ng",,,,1,-1,true,"{""h"":[1]}"',
    );
  });

  it("makes a text of all that a spreadsheet would take for a formula", () => {
    expect(csvLine(["=1+1", "+1", "-1", "@a", "  =x", "\t=x", "＝1"])).toBe(`'=1+1,'+1,'-1,'@a,'  =x,"'\t=x",'＝1`);
  });

  it("has no cell of text that begins like a formula, whatever the text is", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'=+-@\t\r\n\0 ",;aé\u00a0＝') }), (text) => {
        const line = csvLine([text]);
        const cell = line.startsWith('"') ? line.slice(1, -1).replaceAll('""', '"') : line;
        expect(cell.trimStart()).not.toMatch(/^[=+\-@]/);
        expect(cell === text || cell === `'${text}`).toBe(true);
      }),
    );
  });
});
