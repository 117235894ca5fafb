import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { silentLog } from "../../src/core/event-log.ts";
import { isHold } from "../../src/core/gate.ts";
import { Quarantines } from "../../src/store/quarantines.ts";
import { ServiceGate } from "../../src/store/service-gate.ts";
import { commandHouse } from "../support/command-house.ts";

const house = commandHouse(`
  - { name: often, service: main, run: { syncJobs: [1] }, schedule: { every: 1h } }
`);

describe("syncline status", () => {
  it("shows breaker, throttle, requests under way and quarantine, with exit code 1, and resume ends the quarantine", async () => {
    const prefix = `${house.redis.prefix}-status`;
    const command = (...args: string[]) => house.command(prefix, ...args, "--config", house.file());
    const well = await command("status");
    expect([well.code, well.out]).toEqual([
      0,
      "service  breaker  asked for patience  in flight\nmain     closed   no                  0\n\nalive: 0 with the role scheduler, 0 with the role worker",
    ]);
    await house.inStore(prefix, async (store) => {
      const limits = { concurrencyMax: 4, requestsPerSecond: undefined, failuresMax: 1, probeEveryMs: 3_600_000 };
      const parts = { store, clock: systemClock, log: silentLog };
      const gate = new ServiceGate({ ...limits, service: "main", leaseMs: 60_000 }, parts);
      const passes = [
        await gate.enter({ isRead: true }),
        await gate.enter({ isRead: true }),
        await gate.enter({ isRead: true }),
      ];
      for (const [index, kind] of (["throttled", "unreachable"] as const).entries()) {
        const pass = passes[index];
        if (pass !== undefined && !isHold(pass)) await pass.leave({ kind, retryAfterMs: 600_000 });
      }
      const failed = { policy: "often", slotMs: 1_000, isGood: false, note: "the last ended failed" };
      await new Quarantines(store).count(failed, { after: 1, forMs: 3_600_000 });
    });
    const ill = await command("status");
    expect(ill.code).toBe(1);
    expect(ill.out).toMatch(
      /main +open since \S+ \S+ \(unreachable\), next probe in (60m|1h|\d+s) +until \S+ \S+, for \S+ +1\n/,
    );
    expect(ill.out).toMatch(/often +\S+ \S+ +\S+ \S+ +1 slot failed; the last ended failed/);
    const { services, quarantined } = JSON.parse((await command("status", "--json")).out);
    expect(services).toMatchObject([{ service: "main", breaker: "open", failures: 1, inFlight: 1 }]);
    expect(quarantined).toMatchObject([{ name: "often", cause: "quarantine" }]);
    expect((await command("pause", "--list")).out).toContain("policy often (quarantine)");
    expect((await command("resume", "often")).out).toBe("policy often resumed");
    expect(JSON.parse((await command("status", "--json")).out).quarantined).toEqual([]);
  });
});
