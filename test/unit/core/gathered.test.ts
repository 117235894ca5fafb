import { describe, expect, it } from "vitest";
import { nextTurn } from "../../../src/core/clock.ts";
import { Gathered } from "../../../src/core/gathered.ts";

/** A way that shows its portions and ends each one when it is told to. */
function createWay() {
  const portions: (readonly number[])[] = [];
  const ends: PromiseWithResolvers<void>[] = [];
  const gathered = new Gathered<number>((items) => {
    portions.push(items);
    const end = Promise.withResolvers<void>();
    ends.push(end);
    return end.promise;
  });
  return { portions, ends, gathered };
}

describe("gathering", () => {
  it("sends the first item at once, and all that come meanwhile together", async () => {
    const { portions, ends, gathered } = createWay();
    const first = gathered.add(1);
    const rest = [gathered.add(2), gathered.add(3)];
    expect(portions).toEqual([[1]]);
    ends[0]?.resolve();
    await first;
    await nextTurn();
    expect(portions).toEqual([[1], [2, 3]]);
    ends[1]?.resolve();
    await Promise.all(rest);
    await nextTurn();
    gathered.add(4).catch(() => {});
    expect(portions).toEqual([[1], [2, 3], [4]]);
  });

  it("goes on after a portion that failed, which only those hear of who were in it", async () => {
    const { portions, ends, gathered } = createWay();
    const first = gathered.add(1);
    const second = gathered.add(2);
    ends[0]?.reject(new Error("no answer"));
    await expect(first).rejects.toThrow("no answer");
    await nextTurn();
    ends[1]?.resolve();
    await second;
    expect(portions).toEqual([[1], [2]]);
  });
});
