// One replica of real processes that is held up: its event loop, the whole process, its clock.
// Afterwards nothing may be missing.
import { setTimeout as delay } from "node:timers/promises";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { silentLog } from "../../src/core/event-log.ts";
import { OpenQueues, queueName } from "../../src/queue/queues.ts";
import type { RedisTarget } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { type ChaosFixture, openFixture } from "./chaos-fixture.ts";
import { checkSchedules } from "./check-schedules.ts";
import type { Fault } from "./fault-script.ts";
import { warmUp } from "./replica.ts";

const everySecond = `  - { name: elapsed, service: main, activate: { syncJobs: [1] }, schedule: { every: 1s }, catchUp: all }
  - { name: on-the-clock, service: main, activate: { syncJobs: [2] }, schedule: { cron: "* * * * * *" } }`;
const hour = 3_600_000;
/**
 * More than all limits on the way add up to, so that what is waited for in vain is named: until a
 * replica begins, plans, ends, and the queues are empty.
 */
const timeout = 900_000;
const planWithinMs = 60_000;
const toldEventsMax = 200;

interface HeldUpOptions {
  readonly stormMs: number;
  /**
   * How far beyond its beginning the replica itself has to plan, for as long as it takes; beyond
   * the storm unless said.
   */
  readonly plannedMs?: number;
  readonly policies?: string;
  /** What it puts to sleep by a clock that nobody else has is woken for those who come after it. */
  readonly sleepsAhead?: boolean;
}

let houses = 0;

// A fixture with one replica that plans and works; what befalls it, one after another; then the
// checker.
async function heldUp(
  faults: readonly Fault[],
  { stormMs, plannedMs = stormMs, policies = everySecond, sleepsAhead = false }: HeldUpOptions,
) {
  houses += 1;
  const fixture = await openFixture({ redisUrl: inject("redis").url, name: `held-up-${houses}`, policies });
  const roles = ["scheduler", "worker"] as const;
  const fleet = fixture.fleet({ replicas: [{ roles, clockShiftMs: 0, traps: [] }], faults, stormMs });
  const story = () => {
    // Of these there is an hour's worth, all alike.
    const told = fixture.events.filter(({ event }) => event !== "slot.coalesced" && event !== "slot.missed");
    return [...fleet.story, ...told.slice(-toldEventsMax).map((event) => JSON.stringify(event))].join("\n");
  };
  try {
    fleet.start();
    const beganMs = await fixture.untilBegun();
    await fleet.storm();
    const hasPlanned = await untilPlanned(fixture, Math.min(...beganMs.values()) + plannedMs);
    const report = await fleet.end("SIGTERM");
    const ledger = new SlotLedger(fixture.parts.store);
    const holdings = await Promise.all(fixture.parts.set.policies.map(({ name }) => ledger.holdings(name)));
    // What the replica itself has planned by its end; whoever comes after it may not be what makes
    // this good.
    const endMs = Math.max(...holdings.map(({ watermarkMs }) => watermarkMs ?? 0));
    await fixture.lookUntilQuiet();
    if (sleepsAhead) await wake(fixture.parts.redis);
    await fixture.workOff();
    const verdict = await checkSchedules(fixture, { beganMs, endMs, hasWorkers: true });
    const planned = fixture.events.filter(({ event, replica }) => event === "slot.queued" && replica === 0);
    const lateMs = Math.max(...planned.map(({ delayMs }) => Number(delayMs)));
    const stuck = hasPlanned ? [] : [`it planned no further than ${new Date(endMs).toISOString()}`];
    return { findings: [...stuck, ...report.unexpectedEnds, ...verdict.findings], story: story(), holdings, lateMs };
  } catch (cause) {
    throw new Error(`${String(cause)}\n${story()}`, { cause });
  } finally {
    await fixture.close();
  }
}

/**
 * Waits until slots are recorded up to this instant; false when nobody has done so a minute later.
 */
async function untilPlanned({ parts: { store } }: ChaosFixture, atMs: number): Promise<boolean> {
  for (const untilMs = performance.now() + planWithinMs; performance.now() < untilMs; await delay(50))
    if ((await store.redis.hvals(store.key("watermarks"))).some((watermarkMs) => Number(watermarkMs) >= atMs))
      return true;
  return false;
}

async function wake(redis: RedisTarget): Promise<void> {
  const queues = new OpenQueues(redis, silentLog);
  await queues.call(queueName("main", "actions"), (queue) => queue.promoteJobs());
  await queues.close();
}

const one = (action: Fault["action"], atMs: number, forMs: number): Fault => ({ action, atMs, forMs, replicas: [0] });

describe.concurrent("a replica that is held up", { timeout }, () => {
  beforeAll(warmUp);

  it("loses nothing when its event loop is blocked for 5 s", async () => {
    const { findings, story, lateMs } = await heldUp([one("block", 500, 5_000)], { stormMs: 8_000 });
    expect(findings, story).toEqual([]);
    expect(lateMs).toBeGreaterThan(3_000);
  });

  it("loses nothing when the process is stopped for 4 s", async () => {
    const { findings, story } = await heldUp([one("stop", 500, 4_000)], { stormMs: 7_000 });
    expect(findings, story).toEqual([]);
  });

  it("loses nothing when the process was suspended for an hour", async () => {
    // Stopped for two seconds in which an hour passes on the clock that all share, and on its own
    // as after a machine's sleep.
    const policies = `  - { name: often, service: main, activate: { syncJobs: [1] }, schedule: { every: 10s } }
  - { name: each, service: main, activate: { syncJobs: [2] }, schedule: { cron: "*/5 * * * *" }, catchUp: all, catchUpWindow: 2h }
  - { name: strict, service: main, activate: { syncJobs: [3] }, schedule: { every: 1m }, catchUp: none }`;
    const slept = [one("stop", 500, 2_000), one("shared-clock", 1_000, hour), one("clock", 1_000, hour)];
    const { findings, story, holdings } = await heldUp(slept, {
      stormMs: 6_000,
      plannedMs: hour - 10_000,
      policies,
      sleepsAhead: true,
    });
    const unexpected = findings.filter((finding) => !/^strict .* is missed: catch-up-none$/.test(finding));
    expect(unexpected, story).toEqual([]);
    const states = holdings.map(({ records }) => Object.groupBy(records, ({ state }) => state));
    expect(states[0]?.coalesced?.length).toBeGreaterThan(350);
    expect([12, 13]).toContain(states[1]?.started?.length);
    expect([59, 60, 61]).toContain(states[2]?.missed?.length);
  });

  it("goes on at once when its own clock is put forward and back by an hour and a year", async () => {
    const steps = [one("clock", 500, hour), one("clock", 3_500, -2 * hour), one("clock", 8_500, 365 * 24 * hour)];
    // One that waits for the old time would have stopped planning at 3.5 s.
    const { findings, story } = await heldUp(steps, { stormMs: 12_000, sleepsAhead: true });
    expect(findings, story).toEqual([]);
  });
});
