import { afterEach, describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { startTicker, type Ticker } from "../../../src/schedule/tick.ts";
import { restoreClock, shiftClock } from "../../support/shifted-clock.ts";

const hour = 3_600_000;
let tick: Ticker | undefined;
afterEach(() => {
  tick?.stop();
  restoreClock();
  vi.restoreAllMocks();
});

// Ticks until told otherwise; `next` waits for so many more, as long as the test may take.
function beating() {
  const counts = { ticks: 0, renewed: 0 };
  let wake = () => {};
  tick = startTicker(
    () => {
      counts.ticks += 1;
      wake();
    },
    () => {
      counts.renewed += 1;
    },
  );
  const next = async (more: number) => {
    const wanted = counts.ticks + more;
    while (counts.ticks < wanted) await new Promise<void>((resolve) => (wake = resolve));
  };
  return { counts, next };
}

describe("the tick", () => {
  it("goes on at once when the clock is put forward, by a year too", async () => {
    const { counts, next } = beating();
    await next(1);
    for (const byMs of [24 * hour, 365 * 24 * hour]) {
      shiftClock(byMs);
      await next(1);
    }
    expect(counts.renewed).toBe(0);
  });

  it("goes on when the clock is put back, and says so", async () => {
    const { counts, next } = beating();
    await next(1);
    shiftClock(-hour);
    await next(2);
    expect(counts.renewed).toBe(1);
  });

  it("goes on when its second goes by while the tick is being set", async () => {
    vi.spyOn(systemClock, "nowMs").mockImplementationOnce(() => {
      const readMs = Date.now();
      shiftClock(1_000);
      return readMs;
    });
    const { counts, next } = beating();
    await next(2);
    expect(counts.renewed).toBe(0);
  });

  it("does not take a blocked process for a clock that was put back", async () => {
    const { counts, next } = beating();
    await next(1);
    const untilMs = performance.now() + 3_200;
    while (performance.now() < untilMs);
    await next(1);
    expect(counts.renewed).toBe(0);
  });
});
