import { describe, expect, it } from "vitest";
import type { After, Policy } from "../../../src/config/policy-set.ts";
import { SlotList } from "../../../src/simulate/slot-list.ts";
import { Totals } from "../../../src/simulate/totals.ts";
import { followWaits } from "../../support/policies.ts";
import { everyMinutes, minute, type SimulationCase, simulateMinutes, startMs } from "../../support/simulation.ts";

const first = (changes: Partial<Policy> = {}) =>
  everyMinutes(60, { name: "first", action: { kind: "run", syncJobs: [1, 2] }, ...changes });

/** A policy that follows another one; its chain begins with `first`. */
function follower(name: string, after: string, changes: Partial<Policy> & { following?: Partial<After> } = {}): Policy {
  const { following, ...rest } = changes;
  const { schedule: _, ...policy } = everyMinutes(60, { name, action: { kind: "run", syncJobs: [1] }, ...rest });
  const root = { name: "first", schedule: { kind: "every", everyMs: 60 * minute, spreadMs: 0 } } as const;
  return {
    ...policy,
    schedule: undefined,
    after: { policy: after, on: ["succeeded"], withinMs: 120 * minute, root, ...following },
  };
}

/**
 * `second 60 started at 70`, with the reason of a skip or a miss: every slot, in the order in which
 * it is planned.
 */
function tellPlanned(simulation: SimulationCase): string[] {
  return simulateMinutes(simulation).flatMap((event) =>
    event.event === "planned"
      ? event.plans.map((plan) => {
          const reason = "reason" in plan ? ` ${plan.reason}` : "";
          const note = "note" in plan ? `: ${plan.note}` : "";
          const [slot, at] = [plan.slotMs, event.nowMs].map((instantMs) => (instantMs - startMs) / minute);
          return `${event.policy.name} ${slot} ${plan.state}${reason} at ${Number(at?.toFixed(3))}${note}`;
        })
      : [],
  );
}

const assumed = (changes: object) => ({
  assumptions: {
    durations: { otherwise: { leastMs: 10 * minute, mostMs: 10 * minute }, byPolicy: new Map() },
    maskJobs: { otherwise: 1, byPolicy: new Map() },
    failures: { otherwise: 0, byPolicy: new Map() },
    requestMs: 0,
    seed: "1",
    ...changes,
  },
});

describe("a policy that follows another, in a simulation", () => {
  it("is due with its chain where its predecessor is not simulated", () => {
    const policies = [follower("fourth", "third"), follower("third", "second")];
    expect(tellPlanned({ policies, to: 119 })).toEqual(["third 60 started at 60", "fourth 60 started at 70"]);
  });

  it("starts when its predecessor's last run is over, on a free sync job", () => {
    const policies = [follower("third", "second"), follower("second", "first"), first()];
    expect(tellPlanned({ policies, to: 119 })).toEqual([
      "first 60 started at 60",
      "second 60 started at 70",
      "third 60 started at 80",
    ]);
    const totals = new Totals(policies, 10);
    for (const event of simulateMinutes({ policies, to: 119 })) totals.add(event);
    expect(totals.all).toMatchObject({ slots: 3, started: 3, late: 0, runs: 4, overlaps: 0 });
    expect(totals.problemsCount).toBe(0);
  });

  it("may begin exactly `within` after the slot, and is missed right after", () => {
    const of = (run: number, withinMinutes: number) =>
      tellPlanned({
        policies: [first(), follower("second", "first", { following: { withinMs: withinMinutes * minute } })],
        to: 60,
        run,
      });
    expect(of(30, 30).at(-1)).toBe("second 60 started at 90");
    expect(of(31, 30).at(-1)).toBe("second 60 missed after-within at 90: first had not ended");
  });

  it("is missed by its own `within`, also while the policy before it has not begun yet", () => {
    const policies = [
      first(),
      follower("second", "first"),
      follower("third", "second", { following: { withinMs: 15 * minute } }),
    ];
    expect(tellPlanned({ policies, to: 60, run: 20 })).toEqual([
      "first 60 started at 60",
      "third 60 missed after-within at 75: second had not ended",
      "second 60 started at 80",
    ]);
  });

  it("is missed by its own `within` where its predecessor is missed at that instant", () => {
    const following = { withinMs: 15 * minute };
    const policies = [first(), follower("second", "first", { following }), follower("third", "second", { following })];
    expect(tellPlanned({ policies, to: 60, run: 20 })).toEqual([
      "first 60 started at 60",
      "second 60 missed after-within at 75: first had not ended",
      "third 60 missed after-within at 75: second had not ended",
    ]);
  });

  it("is skipped with its followers when its predecessor does not start", () => {
    const closed = { timezone: "UTC", blackouts: [{ cron: "0 1 * * *", durationMs: minute }], holidays: [] };
    const policies = [first({ closed }), follower("second", "first"), follower("third", "second")];
    const told = tellPlanned({ policies, to: 60 });
    expect(told).toHaveLength(3);
    expect(told[0]).toMatch(/^first 60 skipped blackout at 60: /);
    expect(told[1]).toMatch(/^second 60 skipped predecessor at 60: first did not start: skipped \(blackout\): /);
    expect(told[2]).toBe("third 60 skipped predecessor at 60: second did not start: skipped (predecessor)");
    const totals = new Totals(policies, 10);
    for (const event of simulateMinutes({ policies, to: 60 })) totals.add(event);
    // Somebody wanted the first one skipped, so nothing of this is a problem.
    expect(totals.problems).toEqual([]);
    expect(totals.all.skipped).toMatchObject({ blackout: 1, predecessor: 2 });
  });

  it("gets a record for each slot that an outage coalesces or misses", () => {
    const policies = [first({ catchUpWindowMs: 60 * minute }), follower("second", "first")];
    expect(tellPlanned({ policies, to: 200, outages: [[50, 190]] })).toEqual([
      "first 60 coalesced at 190",
      "first 120 coalesced at 190",
      "first 180 started at 190",
      `second 60 skipped predecessor at 190: first did not start: coalesced (${new Date(startMs + 180 * minute).toISOString()})`,
      `second 120 skipped predecessor at 190: first did not start: coalesced (${new Date(startMs + 180 * minute).toISOString()})`,
      "second 180 started at 200",
    ]);
  });

  it("is skipped when a run before it is skipped, late or failed, unless `on` says so", () => {
    const blocker = everyMinutes(59, { name: "blocker", action: { kind: "run", syncJobs: [2] } });
    const taskOf = (target: number) => `first__run__${target}__${(startMs + 60 * minute) / 1_000}`;
    const of = (policies: readonly Policy[], more: Partial<SimulationCase> = {}) =>
      tellPlanned({ policies, to: 60, ...more }).filter((told) => told.startsWith("second"));
    // 2026-11-21 00:00Z is a multiple of 59 minutes plus 41: blocker is due at minute 18, so it is
    // asked for a run of 50 minutes.
    const overlapped = of([blocker, first(), follower("second", "first")], { run: 50 });
    expect(overlapped).toEqual([`second 60 skipped predecessor at 110: ${taskOf(2)} ended skipped`]);
    expect(
      of([blocker, first(), follower("second", "first", { following: { on: ["succeeded", "skipped"] } })], { run: 50 }),
    ).toEqual(["second 60 started at 110"]);
    const impatient = first({
      follow: { ...followWaits, until: "settled", deadlineMs: 5 * minute, conflictsMax: undefined },
    });
    expect(of([impatient, follower("second", "first")])).toEqual([
      `second 60 skipped predecessor at 65: ${taskOf(1)} ended timed-out, and 1 more`,
    ]);
    const failing = assumed({ failures: { otherwise: 0, byPolicy: new Map([["first", 1]]) } });
    expect(of([first(), follower("second", "first")], { options: failing })).toEqual([
      `second 60 skipped predecessor at 70: ${taskOf(1)} ended failed, and 1 more`,
    ]);
    expect(of([first(), follower("second", "first", { following: { on: ["failed"] } })], { options: failing })).toEqual(
      ["second 60 started at 70"],
    );
  });

  it("counts what follows an unwanted skip as a problem", () => {
    const policies = [first(), follower("second", "first")];
    const failing = assumed({ failures: { otherwise: 1, byPolicy: new Map() } });
    const totals = new Totals(policies, 10);
    for (const event of simulateMinutes({ policies, to: 60, options: failing })) totals.add(event);
    expect(totals.problems.map(({ policy, problem }) => `${policy.name} ${problem}`)).toEqual([
      "first failed",
      "first failed",
      "second skipped",
    ]);
    expect(totals.all.ended).toEqual({ failed: 2, "timed-out": 0 });
  });

  it("keeps its own blackouts and pauses, as they are when the predecessor ends", () => {
    const closed = { timezone: "UTC", blackouts: [{ cron: "10 1 * * *", durationMs: minute }], holidays: [] };
    const policies = [first(), follower("second", "first", { closed })];
    expect(tellPlanned({ policies, to: 60 }).at(-1)).toMatch(/^second 60 skipped blackout at 70/);
    expect(tellPlanned({ policies, to: 60, run: 11 }).at(-1)).toBe("second 60 started at 71");
    const pause = { v: 1, scope: "policy", name: "second", note: "n", actor: "a", endedBy: null } as const;
    const pauses = [{ ...pause, sinceMs: startMs + 70 * minute, untilMs: startMs + 71 * minute }];
    const time = { fromMs: startMs, toMs: startMs + 60 * minute, outages: [], pauses };
    const paused = { policies: [first(), follower("second", "first")], to: 60, options: { time } };
    expect(tellPlanned(paused).at(-1)).toBe("second 60 skipped paused at 70: n (a)");
  });

  it("waits for all sync jobs that masks name, and ends with them when they name none", () => {
    const masks = first({ action: { kind: "run", fromMasks: { type: "DocMask" } } });
    const durations = { otherwise: { leastMs: 10 * minute, mostMs: 20 * minute }, byPolicy: new Map() };
    const named = (count: number) =>
      assumed({ maskJobs: { otherwise: count, byPolicy: new Map() }, durations, requestMs: 0 });
    const policies = [masks, follower("second", "first")];
    const ends = simulateMinutes({ policies, to: 60, options: named(3) }).flatMap((event) =>
      event.event === "started" && event.policy.name === "first" ? [event.endsAtMs] : [],
    );
    expect(ends).toHaveLength(3);
    const second = simulateMinutes({ policies, to: 60, options: named(3) }).find(
      (event) => event.event === "started" && event.policy.name === "second",
    );
    expect(second).toMatchObject({ atMs: Math.max(...ends) });
    expect(tellPlanned({ policies, to: 60, options: named(0) }).at(-1)).toMatch(
      /^second 60 skipped predecessor at 60: .* ended not-started$/,
    );
  });

  it("a start that is not followed ends as accepted, once it is answered", () => {
    const accepted = first({
      follow: { ...followWaits, until: "accepted", deadlineMs: 60 * minute, conflictsMax: undefined },
    });
    const policies = [accepted, follower("second", "first", { following: { on: ["accepted"] } })];
    expect(tellPlanned({ policies, to: 60, options: assumed({ requestMs: minute }) }).at(-1)).toBe(
      "second 60 started at 61",
    );
  });

  it("is listed with the moment at which it began, and counted against the most slots", () => {
    const policies = [first(), follower("second", "first")];
    const list = new SlotList(100);
    for (const event of simulateMinutes({ policies, to: 60 })) list.add(event);
    expect(list.rows.map(({ policy, detail, runs }) => `${policy.name}, ${detail}, ${runs}`)).toEqual([
      "first, , 2",
      "second, at 2026-11-21T01:10:00Z, after first, 1",
    ]);
    const tooMany = () => simulateMinutes({ policies, to: 60 * 20, options: { slotsMax: 30 } });
    expect(tooMany).toThrow("there are more than 30 slots");
  });
});
