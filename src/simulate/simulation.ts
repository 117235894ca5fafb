// The simulation: policies on a virtual clock, from the scheduler's ticks to the end of the last
// run. Pure and lazy: it yields one event after the other and keeps only open tasks.
//
// tick (virtual-ticks.ts) ─▶ planned slots ─▶ tasks ─▶ a free worker ─▶ overlap rule ─▶ started
//                               ▲                                                        │
//                               └───── slots of followers (chain-slot.ts) ◀───── ended ◀─┘
import { type Policy, type PolicySet, targetsOf } from "../config/policy-set.ts";
import { UsageError } from "../core/errors.ts";
import { getOrMake } from "../core/get-or-make.ts";
import { MinHeap } from "../core/min-heap.ts";
import type { OutcomeStatus } from "../model/outcome.ts";
import type { PredecessorState } from "../model/slot-record.ts";
import { isFromMasks, type Task, taskId } from "../model/task.ts";
import { createFollowerMap } from "../schedule/chains.ts";
import type { FollowerPlan } from "../schedule/plan-follower.ts";
import { tasksOf, tasksOfPlan, toRecords, toTasks } from "../schedule/slot-tasks.ts";
import { type Assumptions, durationOf, isFailing, valueFor } from "./assumptions.ts";
import { ChainSlot } from "./chain-slot.ts";
import type { SimulatedPlan, SimulatedTask, SimulationEvent } from "./events.ts";
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

/** The concurrency of each service of a set. */
export function concurrencyIn({ services }: PolicySet): SimulationOptions["concurrencyOf"] {
  return (service) => services.get(service)?.concurrency ?? 1;
}

/**
 * Simulates policies; one with neither a schedule nor a predecessor plans nothing. A follower whose
 * predecessor is not among them starts with its chain.
 * @throws UsageError when there are more slots than `slotsMax`.
 */
export function* simulate(
  policies: readonly Policy[],
  options: SimulationOptions,
): Generator<SimulationEvent, void, void> {
  // Refuses what is surely too much at once, instead of a million slots later.
  if (intervalSlots(policies, options.time) > options.slotsMax) throw new UsageError(tooMany(options.slotsMax));
  const simulation = new Simulation(policies, options);
  for (const tick of virtualTicks(policies, options.time, (nowMs) => simulation.inputsAt(nowMs))) {
    simulation.advance(tick.nowMs);
    simulation.plan(tick);
    if (simulation.eventsCount >= eventsAtOnce) yield* simulation.takeEvents();
  }
  do {
    yield* simulation.takeEvents();
  } while (simulation.step(Number.POSITIVE_INFINITY));
}

/** Events are handed over so many at a time, rather than in a list for each slot. */
const eventsAtOnce = 100;

function tooMany(slotsMax: number): string {
  return `there are more than ${slotsMax} slots, which is the most: take a shorter time, or name one policy`;
}

/** The slots of policies with an interval and of their followers, counted without a calendar. */
function intervalSlots(policies: readonly Policy[], { fromMs, toMs }: VirtualTime): number {
  const followers = createFollowerMap(policies);
  let slots = 0;
  for (const { name, schedule } of policies) {
    if (schedule?.kind !== "every") continue;
    slots += ((toMs - fromMs) / schedule.everyMs - 1) * (1 + followers.all(name).length);
  }
  return slots;
}

/** A task; `slot`: that of its policy, where others follow it. */
interface ArrivedTask extends SimulatedTask {
  readonly slot: ChainSlot | undefined;
}

/** A queued task. `beganAtMs`: when a worker takes it. */
interface QueuedTask extends ArrivedTask {
  readonly arrivedAtMs: number;
  readonly beganAtMs: number;
}

class Simulation {
  readonly #options: SimulationOptions;
  readonly #followersOf: (policy: string) => readonly Policy[];
  /**
   * Future steps. At one instant ends come before beginnings: ranks are twice the instant, plus
   * one.
   */
  readonly #later = new MinHeap<(atMs: number) => void>();
  /** When each worker of a service is free again, by its queue. */
  readonly #workers = { polls: new Map<string, MinHeap<undefined>>(), actions: new Map<string, MinHeap<undefined>>() };
  readonly #syncJobs = new Map<string, SyncJobQueue<QueuedTask>>();
  /**
   * Of the policies that others need, when each target last ended well: assumed at the beginning,
   * too.
   */
  readonly #successes = new Map<string, Map<string, number>>();
  #events: SimulationEvent[] = [];
  #slots = 0;

  constructor(policies: readonly Policy[], options: SimulationOptions) {
    this.#options = options;
    const needed = new Set(policies.flatMap(({ needs }) => needs?.policy ?? []));
    for (const name of needed) this.#successes.set(name, new Map());
    for (const { name, action } of policies)
      for (const target of targetsOf(action) ?? []) this.#successes.get(name)?.set(target, options.time.fromMs);
    const followers = Map.groupBy(policies, ({ after }) => after?.policy);
    this.#followersOf = (policy) => followers.get(policy) ?? [];
  }

  /** Takes in a tick: emits its plans, queues its tasks, and lets followers wait. */
  plan({ policy, plans, nowMs }: VirtualTick): void {
    this.#emitPlans(policy, plans, nowMs);
    if (this.#followersOf(policy.name).length > 0) this.#planChain(policy, plans, nowMs);
    else
      for (const plan of plans)
        for (const task of tasksOfPlan(policy, plan)) this.#arrive({ policy, task, slot: undefined }, nowMs);
  }

  #planChain(policy: Policy, plans: VirtualTick["plans"], nowMs: number): void {
    const slots = new Map<number, ChainSlot>();
    const followersOf = this.#followersOf;
    for (const record of toRecords(policy, plans)) {
      const slot = new ChainSlot(policy, { slotMs: record.slotMs, openedMs: nowMs, followersOf });
      slot.record(record);
      slots.set(record.slotMs, slot);
    }
    for (const task of toTasks(policy, plans)) this.#arrive({ policy, task, slot: slots.get(task.slotMs) }, nowMs);
    const unstarted = plans.filter(({ state }) => state !== "started");
    this.#resolve(
      unstarted.flatMap(({ slotMs }) => slots.get(slotMs)?.followers ?? []),
      nowMs,
    );
    const waiting = [...slots.values()].flatMap((slot) => slot.allFollowers());
    for (const [lateAtMs, late] of Map.groupBy(waiting, (slot) => slot.lateAtMs))
      this.#schedule(lateAtMs, "beginning", (atMs) => this.#resolve(late, atMs));
  }

  /** Does all steps up to this instant. */
  advance(untilMs: number): void {
    while (this.step(untilMs));
  }

  /** When the policies that others need last succeeded, after all steps up to this instant. */
  inputsAt(nowMs: number): ReadonlyMap<string, number> {
    this.advance(nowMs);
    return this.#inputs();
  }

  /** Does the next step, if it comes by then. */
  step(untilMs: number): boolean {
    const rank = this.#later.leastRank;
    if (rank === undefined || rank > 2 * untilMs + 1) return false;
    this.#later.pop()?.(Math.floor(rank / 2));
    return true;
  }

  /** An input that is not simulated is always fresh. */
  #inputs(): ReadonlyMap<string, number> {
    return new Map([...this.#successes].map(([name, ends]) => [name, Math.min(...ends.values())]));
  }

  /** How many events there are to take. */
  get eventsCount(): number {
    return this.#events.length;
  }

  /** Removes and returns the events since the last call. */
  takeEvents(): readonly SimulationEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  #schedule(atMs: number, what: "end" | "beginning", happen: (atMs: number) => void): void {
    this.#later.push(2 * atMs + (what === "end" ? 0 : 1), happen);
  }

  /**
   * Plans the slots that need not wait any more; each round goes one policy further down a chain.
   */
  #resolve(waiting: readonly ChainSlot[], nowMs: number): void {
    let now = waiting;
    while (now.length > 0) {
      const states = now.map((slot) => slot.predecessorAt(nowMs));
      now = now.flatMap((slot, index) => this.#planFollower(slot, states[index] ?? { state: "open" }, nowMs));
    }
  }

  /** Plans one of them. Returns the slots that are certain now, since it does not start. */
  #planFollower(slot: ChainSlot, predecessor: PredecessorState, nowMs: number): readonly ChainSlot[] {
    const inputs = slot.policy.needs === undefined ? undefined : this.#inputs();
    const plan = slot.resolve(predecessor, { nowMs, pauses: this.#options.time.pauses, inputs });
    if (plan === undefined) return [];
    const { policy, slotMs } = slot;
    this.#emitPlans(policy, [toSimulatedPlan(slotMs, plan, predecessor)], nowMs);
    if (plan.state !== "started") return slot.followers;
    const due = { slotMs, dueMs: nowMs, origin: "schedule", covers: [] } as const;
    for (const task of tasksOf(policy, due)) this.#arrive({ policy, task, slot }, nowMs);
    return [];
  }

  /** Queues a task. */
  #arrive({ policy, task, slot }: ArrivedTask, nowMs: number): void {
    const { service, kind } = task;
    const workers = this.#workersOf(kind === "poll" ? "polls" : "actions", service);
    const beganAtMs = Math.max(nowMs, workers.leastRank ?? nowMs);
    workers.pop();
    workers.push(beganAtMs + this.#options.assumptions.requestMs, undefined);
    const queued = { policy, task, slot, arrivedAtMs: nowMs, beganAtMs };
    if (beganAtMs === nowMs) this.#begin(queued);
    else this.#schedule(beganAtMs, "beginning", () => this.#begin(queued));
  }

  #workersOf(queue: "polls" | "actions", service: string): MinHeap<undefined> {
    return getOrMake(this.#workers[queue], service, () => {
      const workers = new MinHeap<undefined>();
      for (let worker = 0; worker < this.#options.concurrencyOf(service); worker += 1) workers.push(0, undefined);
      return workers;
    });
  }

  #begin(queued: QueuedTask): void {
    const { policy, task, beganAtMs } = queued;
    const isDelete = task.kind === "delete";
    const syncJob = isDelete || task.kind === "run" ? this.#syncJobOf(queued) : undefined;
    const isBusy = (isDelete || policy.overlap !== "allow") && syncJob?.holder !== undefined;
    if (beganAtMs > task.startByMs) this.#drop(queued, beganAtMs, "too-late");
    else if (isFromMasks(task)) this.#readMasks(queued);
    else if (!isBusy) this.#start(queued, beganAtMs, syncJob);
    else if (policy.overlap === "queue") syncJob?.wait(queued);
    else this.#drop(queued, beganAtMs, "overlap");
  }

  /** `syncJob`: of a run or a deletion. */
  #start(queued: QueuedTask, nowMs: number, syncJob: SyncJobQueue<QueuedTask> | undefined): void {
    const { policy, task, slot, arrivedAtMs, beganAtMs } = queued;
    const { assumptions } = this.#options;
    const answeredAtMs = nowMs + assumptions.requestMs;
    const isFollowed = task.kind === "run" && policy.follow.until !== "accepted";
    const endsAtMs = task.kind === "run" ? this.#endOf(policy, task, nowMs) : answeredAtMs;
    const heldUntilMs = isFollowed ? Math.min(endsAtMs, nowMs + policy.follow.deadlineMs) : answeredAtMs;
    const atOnceWith = task.kind === "run" ? syncJob?.run({ id: task.id, untilMs: endsAtMs }, nowMs) : undefined;
    // A deletion, a followed start and one without `overlap: allow` take the lease before their
    // request; others take none.
    const isHolding = isFollowed || task.kind === "delete" || policy.overlap !== "allow";
    if (isHolding && syncJob?.hold({ id: task.id, untilMs: heldUntilMs })) this.#releaseLater(syncJob, heldUntilMs);
    const isFailed = isFailing(assumptions, policy, task);
    const status = isFailed ? "failed" : statusOf(policy, endsAtMs <= heldUntilMs);
    this.#events.push({
      event: "started",
      policy,
      task,
      atMs: nowMs,
      endsAtMs,
      heldUntilMs,
      status,
      turnMs: beganAtMs - arrivedAtMs,
      behindMs: nowMs - beganAtMs,
      atOnceWith,
    });
    const ends = this.#successes.get(policy.name);
    if (ends !== undefined && (status === "succeeded" || status === "accepted"))
      this.#schedule(heldUntilMs, "end", (atMs) => ends.set(task.target, atMs));
    // After its end, so that its sync job is free again.
    if (slot !== undefined) this.#schedule(heldUntilMs, "beginning", (atMs) => this.#end(queued, status, atMs));
  }

  /** When a run ends: as long as is assumed, or earlier where that is known. */
  #endOf(policy: Policy, task: Task, nowMs: number): number {
    const { assumptions } = this.#options;
    const assumedMs = nowMs + durationOf(assumptions, policy, task);
    const endedAtMs = assumptions.endedAtMs?.(policy, task);
    return endedAtMs === undefined ? assumedMs : Math.max(nowMs, Math.min(assumedMs, endedAtMs));
  }

  /** A task has ended. The last one of a slot lets its followers begin. */
  #end({ task, slot }: ArrivedTask, status: OutcomeStatus, nowMs: number): void {
    if (slot?.endTask(task.target, status)) this.#resolve(slot.followers, nowMs);
  }

  #emitPlans(policy: Policy, plans: readonly SimulatedPlan[], nowMs: number): void {
    this.#slots += plans.length;
    if (this.#slots > this.#options.slotsMax) throw new UsageError(tooMany(this.#options.slotsMax));
    this.#events.push({ event: "planned", nowMs, policy, plans });
  }

  /** Of all that a start knows, only its sync job stays until it ends. */
  #releaseLater(syncJob: SyncJobQueue<QueuedTask>, untilMs: number): void {
    this.#schedule(untilMs, "end", (atMs) => this.#release(syncJob, atMs));
  }

  #release(syncJob: SyncJobQueue<QueuedTask>, nowMs: number): void {
    const heir = syncJob.release(nowMs);
    if (heir !== undefined) this.#releaseLater(syncJob, heir.untilMs);
    while (syncJob.holder === undefined) {
      const queued = syncJob.nextWaiting();
      if (queued === undefined) return;
      if (nowMs > queued.task.startByMs) this.#drop(queued, nowMs, "too-late");
      else this.#start(queued, nowMs, syncJob);
    }
  }

  #drop(queued: QueuedTask, atMs: number, reason: "overlap" | "too-late"): void {
    const { policy, task } = queued;
    const holder = reason === "overlap" ? this.#syncJobOf(queued).holder : undefined;
    this.#events.push({ event: "not-started", policy, task, atMs, reason, holder });
    this.#end(queued, reason === "overlap" ? "skipped" : "missed", atMs);
  }

  /** Reads the masks, and queues a task for each sync job that they are assumed to name. */
  #readMasks(queued: QueuedTask): void {
    const { policy, task, slot, beganAtMs } = queued;
    const { assumptions } = this.#options;
    this.#events.push({ event: "masks", policy, task, atMs: beganAtMs });
    const count = valueFor(assumptions.maskJobs, policy);
    this.#schedule(beganAtMs + assumptions.requestMs, "beginning", (nowMs) => {
      slot?.fanOut(Math.max(1, count));
      if (count === 0) this.#end(queued, "not-started", nowMs);
      for (let index = 1; index <= count; index += 1) {
        // Invented sync jobs of this policy alone: they never overlap with those of another one.
        const target = `${policy.name}-mask-${index}`;
        this.#arrive({ policy, slot, task: { ...task, target, id: taskId({ ...task, target }) } }, nowMs);
      }
    });
  }

  #syncJobOf({ task }: SimulatedTask): SyncJobQueue<QueuedTask> {
    // A line break stands in no name, nor in a target.
    const key = `${task.service}\n${task.repository ?? ""}\n${task.target}`;
    return getOrMake(this.#syncJobs, key, () => new SyncJobQueue<QueuedTask>());
  }
}

function statusOf({ action, follow }: Policy, isOverInTime: boolean): OutcomeStatus {
  if (action.kind !== "run") return "succeeded";
  if (follow.until === "accepted") return "accepted";
  return isOverInTime ? "succeeded" : "timed-out";
}

function toSimulatedPlan(slotMs: number, plan: FollowerPlan, predecessor: PredecessorState): SimulatedPlan {
  const { state, detail, note } = plan;
  if (state === "started") return { slotMs, state, covers: [] };
  if (state === "missed") return { slotMs, state, reason: "after-within", note };
  return { slotMs, state, reason: detail, note, isProblem: detail === "predecessor" && predecessor.state === "ended" };
}

interface OngoingRun {
  readonly id: string;
  readonly untilMs: number;
}

/** The lease of one sync job, and the tasks that wait for it. */
class SyncJobQueue<Waiting> {
  #holder: OngoingRun | undefined;
  /** Runs that started beside the holder of the lease, in the order of their starts. */
  #beside: OngoingRun[] = [];
  readonly #waiting: Waiting[] = [];
  /** The run that will be over last; undefined: all are over. */
  #latest: OngoingRun | undefined;

  /** The task that holds the lease; undefined when it is free. */
  get holder(): string | undefined {
    return this.#holder?.id;
  }

  wait(waiting: Waiting): void {
    this.#waiting.push(waiting);
  }

  /** Notes a run. Returns another run that still goes on. */
  run(run: OngoingRun, nowMs: number): string | undefined {
    const latest = this.#latest;
    if (latest === undefined || run.untilMs >= latest.untilMs) this.#latest = run;
    return latest !== undefined && latest.untilMs > nowMs ? latest.id : undefined;
  }

  /** Takes the lease, or goes on beside its holder. Returns whether the run has the lease. */
  hold(run: OngoingRun): boolean {
    if (this.#holder === undefined) this.#holder = run;
    else this.#beside.push(run);
    return this.#holder === run;
  }

  /** Ends the lease, and passes it to a run that goes on, if there is one. */
  release(nowMs: number): OngoingRun | undefined {
    if (this.#latest !== undefined && this.#latest.untilMs <= nowMs) this.#latest = undefined;
    if (this.#beside.length > 0) this.#beside = this.#beside.filter(({ untilMs }) => untilMs > nowMs);
    this.#holder = this.#beside.shift();
    return this.#holder;
  }

  /** Removes and returns the oldest waiting task. */
  nextWaiting(): Waiting | undefined {
    return this.#waiting.shift();
  }
}
