// The simulation: policies on a virtual clock, from the scheduler's ticks to the end of the last
// run. Pure and lazy: it yields one event after the other and keeps only open tasks. Called by
// `simulate` and `plan`.
//
//   tick (virtual-ticks.ts) ─▶ planned slots ─▶ tasks ─▶ a free worker (Lane) ─▶ overlap rule (SimulatedSyncJob) ─▶ started ─▶ ended
//                                                 ▲                                                                          │
//                                                 └── slots of followers (simulated-chains.ts) ◀─────────────────────────────┘
//
// A policy with neither a schedule nor a predecessor plans nothing.
import type { Policy } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { MinHeap } from "../core/min-heap.ts";
import type { OutcomeStatus } from "../model/outcome.ts";
import { isFromMasks } from "../model/task.ts";
import { taskId } from "../model/task-id.ts";
import { toTasks } from "../schedule/slot-tasks.ts";
import { type Assumptions, durationOf, isFailing, valueFor } from "./assumptions.ts";
import type { SimulatedPlan, SimulatedTask, SimulationEvent } from "./events.ts";
import { type FollowedTask, SimulatedChains } from "./simulated-chains.ts";
import { type VirtualTick, type VirtualTime, virtualTicks } from "./virtual-ticks.ts";

/** The options of a simulation. */
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
  // Refuses what is surely too much at once, instead of a million slots later.
  if (intervalSlots(policies, options.time, chains) > options.slotsMax) throw new UsageError(tooMany(options.slotsMax));
  for (const tick of virtualTicks(policies, options.time)) {
    yield* simulation.advance(tick.nowMs);
    simulation.plan(tick);
    yield* simulation.takeEvents();
  }
  yield* simulation.advance(Number.POSITIVE_INFINITY);
}

function tooMany(slotsMax: number): string {
  return `there are more than ${slotsMax} slots, which is the most: take a shorter time, or one policy with --policy`;
}

/**
 * The slots of all policies with an interval and of their followers: these can be counted without a
 * calendar.
 */
function intervalSlots(policies: readonly Policy[], { fromMs, toMs }: VirtualTime, chains: SimulatedChains): number {
  let slots = 0;
  for (const policy of policies) {
    if (policy.schedule?.kind !== "every") continue;
    slots += ((toMs - fromMs) / policy.schedule.everyMs - 1) * (1 + chains.countFollowers(policy));
  }
  return slots;
}

/** A queued task. `beganAtMs`: when a worker takes it. */
interface QueuedTask extends SimulatedTask {
  readonly arrivedAtMs: number;
  readonly beganAtMs: number;
}

class Simulation {
  readonly #options: SimulationOptions;
  /**
   * Future steps. At one instant ends come before beginnings: ranks are twice the instant, plus one
   * for a beginning.
   */
  readonly #later = new MinHeap<{ readonly atMs: number; readonly happen: (atMs: number) => void }>();
  readonly #lanes = new Map<string, Lane>();
  readonly #syncJobs = new Map<string, SimulatedSyncJob<QueuedTask>>();
  readonly #chains: SimulatedChains;
  #events: SimulationEvent[] = [];
  #slots = 0;

  constructor(options: SimulationOptions, chains: SimulatedChains) {
    this.#options = options;
    this.#chains = chains;
  }

  /** Takes in a tick: emits its plans, queues its tasks, and lets followers wait. */
  plan(tick: VirtualTick): void {
    const { policy, plans, nowMs } = tick;
    this.#emitPlans(policy, plans, nowMs);
    const opened = this.#chains.open(tick);
    for (const task of toTasks(policy, plans)) this.arrive({ policy, task }, nowMs);
    this.#follow(this.#chains.unstarted(tick), nowMs);
    for (const [missedAtMs, slots] of Map.groupBy(opened, (one) => one.missedAtMs)) {
      const waiting = slots.map(({ slot }) => slot);
      this.#schedule(missedAtMs, "beginning", (atMs) => this.#follow(this.#chains.resolve(waiting, atMs), atMs));
    }
  }

  /** Does all steps up to this instant. */
  *advance(untilMs: number): Generator<SimulationEvent, void, void> {
    while ((this.#later.leastRank ?? Number.POSITIVE_INFINITY) <= 2 * untilMs + 1) {
      const next = this.#later.pop();
      if (next === undefined) return;
      next.happen(next.atMs);
      yield* this.takeEvents();
    }
  }

  /** Removes and returns the events since the last call. */
  takeEvents(): readonly SimulationEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** Queues a task. */
  arrive(arrived: SimulatedTask, nowMs: number): void {
    const { service, kind } = arrived.task;
    const key = `${service} ${kind === "poll" ? "polls" : "actions"}`;
    const lane = this.#lanes.get(key) ?? new Lane(this.#options.concurrencyOf(service));
    this.#lanes.set(key, lane);
    const beganAtMs = lane.take(nowMs, this.#options.assumptions.requestMs);
    const queued = { ...arrived, arrivedAtMs: nowMs, beganAtMs };
    if (beganAtMs === nowMs) this.#begin(queued);
    else this.#schedule(beganAtMs, "beginning", () => this.#begin(queued));
  }

  #schedule(atMs: number, what: "end" | "beginning", happen: (atMs: number) => void): void {
    this.#later.push(2 * atMs + (what === "end" ? 0 : 1), { atMs, happen });
  }

  #begin(queued: QueuedTask): void {
    const { policy, task, beganAtMs } = queued;
    const syncJob = task.kind === "run" ? this.#syncJobOf(queued) : undefined;
    const isBusy = policy.overlap !== "allow" && syncJob?.holder !== undefined;
    if (beganAtMs > task.startByMs) this.#drop(queued, beganAtMs, "too-late");
    else if (isFromMasks(task)) this.#readMasks(queued);
    else if (!isBusy) this.#start(queued, beganAtMs);
    else if (policy.overlap === "skip") this.#drop(queued, beganAtMs, "overlap");
    else syncJob?.wait(queued);
  }

  #start(queued: QueuedTask, nowMs: number): void {
    const { policy, task, arrivedAtMs, beganAtMs } = queued;
    const { assumptions } = this.#options;
    const answeredAtMs = nowMs + assumptions.requestMs;
    const isFollowed = task.kind === "run" && policy.follow.until !== "accepted";
    const endsAtMs = task.kind === "run" ? nowMs + durationOf(assumptions, policy, task) : answeredAtMs;
    const heldUntilMs = isFollowed ? Math.min(endsAtMs, nowMs + policy.follow.deadlineMs) : answeredAtMs;
    const syncJob = task.kind === "run" ? this.#syncJobOf(queued) : undefined;
    const atOnceWith = syncJob?.run({ id: task.id, untilMs: endsAtMs }, nowMs);
    // A start without `overlap: allow` takes the lease before its request, a followed one
    // afterwards; others take none.
    if (syncJob !== undefined && (isFollowed || policy.overlap !== "allow"))
      this.#hold(syncJob, { id: task.id, untilMs: heldUntilMs });
    const [turnMs, behindMs] = [beganAtMs - arrivedAtMs, nowMs - beganAtMs];
    const times = { atMs: nowMs, endsAtMs, heldUntilMs, turnMs, behindMs };
    const isFailed = isFailing(assumptions, policy, task);
    const status = isFailed ? "failed" : statusOf(policy, endsAtMs <= heldUntilMs);
    this.#events.push({ event: "started", policy, task, ...times, atOnceWith, status });
    // After its end, so that its sync job is free again.
    if (this.#chains.isFollowed(policy))
      this.#schedule(heldUntilMs, "beginning", (atMs) => this.#end(queued, status, atMs));
  }

  #end({ task }: SimulatedTask, status: OutcomeStatus, nowMs: number): void {
    this.#follow(this.#chains.ended(task, status, nowMs), nowMs);
  }

  #follow(followed: readonly FollowedTask[], nowMs: number): void {
    for (const one of followed) {
      this.#emitPlans(one.policy, [toSimulatedPlan(one)], nowMs);
      for (const task of one.tasks) this.arrive({ policy: one.policy, task }, nowMs);
    }
  }

  #emitPlans(policy: Policy, plans: readonly SimulatedPlan[], nowMs: number): void {
    this.#slots += plans.length;
    if (this.#slots > this.#options.slotsMax) throw new UsageError(tooMany(this.#options.slotsMax));
    this.#events.push({ event: "planned", nowMs, policy, plans });
  }

  #hold(syncJob: SimulatedSyncJob<QueuedTask>, run: { readonly id: string; readonly untilMs: number }): void {
    if (syncJob.hold(run)) this.#schedule(run.untilMs, "end", (atMs) => this.#release(syncJob, atMs));
  }

  #release(syncJob: SimulatedSyncJob<QueuedTask>, nowMs: number): void {
    const heir = syncJob.release(nowMs);
    if (heir !== undefined) this.#schedule(heir.untilMs, "end", (atMs) => this.#release(syncJob, atMs));
    while (syncJob.holder === undefined) {
      const queued = syncJob.nextWaiting();
      if (queued === undefined) return;
      if (nowMs > queued.task.startByMs) this.#drop(queued, nowMs, "too-late");
      else this.#start(queued, nowMs);
    }
  }

  #drop({ policy, task }: QueuedTask, atMs: number, reason: "overlap" | "too-late"): void {
    const holder = reason === "overlap" ? this.#syncJobOf({ policy, task }).holder : undefined;
    this.#events.push({ event: "not-started", policy, task, atMs, reason, holder });
    this.#end({ policy, task }, reason === "overlap" ? "skipped" : "missed", atMs);
  }

  /** Reads the masks, and queues a task for each sync job that they are assumed to name. */
  #readMasks({ policy, task, beganAtMs }: QueuedTask): void {
    const { assumptions } = this.#options;
    this.#events.push({ event: "masks", policy, task, atMs: beganAtMs });
    const count = valueFor(assumptions.maskJobs, policy);
    this.#schedule(beganAtMs + assumptions.requestMs, "beginning", (nowMs) => {
      this.#chains.fannedOut(task, Math.max(1, count));
      if (count === 0) this.#end({ policy, task }, "not-started", nowMs);
      for (let index = 1; index <= count; index += 1) {
        // Invented sync jobs of this policy alone: they never overlap with those of another one.
        const target = `${policy.name}-mask-${index}`;
        this.arrive({ policy, task: { ...task, target, id: taskId({ ...task, target }) } }, nowMs);
      }
    });
  }

  #syncJobOf({ task }: SimulatedTask): SimulatedSyncJob<QueuedTask> {
    const key = JSON.stringify([task.service, task.repository, task.target]);
    const known = this.#syncJobs.get(key);
    if (known !== undefined) return known;
    const syncJob = new SimulatedSyncJob<QueuedTask>();
    this.#syncJobs.set(key, syncJob);
    return syncJob;
  }
}

function statusOf({ action, follow }: Policy, isOverInTime: boolean): OutcomeStatus {
  if (action.kind !== "run") return "succeeded";
  if (follow.until === "accepted") return "accepted";
  return isOverInTime ? "succeeded" : "timed-out";
}

function toSimulatedPlan({ slotMs, plan, predecessor }: FollowedTask): SimulatedPlan {
  const { state, detail, note } = plan;
  if (state === "started") return { slotMs, state, covers: [] };
  if (state === "missed") return { slotMs, state, reason: detail, note };
  return { slotMs, state, reason: detail, note, isProblem: detail === "predecessor" && predecessor === "ended" };
}

/** One sync job: its lease, and the tasks that wait for it. `Waiting`: a waiting task. */
class SimulatedSyncJob<Waiting> {
  #holder: Holder | undefined;
  /** Runs that started beside the holder of the lease, in the order of their starts. */
  #followers: Holder[] = [];
  readonly #waiting: Waiting[] = [];
  /** The run that will be over last. */
  #latest: Holder | undefined;

  /** The task that holds the lease; undefined when it is free. */
  get holder(): string | undefined {
    return this.#holder?.id;
  }

  wait(waiting: Waiting): void {
    this.#waiting.push(waiting);
  }

  /** Notes a run. Returns another run that still goes on. */
  run(run: Holder, nowMs: number): string | undefined {
    const other = this.#latest !== undefined && this.#latest.untilMs > nowMs ? this.#latest.id : undefined;
    if (this.#latest === undefined || run.untilMs >= this.#latest.untilMs) this.#latest = run;
    return other;
  }

  /** Takes the lease, or queues as a run that goes on. Returns whether it holds the lease. */
  hold(run: Holder): boolean {
    if (this.#holder === undefined) this.#holder = run;
    else this.#followers.push(run);
    return this.#holder === run;
  }

  /** Ends the lease, and passes it to a run that goes on, if there is one. */
  release(nowMs: number): Holder | undefined {
    this.#followers = this.#followers.filter(({ untilMs }) => untilMs > nowMs);
    this.#holder = this.#followers.shift();
    return this.#holder;
  }

  /** Removes and returns the oldest waiting task. */
  nextWaiting(): Waiting | undefined {
    return this.#waiting.shift();
  }
}

/** The workers of one queue, first come first served. */
class Lane {
  /** When each worker is free again. */
  readonly #freeAtMs: number[];

  constructor(workers: number) {
    this.#freeAtMs = Array.from({ length: workers }, () => Number.NEGATIVE_INFINITY);
  }

  /** Occupies the worker that is free first. Returns from when on. Call it in the order of time. */
  take(nowMs: number, forMs: number): number {
    let first = 0;
    for (let worker = 1; worker < this.#freeAtMs.length; worker += 1) {
      if ((this.#freeAtMs[worker] ?? 0) < (this.#freeAtMs[first] ?? 0)) first = worker;
    }
    const atMs = Math.max(nowMs, this.#freeAtMs[first] ?? nowMs);
    this.#freeAtMs[first] = atMs + forMs;
    return atMs;
  }
}

/** A run that holds a sync job, or goes on beside the holder. */
interface Holder {
  readonly id: string;
  readonly untilMs: number;
}
