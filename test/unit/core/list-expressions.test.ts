import { describe, expect, it } from "vitest";
import { checkExpression, parseExpression } from "../../../src/core/expression.ts";

const first = { count: 3n, items: [{ id: 1 }, { id: 2 }, { id: 3 }], new: [], modified: [], previous: null };
const later = { ...first, new: [{ id: 3 }], previous: { count: 2n, at: new Date("2026-11-21T06:00:00Z") } };

describe("an expression over a list", () => {
  it.each([
    ["count <= 3", true, true],
    ["size(new) == 0", true, false],
    ["new.all(x, x.id > 3)", true, false],
    ["modified == []", true, true],
    ["previous == null || count <= previous.count", true, false],
    ["previous == null || count - previous.count <= 1", true, true],
    ["previous == null || count + size(modified) == previous.count + size(new)", true, true],
    ["previous == null || double(count) <= double(previous.count) * 1.5", true, true],
    ['previous != null && previous.at < timestamp("2026-11-21T07:00:00Z")', false, true],
    ["previous.?count.orValue(3) == count", true, false],
    ["items.exists(x, x.id == count)", true, true],
  ])("%s is %s at the first poll and %s at a later one", (text, atFirst, atLater) => {
    const expression = parseExpression(text, "list");
    expect([expression.evaluate(first), expression.evaluate(later)]).toEqual([atFirst, atLater]);
  });

  it("uses the variables that it names, not words of a text or a field", () => {
    const { uses } = parseExpression('items.all(i, i.status != "new" && i.previous == count)', "list");
    expect(["items", "new", "modified", "previous", "count"].filter(uses)).toEqual(["items", "count"]);
  });

  it.each(["count <= previous.count", "size(new) < 3 && previous.count > 0", "!(count > previous.count)"])(
    "that forgets the first poll is refused, and how to write it is said: %s",
    (text) => {
      expect(checkExpression(text, "list")).toBe("`previous` is null at the first poll: write `previous == null || …`");
    },
  );

  it.each(["items[0].id > previous.count", "previous == null || items[0].id > 0"])(
    "that fails on an empty list for another reason is left to its list: %s",
    (text) => {
      expect(checkExpression(text, "list")).toBeUndefined();
    },
  );

  it.each([
    ["size(fresh) == 0", "Unknown variable: fresh"],
    ["count * 1.5 > 3.0", "no such overload: int * double"],
  ])("that cannot be right is refused: %s", (text, problem) => {
    expect(checkExpression(text, "list")).toBe(problem);
  });

  it.each([
    ["items.all(a, items.exists(b, b.id != a.id))", "items"],
    ["items.all(a, new.exists(b, b.id != a.id))", "new"],
    ["count > 3 || !new.exists(a, a in modified)", "modified"],
    ["size(items.filter(a, a in new)) > 0", "new"],
    ["items.all(a, size(items.filter(b, b == a)) == 1)", "items"],
  ])("that goes through a list for each item of one is refused: %s", (text, list) => {
    expect(checkExpression(text, "list")).toBe(
      `\`${list}\` inside all, exists, filter or map looks at every item for every item, which takes minutes over a long list`,
    );
  });

  it.each([
    "items.all(a, a.tags.exists(tag, tag == 'x'))",
    "items.filter(a, a.id > 1).all(a, a.id < size(items) && a.id < new.size() + 9)",
    "items.all(a, a.id > 0) && new.all(a, a.id > 0)",
    "items.exists(a, a.items == 3)",
  ])("over several lists, or an item's own list, is right: %s", (text) => {
    expect(checkExpression(text, "list")).toBeUndefined();
  });

  it("does not know an item, as one over an item knows no list", () => {
    expect(checkExpression("item.id > 0", "list")).toBe("Unknown variable: item");
    expect(checkExpression("size(new) == 0", "item")).toBe("Unknown variable: new");
  });
});
