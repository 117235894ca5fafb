// The simulation ends the slots of followers as the real Scheduler and the real Chains do: both
// look once a second, on a clock that the test moves, with ledger and chain book in memory; tasks
// end when the simulation's durations say so. Whole seconds only.
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import { silentLog } from "../../../src/core/event-log.ts";
import type { Pause } from "../../../src/model/pause.ts";
import type { Task } from "../../../src/model/task.ts";
import { Chains, createFollowerMap } from "../../../src/schedule/chains.ts";
import { Scheduler } from "../../../src/schedule/scheduler.ts";
import { type Assumptions, isFailing, valueFor } from "../../../src/simulate/assumptions.ts";
import { simulate } from "../../../src/simulate/simulation.ts";
import { MemoryChains } from "../../support/memory-chains.ts";
import { followWaits, testPolicy } from "../../support/policies.ts";

const second = 1_000;
const fromMs = Date.parse("2026-11-21T00:00:00Z");
const seconds = 900;
const endings = ["succeeded", "failed", "timed-out"] as const;

/**
 * A root and up to four policies, each after one that comes before it. Every sync job is named
 * once, so nothing overlaps but with itself.
 */
const houses = fc
  .record({
    every: fc.integer({ min: 30, max: 200 }),
    open: fc.option(fc.integer({ min: 1, max: 2 })),
    rest: fc.array(
      fc.record({
        after: fc.nat(),
        on: fc.subarray([...endings], { minLength: 1 }),
        within: fc.integer({ min: 1, max: 300 }),
        // A second at least: what ends as it starts may come before or after the look for what is
        // late, here as in reality.
        duration: fc.integer({ min: 1, max: 120 }),
        targets: fc.integer({ min: 1, max: 2 }),
        deadline: fc.constantFrom(10, 1_000),
        open: fc.option(fc.integer({ min: 1, max: 2 })),
      }),
      { minLength: 1, maxLength: 4 },
    ),
    duration: fc.integer({ min: 1, max: 90 }),
  })
  .map(({ every, open, rest, duration }) => {
    const schedule = { kind: "every", everyMs: every * second, spreadMs: 0 } as const;
    const closed = (minutes: number | null) => ({
      timezone: "UTC",
      blackouts: minutes === null ? [] : [{ cron: "*/5 * * * *", durationMs: minutes * 60 * second }],
      holidays: [],
    });
    const common = { overlap: "allow", schedule: undefined } as const;
    const root = testPolicy({
      ...common,
      name: "p0",
      schedule,
      closed: closed(open),
      catchUp: "all",
      catchUpWindowMs: 100 * second,
    });
    const followers = rest.map((one, index): Policy => {
      const syncJobs = Array.from({ length: one.targets }, (_, job) => 100 * index + job);
      const follow = {
        ...followWaits,
        until: "settled",
        deadlineMs: one.deadline * second,
        conflictsMax: undefined,
      } as const;
      const after = {
        policy: `p${one.after % (index + 1)}`,
        on: one.on,
        withinMs: one.within * second,
        root: { name: "p0", schedule },
      };
      const action = { kind: "run", syncJobs } as const;
      return { ...testPolicy({ ...common, name: `p${index + 1}`, action, follow, closed: closed(one.open) }), after };
    });
    const durations = new Map(rest.map((one, index) => [`p${index + 1}`, one.duration * second]));
    return { policies: [root, ...followers], durations: durations.set("p0", duration * second) };
  });

const intervals = fc.array(fc.tuple(fc.integer({ min: 0, max: seconds - 1 }), fc.integer({ min: 1, max: 200 })), {
  maxLength: 2,
});

it("gives followers the same records at the same slots as scheduler and chains do", async () => {
  await fc.assert(
    fc.asyncProperty(
      houses,
      intervals,
      intervals,
      fc.constantFrom(0, 0.3),
      async (fixture, silences, paused, failing) => {
        const { policies } = fixture;
        const byPolicy = new Map([...fixture.durations].map(([name, ms]) => [name, { leastMs: ms, mostMs: ms }]));
        const assumptions: Assumptions = {
          durations: { otherwise: { leastMs: 0, mostMs: 0 }, byPolicy },
          maskJobs: { otherwise: 1, byPolicy: new Map() },
          failures: { otherwise: failing, byPolicy: new Map() },
          requestMs: 0,
          seed: "1",
        };
        const outages = silences.map(([from, length]) => ({
          fromMs: fromMs + from * second,
          toMs: fromMs + Math.min(from + length, seconds) * second,
        }));
        const pauses = paused.map(([from, length], index): Pause => {
          const times = { sinceMs: fromMs + from * second, untilMs: fromMs + (from + length) * second };
          return { v: 1, scope: "policy", name: `p${index}`, ...times, note: "n", actor: "a", endedBy: null };
        });

        const simulated = new Map<string, string>();
        const time = { fromMs, toMs: fromMs + seconds * second, outages, pauses };
        for (const event of simulate(policies, { time, assumptions, concurrencyOf: () => 10_000, slotsMax: 100_000 })) {
          if (event.event !== "planned") continue;
          for (const plan of event.plans) {
            const said =
              plan.state === "started"
                ? ""
                : plan.state === "coalesced"
                  ? new Date(plan.into).toISOString()
                  : plan.reason;
            const detail = plan.state === "started" && event.policy.after !== undefined ? "followed" : said;
            simulated.set(
              `${event.policy.name} ${plan.slotMs}`,
              `${plan.state} ${detail} ${"note" in plan ? plan.note : ""}`.trim(),
            );
          }
        }
        expect(simulated).toEqual(await recorded({ policies, assumptions, outages, pauses }));
      },
    ),
    { numRuns: 60 },
  );
}, 60_000);

interface Fixture {
  readonly policies: readonly Policy[];
  readonly assumptions: Assumptions;
  readonly outages: readonly { readonly fromMs: number; readonly toMs: number }[];
  readonly pauses: readonly Pause[];
}

/** What the real scheduler and the real chains record, until nothing goes on any more. */
async function recorded({ policies, assumptions, outages, pauses }: Fixture): Promise<ReadonlyMap<string, string>> {
  const fixture = new MemoryChains();
  const policyOf = (name: string) => policies.find((one) => one.name === name);
  const running: {
    readonly task: Task;
    readonly endsAtMs: number;
    readonly status: "succeeded" | "failed" | "timed-out";
  }[] = [];
  const enqueue = async (tasks: readonly Task[]) => {
    for (const task of tasks) {
      const policy = policyOf(task.policy);
      if (policy === undefined) throw new Error(`no policy ${task.policy}`);
      const durationMs = valueFor(assumptions.durations, policy).leastMs;
      const late = durationMs > policy.follow.deadlineMs;
      const status = isFailing(assumptions, policy, task) ? "failed" : late ? "timed-out" : "succeeded";
      running.push({ task, status, endsAtMs: fixture.nowAtMs + Math.min(durationMs, policy.follow.deadlineMs) });
    }
  };
  const parts = { ledger: fixture, enqueue, pauses: async () => pauses, log: silentLog };
  const followers = createFollowerMap(policies).direct;
  const chains = new Chains({
    ...parts,
    policy: policyOf,
    followers,
    chainStore: fixture,
    newestSinceMs: async () => 0,
  });
  const scheduler = new Scheduler({ ...parts, policies, chains });
  const endDue = async () => {
    for (let due = takeDue(running, fixture.nowAtMs); due.length > 0; due = takeDue(running, fixture.nowAtMs)) {
      for (const { task, status } of due) {
        fixture.end(task, status);
        await chains.taskOver(task);
      }
    }
  };
  for (let passed = 0; passed <= seconds + 1_000; passed += 1) {
    fixture.nowAtMs = fromMs + passed * second;
    // What is too late is missed before anything ends at this second; the real sweep comes every 10
    // s.
    await chains.sweep();
    await endDue();
    const isOut = outages.some((one) => one.fromMs <= fixture.nowAtMs && fixture.nowAtMs < one.toMs);
    // The first look adopts the policies; before it nothing is planned.
    if (passed === 0 || (passed <= seconds && !isOut)) await scheduler.runOnce();
    await endDue();
    await chains.sweep();
  }
  const told = [...fixture.records].map(([key, { state, detail, note = "" }]) => {
    return [key, `${state} ${detail} ${state === "started" ? "" : note}`.trim()] as const;
  });
  return new Map(told);
}

/** Takes out what is over, in the order in which it ends. */
function takeDue<Item extends { readonly endsAtMs: number }>(running: Item[], nowMs: number): Item[] {
  const due = running.filter(({ endsAtMs }) => endsAtMs <= nowMs);
  for (const one of due) running.splice(running.indexOf(one), 1);
  return due;
}
