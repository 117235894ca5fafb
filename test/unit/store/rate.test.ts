import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toRate } from "../../../src/store/service-limiter.ts";

describe("a rate", () => {
  it("is a count in a window: whole numbers a second, fractions one at a time", () => {
    expect(toRate(undefined)).toEqual({ count: 0, windowUs: 0 });
    expect(toRate(5)).toEqual({ count: 5, windowUs: 1_000_000 });
    expect(toRate(2.5)).toEqual({ count: 2, windowUs: 800_000 });
    expect(toRate(0.5)).toEqual({ count: 1, windowUs: 2_000_000 });
    expect(toRate(0.01)).toEqual({ count: 1, windowUs: 100_000_000 });
  });

  it("is never exceeded, and missed by less than a ten thousandth", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 1_000, noNaN: true }), (rate) => {
        const { count, windowUs } = toRate(rate);
        const kept = count / (windowUs / 1_000_000);
        return kept <= rate * (1 + 1e-12) && kept > rate * 0.9999;
      }),
    );
  });
});
