// Simulations for tests: minutes since an instant instead of milliseconds, and everything assumed
// that a test is not about.
import type { Policy } from "../../src/config/policy-set.ts";
import type { SimulationEvent } from "../../src/simulate/events.ts";
import { type SimulationOptions, simulate } from "../../src/simulate/simulation.ts";
import { followWaits, testPolicy } from "./policies.ts";

/** When simulations of tests begin. */
export const startMs = Date.parse("2026-11-21T00:00:00Z");

/** One minute. */
export const minute = 60_000;

/** A run policy every so many minutes. */
export function everyMinutes(minutes: number, changes: Partial<Policy> = {}): Policy {
  const schedule = { kind: "every", everyMs: minutes * minute, spreadMs: 0 } as const;
  const follow = { ...followWaits, until: "settled", deadlineMs: 1_440 * minute, conflictsMax: undefined } as const;
  return testPolicy({ schedule, follow, catchUpWindowMs: minutes * minute, ...changes });
}

/** What a test says of a simulation. Times are minutes since its start. */
export interface SimulationCase {
  readonly policies: readonly Policy[];
  readonly to: number;
  readonly run?: number;
  readonly outages?: readonly (readonly [number, number])[];
  readonly options?: Partial<SimulationOptions>;
}

/** Simulates to the end. Runs take `run` minutes (10 unless said), requests no time. */
export function simulateMinutes({ policies, to, run = 10, outages = [], options = {} }: SimulationCase) {
  const otherwise = { leastMs: run * minute, mostMs: run * minute };
  const assumptions = {
    durations: { otherwise, byPolicy: new Map() },
    maskJobs: { otherwise: 1, byPolicy: new Map() },
    failures: { otherwise: 0, byPolicy: new Map() },
    requestMs: 0,
    seed: "1",
  };
  const time = {
    fromMs: startMs,
    toMs: startMs + to * minute,
    outages: outages.map(([fromMinutes, toMinutes]) => ({
      fromMs: startMs + fromMinutes * minute,
      toMs: startMs + toMinutes * minute,
    })),
    pauses: [],
  };
  return [...simulate(policies, { time, assumptions, concurrencyOf: () => 1_000, slotsMax: 100_000, ...options })];
}

/** `10 started at 25`, `20 overlap at 20`: what became of each task, by its slot, in minutes. */
export function tellTasks(events: readonly SimulationEvent[]): string[] {
  return events.flatMap((event) => {
    if (event.event === "planned" || event.event === "masks") return [];
    const slot = (event.task.slotMs - startMs) / minute;
    const at = (event.atMs - startMs) / minute;
    return [`${slot} ${event.event === "started" ? "started" : event.reason} at ${at}`];
  });
}

/** `started`, `missed catch-up-none`: what became of each slot, by policy and slot in minutes. */
export function tellSlots(events: readonly SimulationEvent[]): string[] {
  return events.flatMap((event) => {
    if (event.event !== "planned") return [];
    return event.plans.map((plan) => {
      const reason = "reason" in plan ? ` ${plan.reason}` : "";
      const stands = plan.state === "started" && plan.covers.length > 0 ? ` for ${plan.covers.length} more` : "";
      return `${(plan.slotMs - startMs) / minute} ${plan.state}${reason}${stands}`;
    });
  });
}
