// Turns at a service with a rate: who waits is told when to ask again so exactly that hardly any
// turn is left unused.
import { expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { isDenied } from "../../../src/core/limiter.ts";
import { ServiceLimiter } from "../../../src/store/service-limiter.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();

function limiterOf(service: string, requestsPerSecond: number, random: number): ServiceLimiter {
  const limits = { concurrencyMax: undefined, requestsPerSecond, failuresMax: 5, probeEveryMs: 1_000, leaseMs: 1_000 };
  return new ServiceLimiter(
    { ...limits, service },
    { store, clock: systemClock, log: silentLog, random: () => random },
  );
}

/** How long a start that asks now has to wait; 0 when it is let in. */
async function waitOf(limiter: ServiceLimiter): Promise<number> {
  const answer = await limiter.acquire({ isRead: false });
  return isDenied(answer) ? answer.waitMs : 0;
}

it("are not missed by more than a moment, however long the wait", async () => {
  const limiter = limiterOf("exact", 0.02, 0.999);
  expect(await waitOf(limiter)).toBe(0);
  const waitMs = await waitOf(limiter);
  expect(waitMs).toBeGreaterThan(40_000);
  expect(waitMs).toBeLessThanOrEqual(50_050);
});

it("are let in when Redis's clock was set back behind what was sent", async () => {
  const limiter = limiterOf("back", 0.02, 0.999);
  await store.redis.lpush(store.key("limiter-sent", "back"), `${(Date.now() + 3_600_000) * 1_000}`);
  await store.redis.hset(store.key("limiter", "back"), "reservedMs", Date.now() + 3_600_000);
  expect(await waitOf(limiter)).toBe(0);
  const waitMs = await waitOf(limiter);
  expect(waitMs).toBeGreaterThan(0);
  expect(waitMs).toBeLessThanOrEqual(50_050);
});

it("are kept by who comes a moment too early, instead of going behind all others", async () => {
  const limiter = limiterOf("early", 0.2, 0);
  expect(await waitOf(limiter)).toBe(0);
  const sinceMs = systemClock.monotonicMs();
  for (const turn of [1, 2, 3]) expect(await waitOf(limiter)).toBeLessThanOrEqual(turn * 5_000);
  while (systemClock.monotonicMs() - sinceMs < 4_250) await store.redis.ping();
  expect(await waitOf(limiter)).toBeLessThanOrEqual(1_250);
});
