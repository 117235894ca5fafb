// Replicas that die with a pass in their hands, and replicas whose policies differ for as long as
// an upgrade of them takes.
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { type Denial, isDenied, type Permit } from "../../../src/core/limiter.ts";
import { openStore } from "../../../src/store/redis.ts";
import { type LimiterLimits, ServiceLimiter } from "../../../src/store/service-limiter.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
const none = {
  concurrencyMax: undefined,
  requestsPerSecond: undefined,
  failuresMax: 5,
  probeEveryMs: 60_000,
  leaseMs: 10_000,
};

/** A replica with its own connection and its own idea of the limits; closed by `close`. */
async function replica(service: string, limits: Partial<LimiterLimits>) {
  const store = await openStore(target);
  const parts = { store, clock: systemClock, log: silentLog, random: () => 0 };
  const limiter = new ServiceLimiter({ ...none, ...limits, service }, parts);
  /** For how long Redis keeps what stands under this key of the limiter. */
  const keptMs = async (name: "limiter-exchanges" | "limiter-sent") => store.redis.pttl(store.key(name, service));
  return { limiter, keptMs, close: () => store.close() };
}

const isPass = (answer: Permit | Denial): answer is Permit => !isDenied(answer);
const read = { isRead: true } as const;

describe("a replica that dies while it probes", () => {
  it("delays the next probe by one period, also when it held the only permit", async () => {
    const limits = { failuresMax: 1, probeEveryMs: 4_000, concurrencyMax: 1, leaseMs: 6_000 };
    const [dying, living] = await Promise.all([replica("orphan", limits), replica("orphan", limits)]);
    const first = await dying.limiter.acquire(read);
    if (isDenied(first)) throw new Error("denied");
    await first.release({ kind: "server", retryAfterMs: undefined });
    let probe = await dying.limiter.acquire(read);
    while (isDenied(probe)) probe = await dying.limiter.acquire(read);
    await dying.close();
    expect(await living.limiter.acquire(read)).toMatchObject({ deniedBy: "breaker" });
    let second = await living.limiter.acquire(read);
    while (isDenied(second)) second = await living.limiter.acquire(read);
    await second.release({ kind: undefined, retryAfterMs: undefined });
    expect(await living.limiter.denial()).toBeUndefined();
    await living.close();
  });
});

describe("a replica that has just seen an open breaker", () => {
  it("denies nothing for its period once another replica has closed it", async () => {
    const limits = { failuresMax: 1, probeEveryMs: 3_600_000 };
    const [one, other] = await Promise.all([replica("closed", limits), replica("closed", limits)]);
    const failing = await one.limiter.acquire({ isRead: true, resource: "list" });
    if (isDenied(failing)) throw new Error("denied");
    await failing.release({ kind: "server", retryAfterMs: undefined });
    // All failures are about one list: a read of anything else need not wait for the period.
    const probe = await one.limiter.acquire({ isRead: true, resource: "sync job" });
    if (isDenied(probe)) throw new Error("denied");
    expect(await other.limiter.denial()).toMatchObject({ deniedBy: "breaker" });
    await probe.release({ kind: undefined, retryAfterMs: undefined });
    expect(await other.limiter.denial()).toBeUndefined();
    await Promise.all([one.close(), other.close()]);
  });
});

describe("replicas whose policies differ", () => {
  it("do not forget each other's passes when one of them takes less time for a request", async () => {
    const patient = await replica("two-leases", { concurrencyMax: 1, leaseMs: 60_000 });
    const hasty = await replica("two-leases", { concurrencyMax: 2, leaseMs: 200 });
    expect(isPass(await patient.limiter.acquire(read))).toBe(true);
    expect(isPass(await hasty.limiter.acquire(read))).toBe(true);
    expect(await patient.keptMs("limiter-exchanges")).toBeGreaterThan(30_000);
    expect(await patient.limiter.acquire(read)).toMatchObject({ deniedBy: "concurrency" });
    await Promise.all([patient.close(), hasty.close()]);
  });

  it("keep the slower rate of the one that has it, whatever the other sends", async () => {
    const slow = await replica("two-rates", { requestsPerSecond: 0.01 });
    const fast = await replica("two-rates", { requestsPerSecond: 50 });
    expect(isPass(await slow.limiter.acquire(read))).toBe(true);
    expect(isPass(await fast.limiter.acquire(read))).toBe(true);
    expect(await slow.keptMs("limiter-sent")).toBeGreaterThan(50_000);
    expect(await slow.limiter.acquire(read)).toMatchObject({ deniedBy: "rate" });
    await Promise.all([slow.close(), fast.close()]);
  });

  it("are held to the breaker and the throttle that any of them has seen", async () => {
    const strict = await replica("two-breakers", { failuresMax: 2 });
    const lax = await replica("two-breakers", { failuresMax: 100, concurrencyMax: 5 });
    for (let failure = 0; failure < 2; failure += 1) {
      const pass = await (failure === 0 ? lax : strict).limiter.acquire(read);
      if (isPass(pass)) await pass.release({ kind: "unreachable", retryAfterMs: undefined });
    }
    expect(await lax.limiter.acquire(read)).toMatchObject({ deniedBy: "breaker" });
    await Promise.all([strict.close(), lax.close()]);
  });
});
