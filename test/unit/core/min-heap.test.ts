import fc from "fast-check";
import { expect, it } from "vitest";
import { MinHeap } from "../../../src/core/min-heap.ts";

it("pops by rank, and equal ranks in order of arrival, for any mix of calls", () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.integer({ min: 0, max: 5 }), { nil: "pop" as const })), (steps) => {
      const heap = new MinHeap<number>();
      const model: { rank: number; item: number }[] = [];
      for (const [item, step] of steps.entries()) {
        if (step === "pop") {
          const least = model.toSorted((a, b) => a.rank - b.rank || a.item - b.item)[0];
          expect(heap.leastRank).toBe(least?.rank);
          expect(heap.pop()).toBe(least?.item);
          if (least !== undefined) model.splice(model.indexOf(least), 1);
        } else {
          heap.push(step, item);
          model.push({ rank: step, item });
        }
      }
    }),
  );
});
