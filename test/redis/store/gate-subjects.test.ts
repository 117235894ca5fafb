// The breaker and what failed: one list or one sync job that always fails does not hold up the rest of its service.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { type ExchangeEnding, isHold, type Pass, requestSubject } from "../../../src/core/gate.ts";
import { openStore, redisTimeMs, type Store } from "../../../src/store/redis.ts";
import { ServiceGate } from "../../../src/store/service-gate.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
let store: Store;
beforeAll(async () => {
  store = await openStore(target);
});
afterAll(() => store.close());

const good: ExchangeEnding = { kind: undefined, retryAfterMs: undefined };
const failed: ExchangeEnding = { kind: "server", retryAfterMs: undefined };
const [sick, sickToo, well] = ["GetApprovals", "GetTriggers", "GetSyncJobById"].map((operation) =>
  requestSubject({ repository: "HR", operation }),
);

function gateOf(service: string, probeEveryMs: number, concurrencyMax?: number): ServiceGate {
  const limits = { concurrencyMax, requestsPerSecond: undefined, failuresMax: 2, leaseMs: 10_000 };
  return new ServiceGate(
    { ...limits, service, probeEveryMs },
    { store, clock: systemClock, log: silentLog, random: () => 0 },
  );
}

const read = (gate: ServiceGate, subject: string | undefined) => gate.enter({ isRead: true, subject });

async function pass(gate: ServiceGate, subject: string | undefined): Promise<Pass> {
  const answer = await read(gate, subject);
  if (isHold(answer)) throw new Error(`held by ${answer.heldBy} for ${answer.waitMs} ms`);
  return answer;
}

/** As if the period were over now; a replica that asks after this knows it. */
async function periodOver(service: string): Promise<ServiceGate> {
  await store.redis.hset(store.key("gate", service), "nextProbeMs", (await redisTimeMs(store)) - 1);
  return gateOf(service, 600_000);
}

const longHeld = { heldBy: "breaker", waitMs: expect.toSatisfy((ms) => ms > 100_000) };

/** The first read of these that is let in; all of them ask again and again, in this order. */
async function firstIn(gate: ServiceGate, subjects: readonly (string | undefined)[]) {
  for (;;) {
    for (const subject of subjects) {
      const answer = await read(gate, subject);
      if (!isHold(answer)) return { subject, answer };
    }
  }
}

describe("a service of which one thing always fails", () => {
  it("is asked for that by one read a period, and for anything else at once: an answer closes the breaker", async () => {
    const gate = gateOf("one-sick", 600_000);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(gate, sick)).leave(failed);
    expect(await read(gate, sick)).toMatchObject({ heldBy: "breaker" });
    expect(await gate.enter({ isRead: false, subject: well })).toMatchObject({ heldBy: "breaker" });
    await (await pass(gate, well)).leave(good);
    expect(await gate.held()).toBeUndefined();
    await (await pass(gate, sick)).leave(good);
  });

  it("is left alone for a period after each further failure of that thing, while the rest goes on, until it is well", async () => {
    const gate = gateOf("watched", 500);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(gate, sick)).leave(failed);
    await (await pass(gate, well)).leave(good);
    await (await pass(gate, sick)).leave(failed);
    expect(await read(gate, sick)).toMatchObject({ heldBy: "breaker" });
    expect(isHold(await gate.enter({ isRead: false, subject: sick }))).toBe(false);
    await (await pass(gate, well)).leave(good);
    const { answer } = await firstIn(gate, [sick]);
    await answer.leave(good);
    await (await pass(gate, sick)).leave(failed);
    await (await pass(gate, sick)).leave(good);
  });

  it("is asked for that as soon as the period is over", async () => {
    const gate = gateOf("one-period", 600_000);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(gate, sick)).leave(failed);
    expect((await pass(await periodOver("one-period"), sick)).isProbe).toBe(true);
  });

  it("is asked at once for anything else, too, where a replica of an older version forgot an earlier failure", async () => {
    const gate = gateOf("older", 600_000);
    await (await pass(gate, sickToo)).leave(failed);
    await store.redis.hdel(store.key("gate", "older"), "failures", "lastFailure");
    for (let failure = 0; failure < 2; failure += 1) await (await pass(gate, sick)).leave(failed);
    expect((await pass(gate, well)).isProbe).toBe(true);
  });

  it("goes on leaving it alone when the breaker opened over it meanwhile, and closes by something else", async () => {
    const gate = gateOf("over-it", 600_000);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(gate, sick)).leave(failed);
    await (await pass(gate, well)).leave(good);
    const both = [await pass(gate, sick), await pass(gate, sick)];
    for (const one of both) await one.leave(failed);
    expect(await gate.held()).toMatchObject({ heldBy: "breaker" });
    await (await pass(gate, well)).leave(good);
    expect(await read(gate, sick)).toMatchObject(longHeld);
    await (await pass(gate, well)).leave(good);
  });

  it("lets starts about it in all the same, at a service with limits, too", async () => {
    const gate = gateOf("starts", 600_000, 3);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(gate, sick)).leave(failed);
    await (await pass(gate, well)).leave(good);
    await (await pass(gate, sick)).leave(failed);
    expect(await read(gate, sick)).toMatchObject(longHeld);
    expect(isHold(await gate.enter({ isRead: false, subject: sick }))).toBe(false);
  });

  it("may be asked for that in its rest where the breaker is open over something else: an answer closes it", async () => {
    const gate = gateOf("rest-probes", 600_000);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(gate, sick)).leave(failed);
    await (await pass(gate, well)).leave(good);
    await (await pass(gate, sick)).leave(failed);
    await (await pass(gate, well)).leave(good);
    for (let failure = 0; failure < 2; failure += 1) await (await pass(gate, sickToo)).leave(failed);
    await (await pass(gate, sick)).leave(good);
    expect(await gate.held()).toBeUndefined();
  });

  it("is taken for down when what had been asked before fails over something else; not when it fails over the same", async () => {
    for (const [other, isDown] of [
      [well, true],
      [sick, false],
    ] as const) {
      const gate = gateOf(`straggler-${isDown}`, 600_000);
      const straggler = await pass(gate, other);
      for (let failure = 0; failure < 2; failure += 1) await (await pass(gate, sick)).leave(failed);
      await straggler.leave(failed);
      expect(isHold(await read(gate, sickToo))).toBe(isDown);
    }
  });

  it("is taken for down when the first read about something else fails, too, or was never told of", async () => {
    for (const ending of [failed, undefined]) {
      const gate = gateOf(`down-${ending?.kind}`, 600_000);
      for (let failure = 0; failure < 2; failure += 1) await (await pass(gate, sick)).leave(failed);
      const probe = await pass(gate, well);
      if (ending !== undefined) await probe.leave(ending);
      for (const subject of [sick, well, sickToo, undefined])
        expect(await read(gate, subject)).toMatchObject({
          heldBy: "breaker",
          waitMs: expect.toSatisfy((ms) => ms > 500_000),
        });
    }
  });

  it("is down from the start when the failures were about several things, or nobody says about what", async () => {
    for (const subjects of [
      [sick, sickToo],
      [undefined, undefined],
    ]) {
      const gate = gateOf(`several-${subjects[0]}`, 600_000);
      for (const subject of subjects) await (await pass(gate, subject)).leave(failed);
      expect(await read(gate, well)).toMatchObject({ heldBy: "breaker" });
    }
  });
});

describe("a service of which several things always fail", () => {
  it("is probed by what has not failed yet first, however often the others ask", async () => {
    const gate = gateOf("two-sick", 400);
    for (const subject of [sick, sickToo]) await (await pass(gate, subject)).leave(failed);
    const { subject, answer } = await firstIn(gate, [sick, sickToo, well]);
    expect(subject).toBe(well);
    await answer.leave(good);
    expect(await gate.held()).toBeUndefined();
  });

  it("leaves what has not failed yet a quarter of a period to be the probe, and then is probed by anything", async () => {
    const gate = gateOf("quarter", 600_000);
    for (const subject of [sick, sickToo]) await (await pass(gate, subject)).leave(failed);
    const later = await periodOver("quarter");
    for (const subject of [sick, sickToo])
      expect(await read(later, subject)).toMatchObject({
        heldBy: "breaker",
        waitMs: expect.toSatisfy((ms) => ms > 149_000 && ms <= 150_000),
      });
    expect((await pass(later, well)).isProbe).toBe(true);
  });

  it("are remembered up to some sixty, however many fail", async () => {
    const gate = gateOf("sick-all-over", 600_000);
    const subjects = Array.from({ length: 100 }, (_, n) =>
      requestSubject({ repository: `R${n}`, operation: "GetMasks" }),
    );
    const passes = await Promise.all(subjects.map((subject) => pass(gate, subject)));
    for (const [index, one] of passes.entries()) if (index > 0) await one.leave(failed);
    const known = (await store.redis.hget(store.key("gate", "sick-all-over"), "sick")) ?? "";
    expect(known.length).toBeLessThan(1_020);
  });

  it("is probed by them where nobody else asks", async () => {
    const gate = gateOf("all-sick", 300);
    for (const subject of [sick, sickToo]) await (await pass(gate, subject)).leave(failed);
    const { answer } = await firstIn(gate, [sick, sickToo]);
    await answer.leave(good);
    expect(await gate.held()).toBeUndefined();
  });
});
