// One replica of real processes that is held up: its event loop, the whole process, its clock. Afterwards nothing may be missing.
import { Queue } from "bullmq";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { queueConnection, queueName } from "../../src/queue/queues.ts";
import type { RedisTarget } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { openHouse } from "./chaos-house.ts";
import { checkSchedules } from "./check-schedules.ts";
import type { Fault } from "./fault-script.ts";
import { warmUp } from "./replica.ts";

const everySecond = `  - { name: elapsed, service: main, activate: { syncJobs: [1] }, schedule: { every: 1s }, catchUp: all }
  - { name: on-the-clock, service: main, activate: { syncJobs: [2] }, schedule: { cron: "* * * * * *" } }`;
const hour = 3_600_000;

interface HeldUpOptions {
  readonly stormMs: number;
  readonly policies?: string;
  /** What it puts to sleep by a clock that nobody else has is woken for those who come after it. */
  readonly sleepsAhead?: boolean;
}

let houses = 0;

// A house with one replica that plans and works; what befalls it, one after another; then the checker.
async function heldUp(
  faults: readonly Fault[],
  { stormMs, policies = everySecond, sleepsAhead = false }: HeldUpOptions,
) {
  houses += 1;
  const house = await openHouse({ redisUrl: inject("redis").url, name: `held-up-${houses}`, policies });
  try {
    const roles = ["scheduler", "worker"] as const;
    const fleet = house.fleet({ replicas: [{ roles, clockShiftMs: 0, traps: [] }], faults, stormMs });
    fleet.start();
    const beganMs = await house.untilBegun();
    await fleet.storm();
    const report = await fleet.end("SIGTERM");
    const ledger = new SlotLedger(house.parts.store);
    const holdings = await Promise.all(house.parts.set.policies.map(({ name }) => ledger.holdings(name)));
    // What the replica itself has planned by its end; whoever comes after it may not be what makes this good.
    const endMs = Math.max(...holdings.map(({ markMs }) => markMs ?? 0));
    await house.lookUntilQuiet();
    if (sleepsAhead) await wake(house.parts.redis);
    await house.workOff();
    const verdict = await checkSchedules(house, { beganMs, endMs, hasWorkers: true });
    const planned = house.events.filter(({ event, replica }) => event === "slot.queued" && replica === 0);
    const lateMs = Math.max(...planned.map(({ delayMs }) => Number(delayMs)));
    const plannedFor = (endMs - Math.min(...beganMs.values())) / 1_000;
    return {
      findings: [...report.unexpectedEnds, ...verdict.findings],
      holdings,
      lateMs,
      plannedFor,
      events: house.events,
    };
  } finally {
    await house.close();
  }
}

async function wake(redis: RedisTarget): Promise<void> {
  const { connection, release } = queueConnection(redis, "commands");
  const queue = new Queue(queueName("main", "actions"), { connection, prefix: redis.prefix });
  await queue.promoteJobs();
  await queue.close();
  release();
}

const one = (action: Fault["action"], atMs: number, forMs: number): Fault => ({ action, atMs, forMs, replicas: [0] });

describe.concurrent("a replica that is held up", () => {
  beforeAll(warmUp);

  it("loses nothing when its event loop is blocked for 5 s", async () => {
    const { findings, lateMs, plannedFor } = await heldUp([one("block", 500, 5_000)], { stormMs: 8_000 });
    expect(findings).toEqual([]);
    expect(lateMs).toBeGreaterThan(3_000);
    expect(plannedFor).toBeGreaterThan(5);
  }, 60_000);

  it("loses nothing when the process is stopped for 4 s", async () => {
    const { findings, plannedFor } = await heldUp([one("stop", 500, 4_000)], { stormMs: 7_000 });
    expect(findings).toEqual([]);
    expect(plannedFor).toBeGreaterThan(4);
  }, 60_000);

  it("loses nothing when the process was suspended for an hour", async () => {
    // Stopped for two seconds in which an hour passes on the clock that all share, and on its own as after a machine's sleep.
    const policies = `  - { name: often, service: main, activate: { syncJobs: [1] }, schedule: { every: 10s } }
  - { name: each, service: main, activate: { syncJobs: [2] }, schedule: { cron: "*/5 * * * *" }, catchUp: all, catchUpWindow: 2h }
  - { name: strict, service: main, activate: { syncJobs: [3] }, schedule: { every: 1m }, catchUp: none }`;
    const slept = [one("stop", 500, 2_000), one("shared-clock", 1_000, hour), one("clock", 1_000, hour)];
    const { findings, holdings } = await heldUp(slept, { stormMs: 6_000, policies, sleepsAhead: true });
    expect(findings.filter((finding) => !/^strict .* is missed: catch-up-none$/.test(finding))).toEqual([]);
    const states = holdings.map(({ records }) => Object.groupBy(records, ({ state }) => state));
    expect(states[0]?.coalesced?.length).toBeGreaterThan(350);
    expect([12, 13]).toContain(states[1]?.started?.length);
    expect([59, 60, 61]).toContain(states[2]?.missed?.length);
  }, 60_000);

  it("goes on at once when its own clock is put forward and back by an hour and a year", async () => {
    const steps = [one("clock", 500, hour), one("clock", 3_500, -2 * hour), one("clock", 8_500, 365 * 24 * hour)];
    const { findings, plannedFor } = await heldUp(steps, { stormMs: 12_000 });
    expect(findings).toEqual([]);
    // One that waits for the old time would have stopped planning at 3.5 s.
    expect(plannedFor).toBeGreaterThan(6.5);
  }, 60_000);
});
