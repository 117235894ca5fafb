import { describe, expect, it } from "vitest";
import { type QueryContext, wholeView } from "../../../src/queries/query-context.ts";
import { Looks } from "../../../src/web/looks.ts";
import { setOf } from "../../support/kept-set.ts";

const context = { set: setOf([]), view: wholeView } as unknown as QueryContext;

/** Looks at a clock of their own; each takes so long. `ask` answers how many there were. */
function looksThatTake(tookMs: number) {
  let nowMs = 0;
  let readings = 0;
  const looks = new Looks({ monotonicMs: () => nowMs, sleep: async () => {} }, () => {});
  const read = async () => {
    nowMs += tookMs;
    return ++readings;
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { looks, pass, ask: () => looks.of("all", context, read) };
}

describe("a look at much", () => {
  it("holds for thirty times what it took, and for ten seconds at most", async () => {
    for (const [tookMs, heldMs] of [
      [10, 1_500],
      [200, 6_000],
      [2_000, 10_000],
    ] as const) {
      const { pass, ask } = looksThatTake(tookMs);
      await ask();
      pass(heldMs - tookMs - 1);
      expect(await ask()).toBe(1);
      pass(1);
      expect(await ask()).toBe(2);
    }
  });

  it("is made anew at once for those who changed something here", async () => {
    const { looks, ask } = looksThatTake(200);
    await ask();
    looks.forget();
    expect(await ask()).toBe(2);
  });

  it("puts off what pages hear of changes elsewhere, and no longer than it holds", async () => {
    const { looks, pass, ask } = looksThatTake(200);
    await ask();
    pass(2_000);
    expect([looks.forgetWhenDue(), await ask()]).toEqual([false, 1]);
    pass(3_000);
    expect([looks.forgetWhenDue(), await ask()]).toEqual([true, 2]);
  });
});
