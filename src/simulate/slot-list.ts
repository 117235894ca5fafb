// The slots of a simulation and what became of each, a row a slot: for `simulate --list` and for
// the time line of `plan`.

import type { Policy } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { describeSkip } from "../schedule/closed-times.ts";
import type { SimulatedPlan, SimulationEvent } from "./events.ts";

/** One slot with the counts of its tasks. `detail`: the reason, or the slot that covers it. */
export interface SlotRow {
  readonly policy: Policy;
  readonly slotMs: number;
  /** When the scheduler planned it, or its predecessor ended. */
  readonly plannedMs: number;
  readonly state: SimulatedPlan["state"];
  readonly detail: string;
  runs: number;
  overlap: number;
  tooLate: number;
  atOnce: number;
  longestWaitMs: number;
  /** When the last of its tasks is over, as far as durations are known. */
  endsMs: number | undefined;
  /** What the runs of its sync jobs do to each other; the first 20. */
  readonly clashes: Clash[];
}

/**
 * A task that meets a run of its sync job, or comes too late, and what becomes of it. `by`: the
 * task of that run, where it is known.
 */
export interface Clash {
  readonly target: string;
  readonly what: "skipped" | "waits" | "at-once" | "too-late";
  readonly by: string | undefined;
  readonly waitMs: number;
}

const clashesMax = 20;

/** The list of all slots, in the order of planning. */
export class SlotList {
  readonly rows: SlotRow[] = [];
  /** Started slots, by policy and instant: events of their tasks follow. */
  readonly #started = new Map<string, SlotRow>();
  readonly #rowsMax: number;

  /** `rowsMax`: the most slots before `add` throws. */
  constructor(rowsMax: number) {
    this.#rowsMax = rowsMax;
  }

  /** @throws UsageError when the list gets too long. */
  add(event: SimulationEvent): void {
    if (event.event === "planned") {
      if (this.rows.length + event.plans.length > this.#rowsMax)
        throw new UsageError(`--list prints at most ${this.#rowsMax} slots: take a shorter time, or one policy`);
      for (const plan of event.plans) this.#plan(event.policy, plan, event.nowMs);
      return;
    }
    const row = this.#started.get(`${event.policy.name} ${event.task.slotMs}`);
    if (row === undefined || event.event === "masks") return;
    if (event.event === "started") {
      row.runs += 1;
      if (event.atOnceWith !== undefined) row.atOnce += 1;
      row.longestWaitMs = Math.max(row.longestWaitMs, event.turnMs + event.behindMs);
      row.endsMs = Math.max(row.endsMs ?? 0, event.endsAtMs);
    } else if (event.reason === "overlap") row.overlap += 1;
    else row.tooLate += 1;
    const clash = clashOf(event);
    if (clash !== undefined && row.clashes.length < clashesMax) row.clashes.push(clash);
  }

  #plan(policy: Policy, plan: SimulatedPlan, plannedMs: number): void {
    const { slotMs, state } = plan;
    const counts = { runs: 0, overlap: 0, tooLate: 0, atOnce: 0, longestWaitMs: 0, endsMs: undefined, clashes: [] };
    const row = { policy, slotMs, plannedMs, state, detail: detailOf(plan, policy, plannedMs), ...counts };
    this.rows.push(row);
    if (state === "started") this.#started.set(`${policy.name} ${slotMs}`, row);
  }
}

function clashOf(event: Extract<SimulationEvent, { readonly event: "started" | "not-started" }>): Clash | undefined {
  const { target } = event.task;
  if (event.event === "not-started") {
    const what = event.reason === "overlap" ? "skipped" : "too-late";
    return { target, what, by: event.holder, waitMs: 0 };
  }
  const { atOnceWith: by, behindMs: waitMs } = event;
  if (by !== undefined) return { target, what: "at-once", by, waitMs };
  return waitMs > 0 ? { target, what: "waits", by: undefined, waitMs } : undefined;
}

function detailOf(plan: SimulatedPlan, { after }: Policy, plannedMs: number): string {
  switch (plan.state) {
    case "started":
      if (after !== undefined) return `at ${new Date(plannedMs).toISOString().slice(0, 19)}Z, after ${after.policy}`;
      return plan.covers.length === 0 ? "" : `covers ${plan.covers.length} older`;
    case "coalesced":
      return new Date(plan.into).toISOString();
    case "skipped":
      return describeSkip(plan);
    case "missed":
      return "note" in plan ? `${plan.reason}: ${plan.note}` : plan.reason;
  }
}
