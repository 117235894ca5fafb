import type { Redis } from "ioredis";
import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import type { EventFields } from "../../../src/core/event-log.ts";
import { type Denial, type ExchangeEnding, isDenied, type Permit } from "../../../src/core/limiter.ts";
import { openStore, type Store } from "../../../src/store/redis.ts";
import { type LimiterLimits, readLimiterStatus, ServiceLimiter } from "../../../src/store/service-limiter.ts";
import { redisForTest } from "../../support/redis.ts";

const target = redisForTest();
const answered: ExchangeEnding = { kind: undefined, retryAfterMs: undefined };
const failed: ExchangeEnding = { kind: "server", retryAfterMs: undefined };
const none = {
  concurrencyMax: undefined,
  requestsPerSecond: undefined,
  failuresMax: 5,
  probeEveryMs: 60_000,
  leaseMs: 10_000,
};

/**
 * Two replicas' limiters of one service, each with its own connection, and what they log together.
 */
async function twoLimiters(service: string, limits: Partial<LimiterLimits> = {}, clock: Clock = systemClock) {
  const events: (EventFields & { event: string })[] = [];
  const note = (event: string, fields: EventFields = {}) => void events.push({ ...fields, event });
  const log = { info: note, warn: note, error: note };
  const stores = await Promise.all([openStore(target), openStore(target)]);
  const limiters = stores.map(
    (store) => new ServiceLimiter({ ...none, ...limits, service }, { store, clock, log, random: () => 0 }),
  );
  const [one, other] = limiters as [ServiceLimiter, ServiceLimiter];
  const [store] = stores as [Store, Store];
  return { one, other, events, store, close: () => Promise.all(stores.map((each) => each.close())) };
}

const isPass = (answer: Permit | Denial): answer is Permit => !isDenied(answer);
const enter = async (limiter: ServiceLimiter, isRead = true): Promise<Permit> => {
  const answer = await limiter.acquire({ isRead });
  if (isDenied(answer)) throw new Error(`denied by ${answer.deniedBy}`);
  return answer;
};
const denialOf = async (limiter: ServiceLimiter, isRead = true): Promise<Denial | undefined> => {
  const answer = await limiter.acquire({ isRead });
  return isDenied(answer) ? answer : undefined;
};
/** Until a replica has noticed what another one was told: its view is at most 200 ms old. */
const noticed = async (limiter: ServiceLimiter): Promise<Denial> => {
  for (;;) {
    const denial = await limiter.denial();
    if (denial !== undefined) return denial;
  }
};

describe("the throttle of a service", () => {
  it("denies every replica until the service's time, never earlier; others go on", async () => {
    const { one, other, events, close } = await twoLimiters("patient");
    const apart = await twoLimiters("unmoved");
    await (await enter(one)).release({ kind: "throttled", retryAfterMs: 900_000 });
    for (const denial of [await denialOf(one), await noticed(other), await denialOf(other, false)]) {
      expect(denial?.deniedBy).toBe("throttle");
      expect(denial?.waitMs).toBeGreaterThan(890_000);
      expect(denial?.waitMs).toBeLessThanOrEqual(900_000);
    }
    expect(events).toEqual([{ event: "service.throttled", service: "patient", forMs: 900_000 }]);
    expect(await apart.one.denial()).toBeUndefined();
    await close();
    await apart.close();
  });

  it("ends by itself, is never shortened, and lasts a second at least", async () => {
    const { one, other, events, close } = await twoLimiters("brief");
    const passes = [await enter(one), await enter(other), await enter(other)];
    let releasedMs = systemClock.monotonicMs();
    /** How long it is denied, counted from the release. */
    const deniedForMs = async () => ((await denialOf(other))?.waitMs ?? 0) + systemClock.monotonicMs() - releasedMs;
    await passes[0]?.release({ kind: "throttled", retryAfterMs: 1_500 });
    await passes[1]?.release({ kind: "throttled", retryAfterMs: 0 });
    expect(await deniedForMs()).toBeGreaterThan(1_490);
    while ((await one.denial()) !== undefined);
    releasedMs = systemClock.monotonicMs();
    await passes[2]?.release({ kind: "throttled", retryAfterMs: 0 });
    expect(await deniedForMs()).toBeGreaterThan(990);
    expect(events.map(({ event }) => event)).toEqual(["service.throttled", "service.throttled"]);
    await close();
  });
});

describe("the breaker of a service", () => {
  it("opens after failures in a row over all replicas, once", async () => {
    const { one, other, events, close } = await twoLimiters("weak", { failuresMax: 4 });
    for (const limiter of [one, other, one]) await (await enter(limiter)).release(failed);
    await (await enter(other)).release({ kind: "not-found", retryAfterMs: undefined });
    const passes = await Promise.all([one, other, one, other, one, other].map((limiter) => enter(limiter)));
    await Promise.all(passes.slice(0, 3).map((pass) => pass.release(failed)));
    expect(await one.denial()).toBeUndefined();
    await Promise.all(passes.slice(3).map((pass) => pass.release({ kind: "unauthorized", retryAfterMs: undefined })));
    expect(await noticed(one)).toMatchObject({ deniedBy: "breaker" });
    expect(await noticed(other)).toMatchObject({ deniedBy: "breaker" });
    expect(events).toEqual([
      { event: "breaker.opened", service: "weak", kind: "unauthorized", failures: 4, probeEveryMs: 60_000 },
    ]);
    await close();
  });

  it("permits one read a period from any caller, never a start; an answer closes it", async () => {
    const { one, other, events, close } = await twoLimiters("down", { failuresMax: 1, probeEveryMs: 1_000 });
    const startedAtMs = systemClock.monotonicMs();
    await (await enter(one)).release(failed);
    const probedAtMs: number[] = [];
    while (probedAtMs.length < 3) {
      const answers = await Promise.all([one, other, one, other].map((limiter) => limiter.acquire({ isRead: true })));
      const passes = answers.filter(isPass);
      expect(await denialOf(one, false)).toMatchObject({ deniedBy: "breaker" });
      for (const pass of passes) await pass.release(failed);
      probedAtMs.push(...passes.map(() => systemClock.monotonicMs() - startedAtMs));
    }
    for (const [index, atMs] of probedAtMs.entries()) expect(atMs).toBeGreaterThan(1_000 * (index + 1) - 10);
    for (;;) {
      const answer = await other.acquire({ isRead: true });
      if (isDenied(answer)) continue;
      await answer.release(answered);
      break;
    }
    expect(await denialOf(other, false)).toBeUndefined();
    while ((await one.denial()) !== undefined);
    expect(events.map(({ event }) => event)).toEqual(["breaker.opened", "breaker.closed"]);
    await close();
  });

  it("stays open for a straggler that went out before", async () => {
    const { one, other, close } = await twoLimiters("straggler", { failuresMax: 1 });
    const straggler = await enter(other);
    await (await enter(one)).release(failed);
    await straggler.release(answered);
    expect(await one.denial()).toMatchObject({ deniedBy: "breaker" });
    await close();
  });

  it("says the kind of its last failure, also of one while it is open", async () => {
    const { one, other, store, close } = await twoLimiters("renamed", { failuresMax: 1 });
    const straggler = await enter(other);
    await (await enter(one)).release(failed);
    expect(await readLimiterStatus(store, "renamed")).toMatchObject({ breaker: "open", lastFailure: "server" });
    await straggler.release({ kind: "unauthorized", retryAfterMs: undefined });
    expect(await readLimiterStatus(store, "renamed")).toMatchObject({ breaker: "open", lastFailure: "unauthorized" });
    await close();
  });
});

describe("the limits of a service", () => {
  it("let as many in at a time as allowed over all replicas, and no more", async () => {
    const { one, other, store, close } = await twoLimiters("narrow", { concurrencyMax: 3 });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => (n % 2 ? one : other).acquire({ isRead: true })),
    );
    const passes = answers.filter(isPass);
    expect(passes).toHaveLength(3);
    expect(await readLimiterStatus(store, "narrow")).toMatchObject({ inFlight: 3 });
    expect(await denialOf(one)).toMatchObject({ deniedBy: "concurrency" });
    await passes[0]?.release(failed);
    await (await enter(other)).release(answered);
    for (const pass of passes.slice(1)) await pass.release(answered);
    expect(await readLimiterStatus(store, "narrow")).toMatchObject({ inFlight: 0 });
    await close();
  });

  it("free the place of a holder that died, also while others come and go", async () => {
    const { one, other, close } = await twoLimiters("crashed", { concurrencyMax: 2, leaseMs: 5_000 });
    await enter(one);
    const first = await enter(other);
    expect(await denialOf(other)).toMatchObject({ deniedBy: "concurrency" });
    await first.release(answered);
    for (;;) {
      const mine = await enter(other);
      const second = await other.acquire({ isRead: true });
      await mine.release(answered);
      if (isPass(second)) break;
    }
    await close();
  });

  it("never let more out in any second than the rate, over two replicas", async () => {
    const { one, other, close } = await twoLimiters("paced", { requestsPerSecond: 20 });
    const permits: { readonly askedAtMs: number; readonly answeredAtMs: number }[] = [];
    const startedAtMs = systemClock.monotonicMs();
    const hammer = async (limiter: ServiceLimiter) => {
      while (systemClock.monotonicMs() - startedAtMs < 3_000 || permits.length < 60) {
        const askedAtMs = systemClock.monotonicMs();
        const answer = await limiter.acquire({ isRead: true });
        if (!isDenied(answer)) permits.push({ askedAtMs, answeredAtMs: systemClock.monotonicMs() });
      }
    };
    await Promise.all([one, other, one, other].map(hammer));
    permits.sort((a, b) => a.answeredAtMs - b.answeredAtMs);
    // 20 at once, and 20 more after each of the seconds that passed.
    const seconds = ((permits.at(-1)?.answeredAtMs ?? 0) - startedAtMs) / 1_000;
    expect(permits.length).toBeLessThanOrEqual(20 * (Math.floor(seconds) + 1));
    // Redis gave each between the asking and the answer, so each span holds 21 of them.
    const spans = permits.slice(20).map(({ answeredAtMs }, index) => {
      const firstAskedMs = Math.min(...permits.slice(index, index + 21).map(({ askedAtMs }) => askedAtMs));
      return answeredAtMs - firstAskedMs;
    });
    expect(Math.min(...spans)).toBeGreaterThan(990);
    await close();
  });

  it("keep a rate far below one a second, and give those who wait a turn each", async () => {
    const { one, other, store, close } = await twoLimiters("slow", { requestsPerSecond: 0.1 });
    await (await enter(one)).release(answered);
    const waits = [];
    for (const limiter of [one, other, one, other]) waits.push((await denialOf(limiter))?.waitMs ?? 0);
    for (const [index, wait] of waits.entries()) {
      expect(wait).toBeGreaterThan(10_000 * index + 5_000);
      expect(wait).toBeLessThanOrEqual(10_000 * (index + 1) + 25 + 0.25 * 10_000 * (index + 1));
    }
    const [left] = await store.redis.lrange(store.key("limiter-sent", "slow"), 0, -1);
    expect(Number(left)).toBeGreaterThan(0);
    await close();
  });

  it("cost two commands a request; a healthy service without limits costs none", async () => {
    // What a limiter has seen of the other one never grows old.
    const still = { ...systemClock, monotonicMs: () => 0 };
    const free = await twoLimiters("free", {}, still);
    const tight = await twoLimiters("tight", { concurrencyMax: 50, requestsPerSecond: 1_000 }, still);
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
    const hundred = (limiter: ServiceLimiter) => async () => {
      for (let n = 0; n < 100; n += 1) await (await enter(limiter)).release(answered);
    };
    await (await enter(tight.one)).release(answered);
    expect(await commandsOf(free.store, hundred(free.one))).toBeLessThanOrEqual(3);
    const tightCommands = await commandsOf(tight.store, hundred(tight.one));
    expect(tightCommands).toBeGreaterThanOrEqual(200);
    expect(tightCommands).toBeLessThanOrEqual(205);
    await free.close();
    await tight.close();
  });

  it("deny for a moment when Redis does not answer; without limits nothing is denied", async () => {
    const tight = await twoLimiters("blind", { concurrencyMax: 1 });
    const free = await twoLimiters("blind-free");
    await tight.close();
    await free.close();
    expect(await denialOf(tight.one)).toEqual({ deniedBy: "redis", waitMs: 1_000 });
    await (await enter(free.one)).release(failed);
  });

  it("deny for a moment when a key is of a wrong type, which is told once as a bug", async () => {
    const { one, events, store, close } = await twoLimiters("spoilt", { concurrencyMax: 1 });
    await store.redis.set(store.key("limiter-exchanges", "spoilt"), "no set");
    for (const isRead of [true, false])
      expect(await denialOf(one, isRead)).toEqual({ deniedBy: "redis", waitMs: 1_000 });
    const stack = expect.stringContaining("WRONGTYPE");
    expect(events).toEqual([{ event: "bug.caught", service: "spoilt", stack }]);
    await close();
  });
});
