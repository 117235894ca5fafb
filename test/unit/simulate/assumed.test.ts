import { describe, expect, it } from "vitest";
import { type Assumptions, durationOf } from "../../../src/simulate/assumptions.ts";
import { LoadMeter } from "../../../src/simulate/load-meter.ts";
import { Totals } from "../../../src/simulate/totals.ts";
import { testPolicy } from "../../support/policies.ts";
import { everyMinutes, minute, simulateMinutes, startMs } from "../../support/simulation.ts";

const assume = (changes: Partial<Assumptions>): Assumptions => ({
  durations: { otherwise: { leastMs: 10 * minute, mostMs: 10 * minute }, byPolicy: new Map() },
  maskJobs: { otherwise: 1, byPolicy: new Map() },
  failures: { otherwise: 0, byPolicy: new Map() },
  requestMs: 0,
  seed: "1",
  ...changes,
});

describe("what is assumed", () => {
  it("draws durations from seed and task name alone, evenly between both ends", () => {
    const drawn = (seed: string) => {
      const durations = { otherwise: { leastMs: 1, mostMs: 3 }, byPolicy: new Map() };
      const assumptions = assume({ durations, seed });
      return Array.from({ length: 3_000 }, (_, task) => durationOf(assumptions, testPolicy(), { id: `task-${task}` }));
    };
    expect(drawn("1")).toEqual(drawn("1"));
    expect(drawn("1")).not.toEqual(drawn("2"));
    const counts = [1, 2, 3].map((value) => drawn("1").filter((one) => one === value).length);
    expect(counts[0] ?? 0).toBeGreaterThan(900);
    expect(counts[1] ?? 0).toBeGreaterThan(900);
    expect(counts[2] ?? 0).toBeGreaterThan(900);
  });

  it("takes a policy's own duration before that of all", () => {
    const own = { leastMs: 7, mostMs: 7 };
    const durations = { otherwise: { leastMs: 1, mostMs: 1 }, byPolicy: new Map([["nightly", own]]) };
    const of = (name: string) => durationOf(assume({ durations }), testPolicy({ name }), { id: "x" });
    expect([of("nightly"), of("other")]).toEqual([7, 1]);
  });

  it("lets a burst wait for free workers, by the service's limit of requests", () => {
    const burst = everyMinutes(10, { action: { kind: "run", syncJobs: [1, 2, 3, 4, 5] } });
    const options = { assumptions: assume({ requestMs: 10_000 }), concurrencyOf: () => 2 };
    const starts = simulateMinutes({ policies: [burst], to: 10, options }).flatMap((event) =>
      event.event === "started" ? [(event.atMs - startMs) / 1_000 - 600] : [],
    );
    expect(starts).toEqual([0, 0, 10, 10, 20]);
  });

  it("keeps a service's polls and actions apart; drops what outwaits its start-by time", () => {
    const action = { kind: "run", syncJobs: [1, 2, 3] } as const;
    const policies = [
      everyMinutes(120, { action, catchUpWindowMs: minute }),
      everyMinutes(120, { name: "looker", action: { kind: "poll", list: "masks", expect: undefined } }),
    ];
    const options = { assumptions: assume({ requestMs: 31 * minute }), concurrencyOf: () => 1 };
    const totals = new Totals(policies, 10);
    for (const event of simulateMinutes({ policies, to: 120, options })) totals.add(event);
    // At minute 120, 151 and 182: an hour after its slot the third may not start any more.
    expect(totals.byPolicy.get("nightly")).toMatchObject({ runs: 2, notStarted: { overlap: 0, "too-late": 1 } });
    expect(totals.byPolicy.get("looker")).toMatchObject({ runs: 1, longestWaitMs: 0 });
    expect(totals.problems).toMatchObject([{ problem: "too-late", target: "3" }]);
  });

  it("starts as many sync jobs as masks may name, after their masks are read", () => {
    const policies = [everyMinutes(10, { action: { kind: "run", fromMasks: { type: "DocMask" } } })];
    const assumptions = assume({ requestMs: 1_000, maskJobs: { otherwise: 3, byPolicy: new Map() } });
    const events = simulateMinutes({ policies, to: 10, options: { assumptions } });
    expect(events.map(({ event }) => event)).toEqual(["planned", "masks", "started", "started", "started"]);
    expect(events.at(-1)).toMatchObject({ atMs: startMs + 601_000, task: { target: "nightly-mask-3" } });
  });

  it("takes a poll of the masks for a poll, not for a run whose sync jobs they name", () => {
    const policies = [everyMinutes(10, { action: { kind: "poll", list: "masks", expect: undefined } })];
    const assumptions = assume({ requestMs: 1_000, maskJobs: { otherwise: 3, byPolicy: new Map() } });
    const events = simulateMinutes({ policies, to: 10, options: { assumptions } });
    expect(events.map(({ event }) => event)).toEqual(["planned", "started"]);
  });

  it("measures busy minutes and runs at once, of all and of each service", () => {
    const [allMeter, otherMeter] = [new LoadMeter(2), new LoadMeter(2)];
    const policies = [
      everyMinutes(10, { name: "a", action: { kind: "run", syncJobs: [1, 2] } }),
      everyMinutes(15, { name: "b", action: { kind: "run", syncJobs: [3] } }),
      everyMinutes(10, { name: "c", service: "other", action: { kind: "poll", list: "masks", expect: undefined } }),
    ];
    for (const event of simulateMinutes({ policies, to: 30, run: 7 })) {
      allMeter.add(event);
      if (event.policy.service === "other") otherMeter.add(event);
    }
    const all = allMeter.load();
    expect(all.starts).toBe(2 * 3 + 2 + 3);
    expect(all.busiest).toEqual([
      {
        fromMs: startMs + 30 * minute,
        starts: 4,
        policiesCount: 3,
        policies: [
          { policy: "a", starts: 2 },
          { policy: "b", starts: 1 },
          { policy: "c", starts: 1 },
        ],
      },
      expect.objectContaining({ fromMs: startMs + 10 * minute, starts: 3 }),
    ]);
    // Minute 15: both of a's (10 to 17) and b's.
    expect(all.runsAtOnce).toEqual({ runs: 3, atMs: startMs + 15 * minute });
    expect(otherMeter.load()).toMatchObject({ starts: 3, runsAtOnce: { runs: 0, atMs: undefined } });
  });
});
