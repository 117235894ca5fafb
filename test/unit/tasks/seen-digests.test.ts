import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hashText } from "../../../src/core/stable-hash.ts";
import { createComparison, packSeen } from "../../../src/tasks/judge-list.ts";

const item = (id: string, content = "") => ({ id, fingerprint: hashText(content) });

describe("what a poll remembers of the items that it saw", () => {
  it("is 12 bytes an item, and 4 for the expression of their ids", () => {
    expect(packSeen([item("1"), item("2"), item("3")], "item.id")).toHaveLength(40);
    expect(packSeen([], "item.id")).toHaveLength(4);
  });

  it("tells new, modified and same apart", () => {
    const tell = createComparison(packSeen([item("1", "a"), item("2", "a")], ""), "");
    expect([tell(item("1", "a")), tell(item("2", "b")), tell(item("3", "a"))]).toEqual(["same", "modified", "new"]);
  });

  it("calls everything new after an empty list, and nothing before the first poll", () => {
    expect(createComparison(packSeen([], ""), "")(item("1"))).toBe("new");
    expect(createComparison(undefined, "")(item("1"))).toBe("same");
  });

  it("agrees with a map that keeps everything", () => {
    const list = fc.dictionary(fc.string(), fc.constantFrom("a", "b"), { maxKeys: 30, noNullPrototype: true });
    const differ = fc.property(list, list, (before, after) => {
      const seen = Object.entries(before).map(([id, content]) => item(id, content));
      const tell = createComparison(packSeen(seen, ""), "");
      return Object.entries(after).every(([id, content]) => {
        const known = Object.hasOwn(before, id) ? before[id] : undefined;
        const right = known === undefined ? "new" : known === content ? "same" : "modified";
        return tell(item(id, content)) === right;
      });
    });
    expect(fc.check(differ, { numRuns: 300 }).failed).toBe(false);
  });
});
