import { describe, expect, it } from "vitest";
import { cutText, someNames, toPlainText } from "../../../src/core/plain-text.ts";

describe("a text that is too long", () => {
  it("ends with a sign that it is cut, and is no longer than allowed", () => {
    expect(cutText("as long", 7)).toBe("as long");
    expect(cutText("too long", 7)).toBe("too lo…");
    expect(toPlainText("on\ntwo lines", 9)).toBe("on two l…");
    expect(cutText("a😀b", 3)).toBe("a\ufffd…");
  });
});

describe("a list of names", () => {
  it("says how many more there are, and what shows them", () => {
    const names = Array.from({ length: 200 }, (_, index) => `p${index}`);
    expect(someNames(["a", "b"])).toBe("a, b");
    expect(someNames(names.slice(0, 20))).toMatch(/p18, p19$/);
    expect(someNames(names)).toMatch(/p18, p19 and 180 more$/);
    expect(someNames(names, "--json")).toMatch(/p19 and 180 more \(--json shows all\)$/);
  });
});
