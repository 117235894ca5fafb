// The breaker and what failed: one list or one sync job that always fails does not hold up the rest
// of its service.
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { type ExchangeEnding, isDenied, type Permit, resourceKey } from "../../../src/core/limiter.ts";
import { redisTimeMs } from "../../../src/store/redis.ts";
import { ServiceLimiter } from "../../../src/store/service-limiter.ts";
import { storeForTest } from "../../support/redis.ts";

const store = await storeForTest();

const answered: ExchangeEnding = { kind: undefined, retryAfterMs: undefined };
const failed: ExchangeEnding = { kind: "server", retryAfterMs: undefined };
const [sick, sickToo, well] = ["GetApprovals", "GetTriggers", "GetSyncJobById"].map((operation) =>
  resourceKey({ repository: "HR", operation }),
);

function limiterOf(service: string, probeEveryMs: number, concurrencyMax?: number): ServiceLimiter {
  const limits = { concurrencyMax, requestsPerSecond: undefined, failuresMax: 2, leaseMs: 10_000 };
  return new ServiceLimiter(
    { ...limits, service, probeEveryMs },
    { store, clock: systemClock, log: silentLog, random: () => 0 },
  );
}

const read = (limiter: ServiceLimiter, subject: string | undefined) =>
  limiter.acquire({ isRead: true, resource: subject });

async function pass(limiter: ServiceLimiter, subject: string | undefined): Promise<Permit> {
  const answer = await read(limiter, subject);
  if (isDenied(answer)) throw new Error(`denied by ${answer.deniedBy} for ${answer.waitMs} ms`);
  return answer;
}

/** As if the period were over now; a replica that asks after this knows it. */
async function periodOver(service: string): Promise<ServiceLimiter> {
  await store.redis.hset(store.key("limiter", service), "nextProbeMs", (await redisTimeMs(store)) - 1);
  return limiterOf(service, 600_000);
}

const longHeld = { deniedBy: "breaker", waitMs: expect.toSatisfy((ms) => ms > 100_000) };

/** The first read of these that is let in; all of them ask again and again, in this order. */
async function firstIn(limiter: ServiceLimiter, subjects: readonly (string | undefined)[]) {
  for (;;) {
    for (const subject of subjects) {
      const answer = await read(limiter, subject);
      if (!isDenied(answer)) return { subject, answer };
    }
  }
}

describe("a service of which one thing always fails", () => {
  it("is probed by one such read a period, by others at once; an answer closes it", async () => {
    const limiter = limiterOf("one-sick", 600_000);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(limiter, sick)).release(failed);
    expect(await read(limiter, sick)).toMatchObject({ deniedBy: "breaker" });
    expect(await limiter.acquire({ isRead: false, resource: well })).toMatchObject({ deniedBy: "breaker" });
    await (await pass(limiter, well)).release(answered);
    expect(await limiter.denial()).toBeUndefined();
    await (await pass(limiter, sick)).release(answered);
  });

  it("rests a period after each further failure of that resource; others go on", async () => {
    const limiter = limiterOf("watched", 5_000);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(limiter, sick)).release(failed);
    await (await pass(limiter, well)).release(answered);
    await (await pass(limiter, sick)).release(failed);
    expect(await read(limiter, sick)).toMatchObject({ deniedBy: "breaker" });
    expect(isDenied(await limiter.acquire({ isRead: false, resource: sick }))).toBe(false);
    await (await pass(limiter, well)).release(answered);
    const { answer } = await firstIn(limiter, [sick]);
    await answer.release(answered);
    await (await pass(limiter, sick)).release(failed);
    await (await pass(limiter, sick)).release(answered);
  });

  it("is asked for that as soon as the period is over", async () => {
    const limiter = limiterOf("one-period", 600_000);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(limiter, sick)).release(failed);
    expect((await pass(await periodOver("one-period"), sick)).isProbe).toBe(true);
  });

  it("stays resting when the breaker opens for it meanwhile, and closes by another", async () => {
    const limiter = limiterOf("over-it", 600_000);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(limiter, sick)).release(failed);
    await (await pass(limiter, well)).release(answered);
    const both = [await pass(limiter, sick), await pass(limiter, sick)];
    for (const one of both) await one.release(failed);
    expect(await limiter.denial()).toMatchObject({ deniedBy: "breaker" });
    await (await pass(limiter, well)).release(answered);
    expect(await read(limiter, sick)).toMatchObject(longHeld);
    await (await pass(limiter, well)).release(answered);
  });

  it("lets starts about it in all the same, at a service with limits, too", async () => {
    const limiter = limiterOf("starts", 600_000, 3);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(limiter, sick)).release(failed);
    await (await pass(limiter, well)).release(answered);
    await (await pass(limiter, sick)).release(failed);
    expect(await read(limiter, sick)).toMatchObject(longHeld);
    expect(isDenied(await limiter.acquire({ isRead: false, resource: sick }))).toBe(false);
  });

  it("may probe a resting resource when the breaker is open for another one", async () => {
    const limiter = limiterOf("rest-probes", 600_000);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(limiter, sick)).release(failed);
    await (await pass(limiter, well)).release(answered);
    await (await pass(limiter, sick)).release(failed);
    await (await pass(limiter, well)).release(answered);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(limiter, sickToo)).release(failed);
    await (await pass(limiter, sick)).release(answered);
    expect(await limiter.denial()).toBeUndefined();
  });

  it("is down when earlier requests fail for another resource, not for the same", async () => {
    for (const [other, isDown] of [
      [well, true],
      [sick, false],
    ] as const) {
      const limiter = limiterOf(`straggler-${isDown}`, 600_000);
      const straggler = await pass(limiter, other);
      for (let failure = 0; failure < 2; failure += 1) await (await pass(limiter, sick)).release(failed);
      await straggler.release(failed);
      expect(isDenied(await read(limiter, sickToo))).toBe(isDown);
    }
  });

  it("is down when the first read of another resource fails or went unreported", async () => {
    for (const ending of [failed, undefined]) {
      const limiter = limiterOf(`down-${ending?.kind}`, 600_000);
      for (let failure = 0; failure < 2; failure += 1) await (await pass(limiter, sick)).release(failed);
      const probe = await pass(limiter, well);
      if (ending !== undefined) await probe.release(ending);
      for (const subject of [sick, well, sickToo, undefined])
        expect(await read(limiter, subject)).toMatchObject({
          deniedBy: "breaker",
          waitMs: expect.toSatisfy((ms) => ms > 500_000),
        });
    }
  });

  it("is down at once when failures concern several resources or none is named", async () => {
    for (const subjects of [
      [sick, sickToo],
      [undefined, undefined],
    ]) {
      const limiter = limiterOf(`several-${subjects[0]}`, 600_000);
      for (const subject of subjects) await (await pass(limiter, subject)).release(failed);
      expect(await read(limiter, well)).toMatchObject({ deniedBy: "breaker" });
    }
  });
});

describe("a service of which several things always fail", () => {
  it("is probed by what has not failed yet first, however often the others ask", async () => {
    const limiter = limiterOf("two-sick", 600_000);
    for (const subject of [sick, sickToo]) await (await pass(limiter, subject)).release(failed);
    const later = await periodOver("two-sick");
    const { subject, answer } = await firstIn(later, [sick, sickToo, well]);
    expect(subject).toBe(well);
    await answer.release(answered);
    expect(await later.denial()).toBeUndefined();
  });

  it("keeps the probe for an untried resource for a quarter period, then takes any", async () => {
    const limiter = limiterOf("quarter", 600_000);
    for (const subject of [sick, sickToo]) await (await pass(limiter, subject)).release(failed);
    const later = await periodOver("quarter");
    for (const subject of [sick, sickToo])
      expect(await read(later, subject)).toMatchObject({
        deniedBy: "breaker",
        waitMs: expect.toSatisfy((ms) => ms > 100_000 && ms <= 150_000),
      });
    expect((await pass(later, well)).isProbe).toBe(true);
  });

  it("are remembered up to some sixty, however many fail", async () => {
    const limiter = limiterOf("sick-all-over", 600_000);
    const subjects = Array.from({ length: 100 }, (_, n) => resourceKey({ repository: `R${n}`, operation: "GetMasks" }));
    const passes = await Promise.all(subjects.map((subject) => pass(limiter, subject)));
    for (const [index, one] of passes.entries()) if (index > 0) await one.release(failed);
    const known = (await store.redis.hget(store.key("limiter", "sick-all-over"), "failing")) ?? "";
    expect(known.length).toBeLessThan(1_020);
  });

  it("is probed by them when no other request comes", async () => {
    const limiter = limiterOf("all-sick", 300);
    for (const subject of [sick, sickToo]) await (await pass(limiter, subject)).release(failed);
    const { answer } = await firstIn(limiter, [sick, sickToo]);
    await answer.release(answered);
    expect(await limiter.denial()).toBeUndefined();
  });
});
