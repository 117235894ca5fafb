import { describe, expect, it } from "vitest";
import { Batcher } from "../../../src/core/batcher.ts";
import { nextTurn } from "../../../src/core/clock.ts";

/** A way that shows its batches and ends each one when it is told to. */
function createWay() {
  const batches: (readonly number[])[] = [];
  const ends: PromiseWithResolvers<void>[] = [];
  const gathered = new Batcher<number>((items) => {
    batches.push(items);
    const end = Promise.withResolvers<void>();
    ends.push(end);
    return end.promise;
  });
  return { batches, ends, gathered };
}

describe("gathering", () => {
  it("sends the first item at once, and all that come meanwhile together", async () => {
    const { batches, ends, gathered } = createWay();
    const first = gathered.add(1);
    const rest = [gathered.add(2), gathered.add(3)];
    expect(batches).toEqual([[1]]);
    ends[0]?.resolve();
    await first;
    await nextTurn();
    expect(batches).toEqual([[1], [2, 3]]);
    ends[1]?.resolve();
    await Promise.all(rest);
    await nextTurn();
    gathered.add(4).catch(() => {});
    expect(batches).toEqual([[1], [2, 3], [4]]);
  });

  it("goes on after a batch that failed, which only those hear of who were in it", async () => {
    const { batches, ends, gathered } = createWay();
    const first = gathered.add(1);
    const second = gathered.add(2);
    ends[0]?.reject(new Error("no answer"));
    await expect(first).rejects.toThrow("no answer");
    await nextTurn();
    ends[1]?.resolve();
    await second;
    expect(batches).toEqual([[1], [2]]);
  });
});
