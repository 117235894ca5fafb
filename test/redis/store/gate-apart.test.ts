// Replicas that die with a pass in their hands, and replicas whose policies differ for as long as an upgrade of them takes.
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import { type Hold, isHold, type Pass } from "../../../src/core/gate.ts";
import { openStore } from "../../../src/store/redis.ts";
import { type GateLimits, ServiceGate } from "../../../src/store/service-gate.ts";
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
async function replica(service: string, limits: Partial<GateLimits>) {
  const store = await openStore(target);
  const parts = { store, clock: systemClock, log: silentLog, random: () => 0 };
  const gate = new ServiceGate({ ...none, ...limits, service }, parts);
  /** For how long Redis keeps what stands under this key of the gate. */
  const keptMs = async (name: "gate-inside" | "gate-sent") => store.redis.pttl(store.key(name, service));
  return { gate, keptMs, close: () => store.close() };
}

const isPass = (answer: Pass | Hold): answer is Pass => !isHold(answer);
const read = { isRead: true } as const;

describe("a replica that dies while it probes", () => {
  it("takes one period with it and no more: the next probe comes, also where it had the only place", async () => {
    const limits = { failuresMax: 1, probeEveryMs: 400, concurrencyMax: 1, leaseMs: 1_000 };
    const [dying, living] = await Promise.all([replica("orphan", limits), replica("orphan", limits)]);
    const first = await dying.gate.enter(read);
    if (isHold(first)) throw new Error("held");
    await first.leave({ kind: "server", retryAfterMs: undefined });
    let probe = await dying.gate.enter(read);
    while (isHold(probe)) probe = await dying.gate.enter(read);
    await dying.close();
    expect(await living.gate.enter(read)).toMatchObject({ heldBy: "breaker" });
    let second = await living.gate.enter(read);
    while (isHold(second)) second = await living.gate.enter(read);
    await second.leave({ kind: undefined, retryAfterMs: undefined });
    expect(await living.gate.held()).toBeUndefined();
    await living.close();
  });
});

describe("replicas whose policies differ", () => {
  it("do not forget each other's passes when one of them takes less time for a request", async () => {
    const patient = await replica("two-leases", { concurrencyMax: 1, leaseMs: 60_000 });
    const hasty = await replica("two-leases", { concurrencyMax: 2, leaseMs: 200 });
    expect(isPass(await patient.gate.enter(read))).toBe(true);
    expect(isPass(await hasty.gate.enter(read))).toBe(true);
    expect(await patient.keptMs("gate-inside")).toBeGreaterThan(59_000);
    expect(await patient.gate.enter(read)).toMatchObject({ heldBy: "concurrency" });
    await Promise.all([patient.close(), hasty.close()]);
  });

  it("keep the slower rate of the one that has it, whatever the other sends", async () => {
    const slow = await replica("two-rates", { requestsPerSecond: 0.01 });
    const fast = await replica("two-rates", { requestsPerSecond: 50 });
    expect(isPass(await slow.gate.enter(read))).toBe(true);
    expect(isPass(await fast.gate.enter(read))).toBe(true);
    expect(await slow.keptMs("gate-sent")).toBeGreaterThan(99_000);
    expect(await slow.gate.enter(read)).toMatchObject({ heldBy: "rate" });
    await Promise.all([slow.close(), fast.close()]);
  });

  it("are held to the breaker and the throttle that any of them has seen", async () => {
    const strict = await replica("two-breakers", { failuresMax: 2 });
    const lax = await replica("two-breakers", { failuresMax: 100, concurrencyMax: 5 });
    for (let failure = 0; failure < 2; failure += 1) {
      const pass = await (failure === 0 ? lax : strict).gate.enter(read);
      if (isPass(pass)) await pass.leave({ kind: "unreachable", retryAfterMs: undefined });
    }
    expect(await lax.gate.enter(read)).toMatchObject({ heldBy: "breaker" });
    await Promise.all([strict.close(), lax.close()]);
  });
});
