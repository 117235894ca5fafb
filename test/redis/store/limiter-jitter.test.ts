// What a limiter adds to a wait, so that not all who wait wake at once: never less than was asked
// for, and not much more.
import { expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import type { ErrorKind } from "../../../src/core/errors.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { type Denial, isDenied } from "../../../src/core/limiter.ts";
import { ServiceLimiter } from "../../../src/store/service-limiter.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();

/** A limiter that draws this number. */
function limiterOf(service: string, random: number, concurrencyMax?: number): ServiceLimiter {
  const limits = {
    concurrencyMax,
    requestsPerSecond: undefined,
    failuresMax: 1,
    probeEveryMs: 600_000,
    leaseMs: 10_000,
  };
  return new ServiceLimiter(
    { ...limits, service },
    { store, clock: systemClock, log: silentLog, random: () => random },
  );
}

/** What it is denied by after a request that ended so. */
async function denialAfter(
  limiter: ServiceLimiter,
  ending?: { kind: ErrorKind; retryAfterMs?: number },
): Promise<Denial> {
  const pass = await limiter.acquire({ isRead: true });
  if (isDenied(pass)) return expect.fail("denied");
  if (ending !== undefined) await pass.release({ retryAfterMs: undefined, ...ending });
  const answer = await limiter.acquire({ isRead: true });
  return isDenied(answer) ? answer : expect.fail("not denied");
}

it.each([
  [0, 80_000, 100_000],
  [0.999, 100_000, 105_000],
])("a twentieth to what the service asked for, never less (%d)", async (random, least, most) => {
  const { deniedBy, waitMs } = await denialAfter(limiterOf(`asked-${random}`, random), {
    ...{ kind: "throttled", retryAfterMs: 100_000 },
  });
  expect(deniedBy).toBe("throttle");
  expect(waitMs).toBeGreaterThan(least);
  expect(waitMs).toBeLessThanOrEqual(most);
});

it.each([
  [0, 580_000, 600_000],
  [0.999, 600_000, 630_000],
])("half a minute at most to the wait for the next probe (%d)", async (random, least, most) => {
  const { deniedBy, waitMs } = await denialAfter(limiterOf(`down-${random}`, random), { kind: "server" });
  expect(deniedBy).toBe("breaker");
  expect(waitMs).toBeGreaterThan(least);
  expect(waitMs).toBeLessThanOrEqual(most);
});

it.each([
  [0, 20],
  [0.999, 40],
])("twenty milliseconds at least to a turn, however short the wait for it is (%d)", async (random, waitMs) => {
  expect(await denialAfter(limiterOf(`turn-${random}`, random, 1))).toEqual({ deniedBy: "concurrency", waitMs });
});
