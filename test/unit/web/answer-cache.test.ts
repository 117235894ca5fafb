import { describe, expect, it } from "vitest";
import { type QueryContext, wholeView } from "../../../src/queries/query-context.ts";
import { AnswerCache } from "../../../src/web/answer-cache.ts";
import { setOf } from "../../support/kept-set.ts";

const context = { set: setOf([]), view: wholeView } as unknown as QueryContext;

/** A cache whose readings take so long, by its own clock. `ask` answers how many there were. */
function readsThatTake(tookMs: number) {
  let nowMs = 0;
  let readings = 0;
  const cache = new AnswerCache({ monotonicMs: () => nowMs, sleep: async () => {} }, () => {});
  const read = async () => {
    nowMs += tookMs;
    return ++readings;
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { cache, pass, ask: () => cache.of("all", context, read) };
}

describe("an answer about much", () => {
  it("holds for thirty times what it took, and for ten seconds at most", async () => {
    for (const [tookMs, heldMs] of [
      [10, 1_500],
      [200, 6_000],
      [2_000, 10_000],
    ] as const) {
      const { pass, ask } = readsThatTake(tookMs);
      await ask();
      pass(heldMs - tookMs - 1);
      expect(await ask()).toBe(1);
      pass(1);
      expect(await ask()).toBe(2);
    }
  });

  it("is made anew at once for those who changed something here", async () => {
    const { cache, ask } = readsThatTake(200);
    await ask();
    cache.forget();
    expect(await ask()).toBe(2);
  });

  it("puts off what pages hear of changes elsewhere, whatever else is asked meanwhile", async () => {
    const { cache, pass, ask } = readsThatTake(200);
    expect([cache.mayTell(false), await ask()]).toEqual([true, 1]);
    pass(2_000);
    expect([cache.mayTell(false), await ask()]).toEqual([false, 1]);
    cache.forget();
    expect(await ask()).toBe(2);
    pass(4_000);
    expect([cache.mayTell(false), await ask()]).toEqual([true, 3]);
  });

  it("is told of at once when Redis is lost or back", async () => {
    const { cache, ask } = readsThatTake(200);
    expect([cache.mayTell(false), await ask()]).toEqual([true, 1]);
    expect([cache.mayTell(true), await ask()]).toEqual([true, 2]);
  });

  it("keeps little of what is made of it, however much callers ask for", () => {
    const { cache } = readsThatTake(0);
    const answer = {};
    const asked = Array.from({ length: 1_000 }, (_, index) => `label=${index}`);
    const made: string[] = [];
    for (const name of [...asked, ...asked.slice(-50), ...asked.slice(0, 50)])
      cache.made(answer, name, () => made.push(name));
    expect(made).toEqual([...asked, ...asked.slice(0, 50)]);
  });

  it("that is renewed serves on meanwhile, is read anew once, and ends", async () => {
    const { cache, pass } = readsThatTake(0);
    const hold = { forMs: 1_000, times: 0, mostMs: 0, outlivesChanges: true, renewsMs: 500 };
    const next = Promise.withResolvers<string>();
    const ask = (answer: Promise<string>) => cache.of("ahead", context, () => answer, hold);
    expect(await ask(Promise.resolve("first"))).toBe("first");
    pass(1_000);
    expect(await ask(next.promise)).toBe("first");
    expect(await ask(Promise.resolve("not read"))).toBe("first");
    next.resolve("second");
    await next.promise;
    await expect.poll(() => ask(Promise.resolve("not read"))).toBe("second");
    pass(1_500);
    expect(await ask(Promise.resolve("third"))).toBe("third");
    pass(1_000);
    expect(await ask(Promise.reject(new Error("Redis is away")))).toBe("third");
    pass(500);
    await expect(ask(Promise.reject(new Error("Redis is away")))).rejects.toThrow("Redis is away");
  });

  it("that is read beforehand goes at leisure until a caller asks for it", async () => {
    const rests: (() => void)[] = [];
    const sleep = (_: number, signal?: AbortSignal) => {
      const slept = Promise.withResolvers<void>();
      signal?.addEventListener("abort", () => slept.resolve());
      rests.push(slept.resolve);
      return slept.promise;
    };
    const cache = new AnswerCache({ monotonicMs: () => 0, sleep }, () => {});
    const hold = { forMs: 1_000, times: 0, mostMs: 0, outlivesChanges: true, renewsMs: 500 };
    const ask = (isBeforehand?: true) => {
      const inParts = async (_: unknown, rest: () => Promise<void>) => {
        for (let part = 0; part < 100; part += 1) await rest();
        return "read";
      };
      return cache.of("ahead", context, inParts, { ...hold, ...(isBeforehand && { isBeforehand }) });
    };
    const first = ask(true);
    rests[0]?.();
    await expect.poll(() => rests.length).toBe(2);
    expect([await ask(), await first, rests.length]).toEqual(["read", "read", 2]);
  });

  it("keeps the cache in use for those who ask, not for what is read beforehand", async () => {
    const { cache, pass, ask } = readsThatTake(0);
    const hold = { forMs: 0, times: 0, mostMs: 0, outlivesChanges: true, renewsMs: 0, isBeforehand: true } as const;
    pass(999);
    await cache.of("ahead", context, async () => "read", hold);
    expect(cache.isInUse(1_000)).toBe(true);
    pass(1);
    expect(cache.isInUse(1_000)).toBe(false);
    await ask();
    expect(cache.isInUse(1_000)).toBe(true);
  });

  it("is shared also while it takes longer than it holds", async () => {
    const { cache, pass } = readsThatTake(0);
    const slow = Promise.withResolvers<string>();
    const first = cache.of("slow", context, () => slow.promise);
    pass(60_000);
    const second = cache.of("slow", context, async () => "again");
    slow.resolve("once");
    expect(await Promise.all([first, second])).toEqual(["once", "once"]);
  });
});
