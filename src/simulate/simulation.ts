// The simulation: policies on a virtual clock, from the planner's looks to the end of the last run. Pure, and lazy: it tells one event
// after the other and keeps only what is going on. Called by `simulate` and `plan`.
//
//   look (virtual-looks.ts) ─▶ planned slots ─▶ tasks ─▶ a free worker (lanes.ts) ─▶ overlap rule (sync-job.ts) ─▶ started ─▶ ended
//                                                  ▲                                                                           │
//                                                  └── slots of policies that follow (simulated-chains.ts) ◀───────────────────┘
//
// A policy with neither a schedule nor a predecessor plans nothing.
import type { Policy } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { MinHeap } from "../core/min-heap.ts";
import { toTasks } from "../schedule/slot-tasks.ts";
import type { OutcomeStatus } from "../tasks/outcome.ts";
import { isFromMasks } from "../tasks/task.ts";
import { taskId } from "../tasks/task-id.ts";
import { type Assumptions, durationOf, isFailing, valueFor } from "./assumptions.ts";
import type { SimulatedPlan, SimulatedTask, SimulationEvent } from "./events.ts";
import { Lane } from "./lanes.ts";
import { type Followed, SimulatedChains } from "./simulated-chains.ts";
import { SyncJob } from "./sync-job.ts";
import { type VirtualLook, type VirtualTime, virtualLooks } from "./virtual-looks.ts";

/** What a simulation is made of. */
export interface SimulationOptions {
  readonly time: VirtualTime;
  readonly assumptions: Assumptions;
  /** How many tasks of a service a replica works on at a time. */
  readonly concurrencyOf: (service: string) => number;
  /** More slots than these end the simulation with an error. */
  readonly slotsMax: number;
}

/**
 * Simulates policies.
 * @throws UsageError when there are more slots than `slotsMax`.
 */
export function* simulate(
  policies: readonly Policy[],
  options: SimulationOptions,
): Generator<SimulationEvent, void, void> {
  const chains = new SimulatedChains(policies, options.time.pauses);
  const simulation = new Simulation(options, chains);
  // What is sure to be too much is refused at once, instead of a million slots later.
  if (intervalSlots(policies, options.time, chains) > options.slotsMax) throw new UsageError(tooMany(options.slotsMax));
  for (const look of virtualLooks(policies, options.time)) {
    yield* simulation.advance(look.nowMs);
    simulation.plan(look);
    yield* simulation.told();
  }
  yield* simulation.advance(Number.POSITIVE_INFINITY);
}

function tooMany(slotsMax: number): string {
  return `there are more than ${slotsMax} slots, which is the most: take a shorter time, or one policy with --policy`;
}

/** The slots of all policies with an interval, and of those that follow them, which need no calendar to be counted. */
function intervalSlots(policies: readonly Policy[], { fromMs, toMs }: VirtualTime, chains: SimulatedChains): number {
  let slots = 0;
  for (const policy of policies) {
    if (policy.schedule?.kind !== "every") continue;
    slots += ((toMs - fromMs) / policy.schedule.everyMs - 1) * (1 + chains.countFollowers(policy));
  }
  return slots;
}

/** A task on its way. `beganAtMs`: when a worker took it. */
interface Turn extends SimulatedTask {
  readonly arrivedAtMs: number;
  readonly beganAtMs: number;
}

class Simulation {
  readonly #options: SimulationOptions;
  /** What happens later. Ends come before beginnings at the same instant: ranks are twice the instant, plus one for a beginning. */
  readonly #later = new MinHeap<{ readonly atMs: number; readonly happen: (atMs: number) => void }>();
  readonly #lanes = new Map<string, Lane>();
  readonly #syncJobs = new Map<string, SyncJob<Turn>>();
  readonly #chains: SimulatedChains;
  #told: SimulationEvent[] = [];
  #slots = 0;

  constructor(options: SimulationOptions, chains: SimulatedChains) {
    this.#options = options;
    this.#chains = chains;
  }

  /** Slots are planned, and those of policies that follow begin to wait. */
  plan(look: VirtualLook): void {
    const { policy, plans, nowMs } = look;
    this.#tellPlans(policy, plans, nowMs);
    const opened = this.#chains.open(look);
    for (const task of toTasks(policy, plans)) this.arrive({ policy, task }, nowMs);
    this.#follow(this.#chains.unstarted(look), nowMs);
    for (const [missedAtMs, slots] of Map.groupBy(opened, (one) => one.missedAtMs)) {
      const waiting = slots.map(({ slot }) => slot);
      this.#schedule(missedAtMs, "beginning", (atMs) => this.#follow(this.#chains.look(waiting, atMs), atMs));
    }
  }

  /** Lets everything happen that does so up to this instant. */
  *advance(untilMs: number): Generator<SimulationEvent, void, void> {
    while ((this.#later.leastRank ?? Number.POSITIVE_INFINITY) <= 2 * untilMs + 1) {
      const next = this.#later.pop();
      if (next === undefined) return;
      next.happen(next.atMs);
      yield* this.told();
    }
  }

  /** Takes out what has happened since. */
  told(): readonly SimulationEvent[] {
    const told = this.#told;
    this.#told = [];
    return told;
  }

  /** A task comes into its queue. */
  arrive(arrived: SimulatedTask, nowMs: number): void {
    const { service, kind } = arrived.task;
    const key = `${service} ${kind === "poll" ? "polls" : "actions"}`;
    const lane = this.#lanes.get(key) ?? new Lane(this.#options.concurrencyOf(service));
    this.#lanes.set(key, lane);
    const beganAtMs = lane.take(nowMs, this.#options.assumptions.requestMs);
    const turn = { ...arrived, arrivedAtMs: nowMs, beganAtMs };
    if (beganAtMs === nowMs) this.#begin(turn);
    else this.#schedule(beganAtMs, "beginning", () => this.#begin(turn));
  }

  #schedule(atMs: number, what: "end" | "beginning", happen: (atMs: number) => void): void {
    this.#later.push(2 * atMs + (what === "end" ? 0 : 1), { atMs, happen });
  }

  #begin(turn: Turn): void {
    const { policy, task, beganAtMs } = turn;
    const syncJob = task.kind === "run" ? this.#syncJobOf(turn) : undefined;
    const isBusy = policy.overlap !== "allow" && syncJob?.holder !== undefined;
    if (beganAtMs > task.startByMs) this.#drop(turn, beganAtMs, "too-late");
    else if (isFromMasks(task)) this.#readMasks(turn);
    else if (!isBusy) this.#start(turn, beganAtMs);
    else if (policy.overlap === "skip") this.#drop(turn, beganAtMs, "overlap");
    else syncJob?.wait(turn);
  }

  #start(turn: Turn, nowMs: number): void {
    const { policy, task, arrivedAtMs, beganAtMs } = turn;
    const { assumptions } = this.#options;
    const answeredAtMs = nowMs + assumptions.requestMs;
    const isFollowed = task.kind === "run" && policy.follow.until !== "accepted";
    const endsAtMs = task.kind === "run" ? nowMs + durationOf(assumptions, policy, task) : answeredAtMs;
    const heldUntilMs = isFollowed ? Math.min(endsAtMs, nowMs + policy.follow.deadlineMs) : answeredAtMs;
    const syncJob = task.kind === "run" ? this.#syncJobOf(turn) : undefined;
    const atOnceWith = syncJob?.run({ id: task.id, untilMs: endsAtMs }, nowMs);
    // Only a start that was not allowed to overlap takes the lease before its request; any followed one takes it afterwards.
    if (syncJob !== undefined && (isFollowed || policy.overlap !== "allow"))
      this.#hold(syncJob, { id: task.id, untilMs: heldUntilMs });
    const [turnMs, behindMs] = [beganAtMs - arrivedAtMs, nowMs - beganAtMs];
    const times = { atMs: nowMs, endsAtMs, heldUntilMs, turnMs, behindMs };
    const isFailed = isFailing(assumptions, policy, task);
    const status = isFailed ? "failed" : statusOf(policy, endsAtMs <= heldUntilMs);
    this.#told.push({ event: "started", policy, task, ...times, atOnceWith, status });
    // After its end, so that its sync job is free again.
    if (this.#chains.isFollowed(policy))
      this.#schedule(heldUntilMs, "beginning", (atMs) => this.#end(turn, status, atMs));
  }

  #end({ task }: SimulatedTask, status: OutcomeStatus, nowMs: number): void {
    this.#follow(this.#chains.ended(task, status, nowMs), nowMs);
  }

  #follow(followed: readonly Followed[], nowMs: number): void {
    for (const one of followed) {
      this.#tellPlans(one.policy, [toSimulatedPlan(one)], nowMs);
      for (const task of one.tasks) this.arrive({ policy: one.policy, task }, nowMs);
    }
  }

  #tellPlans(policy: Policy, plans: readonly SimulatedPlan[], nowMs: number): void {
    this.#slots += plans.length;
    if (this.#slots > this.#options.slotsMax) throw new UsageError(tooMany(this.#options.slotsMax));
    this.#told.push({ event: "planned", nowMs, policy, plans });
  }

  #hold(syncJob: SyncJob<Turn>, run: { readonly id: string; readonly untilMs: number }): void {
    if (syncJob.hold(run)) this.#schedule(run.untilMs, "end", (atMs) => this.#release(syncJob, atMs));
  }

  #release(syncJob: SyncJob<Turn>, nowMs: number): void {
    const heir = syncJob.release(nowMs);
    if (heir !== undefined) this.#schedule(heir.untilMs, "end", (atMs) => this.#release(syncJob, atMs));
    while (syncJob.holder === undefined) {
      const turn = syncJob.nextWaiting();
      if (turn === undefined) return;
      if (nowMs > turn.task.startByMs) this.#drop(turn, nowMs, "too-late");
      else this.#start(turn, nowMs);
    }
  }

  #drop({ policy, task }: Turn, atMs: number, reason: "overlap" | "too-late"): void {
    const holder = reason === "overlap" ? this.#syncJobOf({ policy, task }).holder : undefined;
    this.#told.push({ event: "not-started", policy, task, atMs, reason, holder });
    this.#end({ policy, task }, reason === "overlap" ? "skipped" : "missed", atMs);
  }

  /** Reads the masks, and lets the sync jobs that they are assumed to name come into the queue. */
  #readMasks({ policy, task, beganAtMs }: Turn): void {
    const { assumptions } = this.#options;
    this.#told.push({ event: "masks", policy, task, atMs: beganAtMs });
    const count = valueFor(assumptions.maskJobs, policy);
    this.#schedule(beganAtMs + assumptions.requestMs, "beginning", (nowMs) => {
      this.#chains.expanded(task, Math.max(1, count));
      if (count === 0) this.#end({ policy, task }, "not-started", nowMs);
      for (let index = 1; index <= count; index += 1) {
        // Which ones they are nobody knows here: they are the policy's own, and overlap with those of no other policy.
        const target = `${policy.name}-mask-${index}`;
        this.arrive({ policy, task: { ...task, target, id: taskId({ ...task, target }) } }, nowMs);
      }
    });
  }

  #syncJobOf({ task }: SimulatedTask): SyncJob<Turn> {
    const key = JSON.stringify([task.service, task.repository, task.target]);
    const known = this.#syncJobs.get(key);
    if (known !== undefined) return known;
    const syncJob = new SyncJob<Turn>();
    this.#syncJobs.set(key, syncJob);
    return syncJob;
  }
}

function statusOf({ action, follow }: Policy, isOverInTime: boolean): OutcomeStatus {
  if (action.kind !== "run") return "succeeded";
  if (follow.until === "accepted") return "accepted";
  return isOverInTime ? "succeeded" : "timed-out";
}

function toSimulatedPlan({ slotMs, plan, predecessor }: Followed): SimulatedPlan {
  const { state, detail, note } = plan;
  if (state === "started") return { slotMs, state, covers: [] };
  if (state === "missed") return { slotMs, state, reason: detail, note };
  return { slotMs, state, reason: detail, note, isUnwished: detail === "predecessor" && predecessor === "ended" };
}
