import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareShapes, type ListShape, readShape, shapeOf, watchShape } from "../../../src/feeds/publish-items.ts";
import type { FeedStatus } from "../../../src/store/feed-store.ts";
import { TestLog } from "../../support/test-log.ts";

const many = (item: unknown, count = 20): unknown[] => Array(count).fill(item);

/** Shows pages one after another; answers what was told at each. */
function told(...pages: readonly (readonly unknown[])[]): (readonly string[])[] {
  let known: ListShape | undefined;
  return pages.map((items) => {
    const { changes, shape } = compareShapes(known, shapeOf(items), items.length);
    known = readShape(JSON.stringify(shape));
    return changes;
  });
}

describe("the shape of a list", () => {
  it("says nothing at first, and then each change once", () => {
    const [a, b] = [many({ id: 1, state: "x" }), many({ id: "1", status: "x" })];
    const changes = ["id was number, now also string", "state is gone", "status is new"];
    expect(told(a, a, b, b, a, b)).toEqual([[], [], changes, [], [], []]);
  });

  it("takes a null for no type: what a field is shows when it has a value", () => {
    expect(told(many({ id: 1, end: null }), many({ id: 1, end: "2026" }), many({ id: 1, end: null }))).toEqual([
      [],
      [],
      [],
    ]);
  });

  it("misses a field only when it always stood there, and many items lack it now", () => {
    expect(told([...many({ id: 1, note: "x" }), { id: 2 }], many({ id: 1 }))).toEqual([[], []]);
    expect(told(many({ id: 1, note: "x" }), [{ id: 1 }])).toEqual([[], []]);
  });

  it("is told by twenty changes, and how many more there are", async () => {
    const log = new TestLog();
    const kept: string[] = [];
    const feeds = { keepShape: async (_feed: unknown, _shape: string, change: string) => void kept.push(change) };
    const before = { shape: JSON.stringify(shapeOf([{ id: 1 }])) } as FeedStatus;
    const names = Array.from({ length: 22 }, (_, index) => `field${index + 10}`);
    const item = Object.fromEntries(["id", ...names].map((name) => [name, 1]));
    await watchShape({ service: "main", repository: null, list: "masks" }, [item], { feeds, before, log });
    const changes = [...names.slice(0, 20).map((name) => `${name} is new`), "and 2 more"].join("; ");
    expect(kept).toEqual([changes]);
    expect(log.named("feed.shape-changed")).toMatchObject([{ changes }]);
  });

  it("never throws, and repeats no change, whatever the items are", () => {
    const page = fc.array(
      fc.oneof(fc.anything(), fc.dictionary(fc.constantFrom("__proto__", "constructor", "a", "b"), fc.jsonValue())),
      { maxLength: 25 },
    );
    fc.assert(
      fc.property(fc.array(page, { maxLength: 6 }), (pages) => {
        const all = told(...pages).flat();
        expect(new Set(all).size).toBe(all.length);
      }),
    );
  });
});
