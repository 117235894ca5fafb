// An expression that would take minutes or for ever over what a service sends fails instead, and
// holds nothing up for long.
import { describe, expect, it } from "vitest";
import { parseExpression } from "../../../src/core/expression.ts";
import { createItemMapper } from "../../../src/feeds/mapping.ts";

/** A text that the pattern takes about 2^60 steps to refuse. */
const hostile = { name: `${"a".repeat(60)}!` };
const harmless = { name: "aaa" };

describe("an expression that may take long", () => {
  it.each(["^(a+)+$", "^(a|aa)+$", "^(a?){60}a{60}$", "^a*a*a*a*a*a*a*a*$"])("is cut off: %s", (pattern) => {
    const { evaluate } = parseExpression(`item.name.matches("${pattern}")`, "item");
    const long = { name: `${"a".repeat(300)}!` };
    expect(() => evaluate({ item: long })).toThrow("it took longer than 250 ms");
  });

  it("says that it was cut off, and works for the next item", () => {
    const { evaluate } = parseExpression('item.name.matches("^(a+)+$")', "item");
    expect(() => evaluate({ item: hostile })).toThrow("it took longer than 250 ms");
    expect(evaluate({ item: harmless })).toBe(true);
    expect(() => evaluate({ item: {} })).toThrow("No such key: name");
  });

  it("over many such items is left out for a while after three, and tried again", () => {
    const { evaluate } = parseExpression('item.name.matches("^(a+)+$")', "item");
    const told = Array.from({ length: 12 }, () => {
      try {
        return evaluate({ item: hostile });
      } catch (error) {
        return (error as Error).message;
      }
    });
    expect(told.filter((message) => message === "it took longer than 250 ms")).toHaveLength(3);
    expect(told[11]).toBe("it took too long several times, and is left out for a while");
    const later = Array.from({ length: 30 }, () => {
      try {
        return evaluate({ item: harmless });
      } catch {
        return "left out";
      }
    });
    expect(later.at(-1)).toBe(true);
  });

  it("is one that loops in a loop, too", () => {
    const text = "item.l.all(x, item.l.all(y, item.l.all(z, x + y + z >= 0.0)))";
    const { evaluate } = parseExpression(text, "item");
    expect(evaluate({ item: { l: [1, 2] } })).toBe(true);
    expect(() => evaluate({ item: { l: Array.from({ length: 5_000 }, () => 1) } })).toThrow("it took longer than");
  });

  it("in a mapping leaves that fact unknown, counts, and names the item", () => {
    const reader = createItemMapper("activities", {
      id: "item.id",
      finished: 'item.name.matches("^(a+)+$")',
      succeeded: 'item.name.matches("^a.*")',
    });
    expect(reader.read({ id: "x", ...hostile })).toMatchObject({ id: "x", finished: undefined, succeeded: true });
    expect(reader.failures()).toMatchObject({ count: 1, item: "x", last: expect.stringContaining("took longer") });
  });
});
