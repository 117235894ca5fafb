import { describe, expect, it } from "vitest";
import type { Policy } from "../../../src/config/policy-set.ts";
import { Totals } from "../../../src/simulate/totals.ts";
import { followWaits, testPolicy } from "../../support/policies.ts";
import { everyMinutes, minute, simulateMinutes, startMs, tellTasks } from "../../support/simulation.ts";

const totalsOf = (simulation: Parameters<typeof simulateMinutes>[0]) => {
  const totals = new Totals(simulation.policies, 100);
  for (const event of simulateMinutes(simulation)) totals.add(event);
  return totals;
};

describe("the overlap rule in a simulation", () => {
  it("skip: a slot during the run starts nothing, and names the sync job's holder", () => {
    const simulation = { policies: [everyMinutes(10, { overlap: "skip" })], to: 40, run: 15 };
    expect(tellTasks(simulateMinutes(simulation))).toEqual([
      "10 started at 10",
      "20 overlap at 20",
      "30 started at 30",
      "40 overlap at 40",
    ]);
    const totals = totalsOf(simulation);
    expect(totals.all).toMatchObject({ slots: 4, started: 4, runs: 2, overlaps: 2 });
    expect(totals.all.notStarted).toEqual({ overlap: 2, "too-late": 0 });
    expect(totals.problems[0]).toMatchObject({
      slotMs: startMs + 20 * minute,
      target: "42",
      problem: "overlap",
      why: `nightly__run__42__${(startMs + 10 * minute) / 1_000} is still running`,
    });
  });

  it("a run that ends at the instant of the next slot is no overlap", () => {
    const policies = [everyMinutes(10, { overlap: "skip" })];
    expect(tellTasks(simulateMinutes({ policies, to: 20, run: 10 }))).toEqual(["10 started at 10", "20 started at 20"]);
  });

  it("queue: each waits for the one before, oldest first, until its start-by time", () => {
    const simulation = { policies: [everyMinutes(10, { overlap: "queue" })], to: 180, run: 15 };
    const tasks = tellTasks(simulateMinutes(simulation));
    expect(tasks.slice(0, 3)).toEqual(["10 started at 10", "20 started at 25", "30 started at 40"]);
    // The slot of minute 140 would start at 205, after its hour; the one of 150 is in time then.
    expect(tasks.slice(12)).toEqual([
      "130 started at 190",
      "140 too-late at 205",
      "150 started at 205",
      "160 started at 220",
      "170 too-late at 235",
      "180 started at 235",
    ]);
    const { all: totals } = totalsOf(simulation);
    expect(totals).toMatchObject({ slots: 18, runs: 16, atOnce: 0, overlaps: 15, longestWaitMs: 60 * minute });
    expect(totals.waited).toEqual({ behindRun: 15, forWorker: 0 });
    expect(totals.notStarted).toEqual({ overlap: 0, "too-late": 2 });
  });

  it("allow: starts beside another run; a skipping policy waits for both to end", () => {
    const beside = everyMinutes(10, { name: "beside", overlap: "allow" });
    const careful = everyMinutes(7, { name: "careful", overlap: "skip" });
    // careful is due at 4, 11, 18, 25, 32 (every 7 minutes since 1970): 4–19 is its own run, then
    // the lease goes on to those of beside: 10–25, 20–35, 30–45. At minute 25 it goes from the
    // first of them to the second.
    const simulation = { policies: [beside, careful], to: 34, run: 15 };
    expect(tellTasks(simulateMinutes(simulation))).toEqual([
      "4 started at 4",
      "10 started at 10",
      "11 overlap at 11",
      "18 overlap at 18",
      "20 started at 20",
      "25 overlap at 25",
      "30 started at 30",
      "32 overlap at 32",
    ]);
    const totals = totalsOf(simulation);
    expect(totals.byPolicy.get("beside")).toMatchObject({ runs: 3, atOnce: 3, overlaps: 3 });
    expect(totals.byPolicy.get("careful")).toMatchObject({ runs: 1, atOnce: 0, overlaps: 4 });
  });

  it("hands the lease on to a run that goes on, when the one before it is over", () => {
    const beside = everyMinutes(30, { name: "beside", overlap: "allow" });
    const careful = everyMinutes(45, { name: "careful", overlap: "skip" });
    // beside: 30–80, 60–110. At minute 90 the first one is over and the second one is not.
    expect(tellTasks(simulateMinutes({ policies: [careful, beside], to: 90, run: 50 }))).toEqual([
      "30 started at 30",
      "45 overlap at 45",
      "60 started at 60",
      "90 overlap at 90",
      "90 started at 90",
    ]);
  });

  it("lets a run end before another begins at the same instant, also a waiting one", () => {
    const policies = ["a", "b", "c"].map((name) =>
      everyMinutes(10, { name, overlap: "skip", action: { kind: "run", syncJobs: [name === "a" ? 1 : 9] } }),
    );
    const durations = { otherwise: { leastMs: minute, mostMs: minute }, byPolicy: new Map() };
    const maskJobs = { otherwise: 1, byPolicy: new Map() };
    const options = {
      assumptions: {
        durations,
        maskJobs,
        failures: { otherwise: 0, byPolicy: new Map() },
        requestMs: minute,
        seed: "1",
      },
      concurrencyOf: () => 1,
    };
    // One worker: a at 10, b at 11, c at 12, just when b's run is over.
    expect(tellTasks(simulateMinutes({ policies, to: 10, options }))).toEqual([
      "10 started at 10",
      "10 started at 11",
      "10 started at 12",
    ]);
  });

  it("holds a sync job while its run is followed: until accepted or the deadline", () => {
    const until = (follow: "accepted" | "settled", deadlineMs: number) =>
      everyMinutes(10, {
        overlap: "skip",
        follow: { ...followWaits, until: follow, deadlineMs, conflictsMax: undefined },
      });
    const accepted = totalsOf({ policies: [until("accepted", 120 * minute)], to: 30, run: 15 });
    expect(accepted.all).toMatchObject({ runs: 3, atOnce: 2, overlaps: 2 });
    const given = totalsOf({ policies: [until("settled", 12 * minute)], to: 30, run: 25 });
    // 10–35, let go at 22; 20 is skipped; 30 starts beside the first one.
    expect(given.all).toMatchObject({ runs: 2, atOnce: 1, overlaps: 2 });
    expect(given.problems.map(({ problem }) => problem)).toEqual(["timed-out", "overlap", "at-once", "timed-out"]);
  });

  it("keeps a deletion from a run, and a run from a deletion", () => {
    const run = everyMinutes(10, { overlap: "skip", action: { kind: "run", syncJobs: [3] } });
    const once = { kind: "once", timezone: "UTC", dst: { gap: "next", overlap: "first" }, spreadMs: 0 } as const;
    const retire = (at: string, overlap: Policy["overlap"]) => {
      const action = { kind: "delete", syncJob: 3, name: "Contracts" } as const;
      return testPolicy({ name: "retire", schedule: { ...once, at: `2026-11-21T00:${at}:00` }, overlap, action });
    };
    const told = (at: string, overlap: Policy["overlap"], requestMs = 0) => {
      const durations = { otherwise: { leastMs: 15 * minute, mostMs: 15 * minute }, byPolicy: new Map() };
      const others = {
        maskJobs: { otherwise: 1, byPolicy: new Map() },
        failures: { otherwise: 0, byPolicy: new Map() },
      };
      const options = { assumptions: { durations, ...others, requestMs, seed: "1" } };
      return tellTasks(simulateMinutes({ policies: [run, retire(at, overlap)], to: 20, options }));
    };
    expect(told("15", "skip")).toEqual(["10 started at 10", "15 overlap at 15", "20 overlap at 20"]);
    // By the file's defaults: a deletion asks all the same.
    expect(told("15", "allow")).toEqual(["10 started at 10", "15 overlap at 15", "20 overlap at 20"]);
    expect(told("15", "queue")).toEqual(["10 started at 10", "20 overlap at 20", "15 started at 25"]);
    expect(told("05", "skip", 6 * minute)).toEqual(["5 started at 5", "10 overlap at 10", "20 started at 20"]);
  });

  it("is about one sync job of one repository at one service, for any policy", () => {
    const policies = [
      everyMinutes(10, { name: "first", action: { kind: "run", syncJobs: [1, 2] } }),
      everyMinutes(10, { name: "second", action: { kind: "run", syncJobs: [2] } }),
      everyMinutes(10, { name: "elsewhere", repository: "Sales", action: { kind: "run", syncJobs: [2] } }),
      everyMinutes(10, { name: "waker", action: { kind: "activate", syncJobs: [2] } }),
      everyMinutes(10, { name: "looker", action: { kind: "poll", list: "approvals", expect: undefined } }),
    ];
    const { byPolicy } = totalsOf({ policies, to: 10 });
    expect([...byPolicy].map(([name, { runs }]) => `${name} ${runs}`)).toEqual([
      "first 2",
      "second 0",
      "elsewhere 1",
      "waker 1",
      "looker 1",
    ]);
  });
});
