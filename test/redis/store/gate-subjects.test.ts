// The breaker and what failed: one list or one sync job that always fails does not hold up the rest of its service.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { type ExchangeEnding, isHold, type Pass, requestSubject } from "../../../src/core/gate.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
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

function gateOf(service: string, probeEveryMs: number): ServiceGate {
  const limits = { concurrencyMax: undefined, requestsPerSecond: undefined, failuresMax: 2, leaseMs: 10_000 };
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

  it("is probed by them where nobody else asks", async () => {
    const gate = gateOf("all-sick", 300);
    for (const subject of [sick, sickToo]) await (await pass(gate, subject)).leave(failed);
    const { answer } = await firstIn(gate, [sick, sickToo]);
    await answer.leave(good);
    expect(await gate.held()).toBeUndefined();
  });
});
