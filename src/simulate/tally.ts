// Counts what happened in a simulation, policy by policy, and keeps the first problems. Fed with events by `simulate`; decides nothing.
import type { Policy } from "../config/policy-set.ts";
import { onTimeMs, type SlotPlan } from "../schedule/plan-slots.ts";
import type { SimulationEvent } from "./events.ts";

type Skip = Extract<SlotPlan, { readonly state: "skipped" }>["reason"];
type Miss = Extract<SlotPlan, { readonly state: "missed" }>["reason"];

/** The counts of one policy, or of all. A slot counts once in `slots` and once in its ending; the rest are tasks, one a sync job or list. */
export interface Counts {
  slots: number;
  started: number;
  /** Started slots that were planned late: more than `onTimeMs` after their instant. */
  late: number;
  coalesced: number;
  readonly skipped: Record<Skip, number>;
  readonly missed: Record<Miss, number>;
  /** Tasks whose request went out. */
  runs: number;
  /** Tasks that were not started: their sync job was busy, or their turn came after their start-by time. */
  readonly notStarted: { overlap: number; "too-late": number };
  /** Tasks that waited behind another run of their sync job (overlap: queue), and for a free worker. */
  readonly waited: { behindRun: number; forWorker: number };
  longestWaitMs: number;
  /** Tasks that came while their sync job was still running, whatever came of it: skipped, made to wait, or started beside the other. */
  overlaps: number;
  /** Runs that started while another run of the same sync job was still going on. */
  atOnce: number;
}

/** One thing that somebody will not like. `target`: undefined when it is about the whole slot. */
export interface Problem {
  readonly policy: Policy;
  readonly slotMs: number;
  readonly target: string | undefined;
  readonly problem: "missed" | "overlap" | "too-late" | "at-once";
  readonly why: string;
}

/** Counts from nothing. */
export function noCounts(): Counts {
  return {
    slots: 0,
    started: 0,
    late: 0,
    coalesced: 0,
    skipped: { blackout: 0, holiday: 0, paused: 0, quarantine: 0 },
    missed: { "catch-up-none": 0, "outside-window": 0, "catch-up-cap": 0 },
    runs: 0,
    notStarted: { overlap: 0, "too-late": 0 },
    waited: { behindRun: 0, forWorker: 0 },
    longestWaitMs: 0,
    overlaps: 0,
    atOnce: 0,
  };
}

/** The tally of one simulation. */
export class Tally {
  readonly totals = noCounts();
  readonly byPolicy: ReadonlyMap<string, Counts>;
  readonly problems: Problem[] = [];
  problemsCount = 0;
  readonly #problemsMax: number;

  /** `problemsMax`: how many problems are kept; all are counted. */
  constructor(policies: readonly Policy[], problemsMax: number) {
    this.byPolicy = new Map(policies.map(({ name }) => [name, noCounts()]));
    this.#problemsMax = problemsMax;
  }

  add(event: SimulationEvent): void {
    const counts = [this.totals, this.byPolicy.get(event.policy.name)].filter((one) => one !== undefined);
    for (const one of counts) addTo(one, event);
    for (const problem of problemsOf(event)) {
      this.problemsCount += 1;
      if (this.problems.length < this.#problemsMax) this.problems.push(problem);
    }
  }
}

function addTo(counts: Counts, event: SimulationEvent): void {
  switch (event.event) {
    case "planned":
      for (const plan of event.plans) addPlan(counts, plan, event.nowMs);
      return;
    case "started":
      counts.runs += 1;
      if (event.behindMs > 0) counts.waited.behindRun += 1;
      if (event.turnMs > 0) counts.waited.forWorker += 1;
      counts.longestWaitMs = Math.max(counts.longestWaitMs, event.turnMs + event.behindMs);
      if (event.atOnceWith !== undefined) counts.atOnce += 1;
      if (event.atOnceWith !== undefined || event.behindMs > 0) counts.overlaps += 1;
      return;
    case "not-started":
      counts.notStarted[event.reason] += 1;
      if (event.reason === "overlap") counts.overlaps += 1;
      return;
    case "masks":
      return;
  }
}

function addPlan(counts: Counts, plan: SlotPlan, nowMs: number): void {
  counts.slots += 1;
  if (plan.state === "started" && nowMs - plan.slotMs > onTimeMs) counts.late += 1;
  if (plan.state === "skipped") counts.skipped[plan.reason] += 1;
  else if (plan.state === "missed") counts.missed[plan.reason] += 1;
  else counts[plan.state] += 1;
}

function problemsOf(event: SimulationEvent): Problem[] {
  if (event.event === "planned") {
    const missed = event.plans.filter((plan) => plan.state === "missed");
    return missed.map(({ slotMs, reason }) => {
      const why = `nobody planned it in time (${reason}, catchUp: ${event.policy.catchUp})`;
      return { policy: event.policy, slotMs, target: undefined, problem: "missed", why };
    });
  }
  if (event.event === "masks") return [];
  const about = { policy: event.policy, slotMs: event.task.slotMs, target: event.task.target };
  if (event.event === "started") {
    if (event.atOnceWith === undefined) return [];
    return [{ ...about, problem: "at-once", why: `starts while ${event.atOnceWith} is still going on` }];
  }
  const why =
    event.reason === "overlap" ? `${event.holder} is still running` : "its turn comes after its start-by time";
  return [{ ...about, problem: event.reason, why }];
}
