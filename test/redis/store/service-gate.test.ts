import type { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import type { EventFields } from "../../../src/core/event-log.ts";
import { type ExchangeEnding, type Hold, isHold, type Pass } from "../../../src/core/gate.ts";
import { readGateStatus } from "../../../src/store/gate-status.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
import { type GateLimits, ServiceGate } from "../../../src/store/service-gate.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
const good: ExchangeEnding = { kind: undefined, retryAfterMs: undefined };
const failed: ExchangeEnding = { kind: "server", retryAfterMs: undefined };
const none = {
  concurrencyMax: undefined,
  requestsPerSecond: undefined,
  failuresMax: 5,
  probeEveryMs: 60_000,
  leaseMs: 10_000,
};

/** Two replicas' gates of one service, each with its own connection, and what they log together. */
async function twoGates(service: string, limits: Partial<GateLimits> = {}) {
  const events: (EventFields & { event: string })[] = [];
  const note = (event: string, fields: EventFields = {}) => void events.push({ ...fields, event });
  const log = { info: note, warn: note, error: note };
  const stores = await Promise.all([openStore(target), openStore(target)]);
  const gates = stores.map(
    (store) => new ServiceGate({ ...none, ...limits, service }, { store, clock: systemClock, log, random: () => 0 }),
  );
  const [one, other] = gates as [ServiceGate, ServiceGate];
  const [store] = stores as [Store, Store];
  return { one, other, events, store, close: () => Promise.all(stores.map((each) => each.close())) };
}

const isPass = (answer: Pass | Hold): answer is Pass => !isHold(answer);
const enter = async (gate: ServiceGate, isRead = true): Promise<Pass> => {
  const answer = await gate.enter({ isRead });
  if (isHold(answer)) throw new Error(`held by ${answer.heldBy}`);
  return answer;
};
const heldOf = async (gate: ServiceGate, isRead = true): Promise<Hold | undefined> => {
  const answer = await gate.enter({ isRead });
  return isHold(answer) ? answer : undefined;
};
/** Until a replica has noticed what another one was told: its view is at most 200 ms old. */
const noticed = async (gate: ServiceGate): Promise<Hold> => {
  for (;;) {
    const hold = await gate.held();
    if (hold !== undefined) return hold;
  }
};

describe("the throttle of a service", () => {
  it("holds every replica back until the service's time, never shorter, and leaves other services alone", async () => {
    const { one, other, events, close } = await twoGates("patient");
    const apart = await twoGates("unmoved");
    await (await enter(one)).leave({ kind: "throttled", retryAfterMs: 900_000 });
    for (const hold of [await heldOf(one), await noticed(other), await heldOf(other, false)]) {
      expect(hold?.heldBy).toBe("throttle");
      expect(hold?.waitMs).toBeGreaterThan(890_000);
      expect(hold?.waitMs).toBeLessThanOrEqual(900_000);
    }
    expect(events).toEqual([{ event: "service.throttled", service: "patient", forMs: 900_000 }]);
    expect(await apart.one.held()).toBeUndefined();
    await close();
    await apart.close();
  });

  it("ends by itself, is not shortened by a shorter wish, and holds for a second at least", async () => {
    const { one, other, events, close } = await twoGates("brief");
    const passes = [await enter(one), await enter(other), await enter(other)];
    await passes[0]?.leave({ kind: "throttled", retryAfterMs: 1_500 });
    await passes[1]?.leave({ kind: "throttled", retryAfterMs: 0 });
    expect((await heldOf(other))?.waitMs).toBeGreaterThan(1_000);
    while ((await one.held()) !== undefined);
    await passes[2]?.leave({ kind: "throttled", retryAfterMs: 0 });
    expect((await heldOf(other))?.waitMs).toBeGreaterThan(900);
    expect(events.map(({ event }) => event)).toEqual(["service.throttled", "service.throttled"]);
    await close();
  });
});

describe("the breaker of a service", () => {
  it("opens after failures in a row over all replicas, once", async () => {
    const { one, other, events, close } = await twoGates("weak", { failuresMax: 4 });
    for (const gate of [one, other, one]) await (await enter(gate)).leave(failed);
    await (await enter(other)).leave({ kind: "not-found", retryAfterMs: undefined });
    const passes = await Promise.all([one, other, one, other, one, other].map((gate) => enter(gate)));
    await Promise.all(passes.slice(0, 3).map((pass) => pass.leave(failed)));
    expect(await one.held()).toBeUndefined();
    await Promise.all(passes.slice(3).map((pass) => pass.leave({ kind: "unauthorized", retryAfterMs: undefined })));
    expect(await noticed(one)).toMatchObject({ heldBy: "breaker" });
    expect(await noticed(other)).toMatchObject({ heldBy: "breaker" });
    expect(events).toEqual([
      { event: "breaker.opened", service: "weak", kind: "unauthorized", failures: 4, probeEveryMs: 60_000 },
    ]);
    await close();
  });

  it("lets one read a period through, whoever asks, never a start; and closes when that is answered", async () => {
    const { one, other, events, close } = await twoGates("down", { failuresMax: 1, probeEveryMs: 1_000 });
    await (await enter(one)).leave(failed);
    const probes: Pass[] = [];
    const startedAtMs = systemClock.monotonicMs();
    while (systemClock.monotonicMs() - startedAtMs < 3_500) {
      const answers = await Promise.all([one, other, one, other].map((gate) => gate.enter({ isRead: true })));
      const passes = answers.filter(isPass);
      expect(await heldOf(one, false)).toMatchObject({ heldBy: "breaker" });
      for (const pass of passes) await pass.leave(failed);
      probes.push(...passes);
    }
    expect(probes).toHaveLength(3);
    for (;;) {
      const answer = await other.enter({ isRead: true });
      if (isHold(answer)) continue;
      await answer.leave(good);
      break;
    }
    expect(await heldOf(other, false)).toBeUndefined();
    while ((await one.held()) !== undefined);
    expect(events.map(({ event }) => event)).toEqual(["breaker.opened", "breaker.closed"]);
    await close();
  });

  it("stays open for a straggler that went out before", async () => {
    const { one, other, close } = await twoGates("straggler", { failuresMax: 1 });
    const straggler = await enter(other);
    await (await enter(one)).leave(failed);
    await straggler.leave(good);
    expect(await one.held()).toMatchObject({ heldBy: "breaker" });
    await close();
  });
});

describe("the limits of a service", () => {
  it("let as many in at a time as allowed over all replicas, and no more", async () => {
    const { one, other, store, close } = await twoGates("narrow", { concurrencyMax: 3 });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 ? one : other).enter({ isRead: true })),
    );
    const passes = answers.filter(isPass);
    expect(passes).toHaveLength(3);
    expect(await readGateStatus(store, "narrow")).toMatchObject({ inFlight: 3 });
    expect(await heldOf(one)).toMatchObject({ heldBy: "concurrency" });
    await passes[0]?.leave(failed);
    await (await enter(other)).leave(good);
    for (const pass of passes.slice(1)) await pass.leave(good);
    expect(await readGateStatus(store, "narrow")).toMatchObject({ inFlight: 0 });
    await close();
  });

  it("free the place of a holder that died, also while others come and go", async () => {
    const { one, other, close } = await twoGates("crashed", { concurrencyMax: 2, leaseMs: 300 });
    await enter(one);
    const first = await enter(other);
    expect(await heldOf(other)).toMatchObject({ heldBy: "concurrency" });
    await first.leave(good);
    for (;;) {
      const mine = await enter(other);
      const second = await other.enter({ isRead: true });
      await mine.leave(good);
      if (isPass(second)) break;
    }
    await close();
  });

  it("never let more out in any second than the rate, over two replicas", async () => {
    const { one, other, close } = await twoGates("paced", { requestsPerSecond: 20 });
    const sentAtMs: number[] = [];
    const startedAtMs = systemClock.monotonicMs();
    const hammer = async (gate: ServiceGate) => {
      while (systemClock.monotonicMs() - startedAtMs < 3_000) {
        const answer = await gate.enter({ isRead: true });
        if (!isHold(answer)) sentAtMs.push(systemClock.monotonicMs());
      }
    };
    await Promise.all([one, other, one, other].map(hammer));
    // 20 at once, and 20 more after each of the seconds that passed.
    expect(sentAtMs.length).toBeGreaterThanOrEqual(60);
    expect(sentAtMs.length).toBeLessThanOrEqual(80);
    sentAtMs.sort((a, b) => a - b);
    const gaps = sentAtMs.slice(20).map((atMs, index) => atMs - (sentAtMs[index] ?? 0));
    // What is measured here is when the answer came back, a few milliseconds after Redis gave it.
    expect(Math.min(...gaps)).toBeGreaterThan(950);
    await close();
  });

  it("keep a rate far below one a second, and give those who wait a turn each", async () => {
    const { one, other, store, close } = await twoGates("slow", { requestsPerSecond: 0.5 });
    await (await enter(one)).leave(good);
    const waits = [];
    for (const gate of [one, other, one, other]) waits.push((await heldOf(gate))?.waitMs ?? 0);
    for (const [index, wait] of waits.entries()) {
      expect(wait).toBeGreaterThan(2_000 * index + 1_000);
      expect(wait).toBeLessThanOrEqual(2_000 * (index + 1) + 25 + 0.25 * 2_000 * (index + 1));
    }
    const [left] = await store.redis.lrange(store.key("gate-sent", "slow"), 0, -1);
    expect(Number(left)).toBeGreaterThan(0);
    await close();
  });

  it("cost two commands a request, and a service without limits that is well costs none", async () => {
    const free = await twoGates("free");
    const tight = await twoGates("tight", { concurrencyMax: 50, requestsPerSecond: 1_000 });
    const commandsOf = async (store: Store, work: () => Promise<void>) => {
      let commands = 0;
      const redis = store.redis as Redis;
      const send = redis.sendCommand.bind(redis);
      redis.sendCommand = (...args: Parameters<typeof send>) => {
        commands += 1;
        return send(...args);
      };
      await work();
      return commands;
    };
    const hundred = (gate: ServiceGate) => async () => {
      for (let n = 0; n < 100; n += 1) await (await enter(gate)).leave(good);
    };
    await (await enter(tight.one)).leave(good);
    expect(await commandsOf(free.store, hundred(free.one))).toBeLessThanOrEqual(3);
    const tightCommands = await commandsOf(tight.store, hundred(tight.one));
    expect(tightCommands).toBeGreaterThanOrEqual(200);
    expect(tightCommands).toBeLessThanOrEqual(205);
    await free.close();
    await tight.close();
  });

  it("hold back, for a moment, when Redis does not say whether there is a place; without limits nothing is held", async () => {
    const tight = await twoGates("blind", { concurrencyMax: 1 });
    const free = await twoGates("blind-free");
    await tight.close();
    await free.close();
    expect(await heldOf(tight.one)).toEqual({ heldBy: "concurrency", waitMs: 1_000 });
    await (await enter(free.one)).leave(failed);
  });
});
