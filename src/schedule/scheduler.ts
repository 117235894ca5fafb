// The scheduler. At each tick, about once a second, it finds the policies that are due by Redis's
// clock, plans their slots, records them and the new watermarks atomically, and hands the tasks to
// the queue.
//
//   tick ─▶ due policies ─▶ slots after the watermark ─▶ plan (closed, paused, stale input, catch-up) ─▶ record + watermark ─▶ enqueue ─▶ confirm
//
// The tick is only an alarm clock: a late, repeated or lost one changes nothing but the latency.
import type { Policy } from "../config/policy-set.ts";
import { nextTurn, systemClock } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { errorText, stackOf } from "../core/errors.ts";
import type { EventFields, EventLog } from "../core/event-log.ts";
import { defined } from "../core/json.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import type { Loss, Watermark } from "../model/slot-record.ts";
import type { EnqueueTasks } from "../model/task-processing.ts";
import { Agenda, type Entry } from "./agenda.ts";
import type { Chains } from "./chains.ts";
import type { ReadPauses } from "./pause-reader.ts";
import { type PlannedEntry, planBatches } from "./plan-batches.ts";
import { goneAfterMs } from "./plan-follower.ts";
import type { PlanningMoment, ScheduledPlan } from "./plan-slots.ts";
import { type ReadInputs, readInputsOf, type SlotLedgerPort } from "./scheduler-ports.ts";
import { scheduleText } from "./slots.ts";
import { startTicker, type Ticker, tickMs } from "./tick.ts";

/** The dependencies of the scheduler. */
export interface SchedulerOptions {
  readonly policies: readonly Policy[];
  readonly ledger: SlotLedgerPort;
  readonly enqueue: EnqueueTasks;
  /** The pauses, read once a round; none unless given. */
  readonly pauses?: ReadPauses;
  /** How fresh the inputs of policies are; none is judged unless given. */
  readonly inputs?: ReadInputs;
  /** Whether slots may be planned now; slots due meanwhile are planned later. Default: always. */
  readonly mayPlan?: () => boolean;
  /** How often Redis changed or lost writes; each time renews all watermarks. Default: 0. */
  readonly redisChanges?: () => number;
  /** What Redis may have lost since an instant; undefined: not known as yet. Default: nothing. */
  readonly lossesSince?: (sinceMs: number) => Promise<readonly Loss[] | undefined>;
  /**
   * When this replica's policies became the newest; Infinity, the default: others may be newer, and
   * nothing is forgotten.
   */
  readonly newestSinceMs?: () => Promise<number>;
  /** Resolves the slots of policies that follow others; needed when there are any. */
  readonly chains?: Pick<Chains, "ended" | "sweep">;
  /**
   * Deletes other records of removed policies. Called every ten minutes; `isNewest`: what this
   * replica does not know is gone.
   */
  readonly alsoTidy?: (moment: { readonly nowMs: number; readonly isNewest: boolean }) => Promise<void>;
  /** Called after each complete round. */
  readonly onRound?: () => void;
  readonly log: EventLog;
}

const sweepEveryMs = 10_000;
const unqueuedForMs = 5_000;
const tidyEveryMs = 600_000;
/** Parts of a backlog that one round plans while changed policies wait for it. */
const backlogPartsMax = 20;
/** After how long a policy is planned here again that failed, or that another replica planned. */
const againAfterMs = 60_000;
/** The most batches in flight: while Redis records one, the next is planned. */
const batchesAtOnce = 3;
/** The most batches that are not logged yet: those of 10,000 policies with one slot each. */
const unloggedBatchesMax = 50;

/** The planned slots of a batch that are still to be logged, and when their tasks were queued. */
interface QueuedBatch {
  readonly entries: readonly PlannedEntry[];
  readonly queuedAtMs: number;
}

/** The scheduler: plans slots at each tick. Any number of replicas may have one. */
export class Scheduler implements Component {
  readonly name = "scheduler";
  readonly #options: SchedulerOptions;
  readonly #agenda = new Agenda();
  #policies: readonly Policy[];
  /** Whether each policy is on the agenda by its own schedule. */
  #isAdopted = false;
  /** The list that is on the agenda; some of its policies by an older schedule, or superseded. */
  #listOnAgenda: readonly Policy[] | undefined;
  #tick: Ticker | undefined;
  #busy: Promise<void> | undefined;
  readonly #stopping = new AbortController();
  #sweptAtMs = 0;
  #tidiedAtMs = 0;
  #failing = false;
  /** Policies that could not be recorded by a mistake, and until when they are left out. */
  readonly #faulty = new Map<string, number>();
  /** Policies that another replica plans by another schedule. */
  readonly #superseded = new Set<string>();
  /** Policies that are in no file any more: it may be away for a moment only. */
  readonly #missing = new Map<string, { readonly atMs: number; readonly schedule: string }>();
  #planAgainAtMs = 0;
  /** The changes of Redis before the watermarks were read. */
  #redisChangesKnown = 0;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#policies = options.policies;
  }

  async start(): Promise<void> {
    this.#tick = startTicker(
      () => this.#onTick(),
      () => this.#options.log.warn("tick.renewed"),
    );
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#tick?.stop();
    await this.#busy;
  }

  /**
   * Adopts a new list of policies in the next round. A new policy begins then; a changed schedule
   * after what was due under the old one. A removed policy is forgotten after ten minutes; one that
   * is back by then makes up for its slots.
   */
  adopt(policies: readonly Policy[]): void {
    this.#policies = policies;
    this.#isAdopted = false;
  }

  /** One round: plans what is due. Called by the tick; tests call it directly. */
  async runOnce(): Promise<void> {
    if (this.#options.mayPlan?.() === false) return;
    const nowMs = await this.#options.ledger.nowMs();
    // Read after the time, so that no pause that holds at a due slot is missed.
    const moment = { nowMs, pauses: (await this.#options.pauses?.(nowMs)) ?? [] };
    const redisChanges = this.#options.redisChanges?.() ?? 0;
    if (redisChanges !== this.#redisChangesKnown) await this.#renewWatermarks(nowMs);
    this.#redisChangesKnown = redisChanges;
    await this.#planSupersededAgain(nowMs);
    if (!(await this.#planDue(moment))) return;
    if (!this.#isAdopted) {
      if (this.#stopping.signal.aborted) return;
      await this.#bringIntoForce(this.#policies, moment);
    }
    if (nowMs - this.#sweptAtMs >= sweepEveryMs) await this.#sweep(nowMs);
    if (nowMs - this.#tidiedAtMs >= tidyEveryMs) await this.#tidy(nowMs);
    this.#options.onRound?.();
  }

  /** Deletes the records of policies that are gone. */
  async #tidy(nowMs: number): Promise<void> {
    // Replicas reload at different times: what the newest set has not named for a while is gone.
    const sinceMs = await this.#newestSinceMs();
    // After a reload the agenda is still that of the set before, which may know less.
    const isNewest = () => this.#isAdopted && nowMs - sinceMs >= goneAfterMs;
    const known = () => new Set([...this.#agenda.names(), ...this.#superseded, ...this.#missing.keys()]);
    if (isNewest()) await this.#options.ledger.tidy(known());
    await this.#options.alsoTidy?.({ nowMs, isNewest: isNewest() });
    this.#tidiedAtMs = nowMs;
  }

  #onTick(): void {
    if (this.#busy !== undefined) return;
    this.#busy = this.#runUntilTick()
      .then(() => this.#report(undefined))
      .catch((error: unknown) => this.#report(error))
      .finally(() => {
        this.#busy = undefined;
      });
  }

  async #runUntilTick(): Promise<void> {
    await this.runOnce();
    const earliestMs = this.#agenda.earliestMs();
    if (earliestMs === undefined) return;
    // Waits for a slot before the next tick: the tick follows this machine's clock, the slot
    // Redis's. A timer may end a millisecond early, so the time is read again.
    for (;;) {
      const waitMs = earliestMs - (await this.#options.ledger.nowMs());
      if (waitMs >= tickMs || this.#stopping.signal.aborted) return;
      if (waitMs <= 0) return this.runOnce();
      await systemClock.sleep(waitMs, this.#stopping.signal);
    }
  }

  /**
   * Plans each policy by the schedule in force, which an earlier process may have noted, until
   * nothing is due. Only then a changed schedule comes into force; one that still owes slots waits
   * for a later round.
   */
  async #bringIntoForce(policies: readonly Policy[], moment: PlanningMoment): Promise<void> {
    const { ledger, log } = this.#options;
    const { nowMs } = moment;
    // What the list before left to others, a new one asks for again.
    if (policies !== this.#listOnAgenda) this.#superseded.clear();
    const wanted = new Map<string, Policy>();
    for (const policy of policies) {
      if (scheduleText(policy) !== undefined && !this.#superseded.has(policy.name)) wanted.set(policy.name, policy);
    }
    const wantedSchedules = () => [...wanted].map(([policy, of]) => ({ policy, schedule: scheduleText(of) ?? "" }));
    // Back with another schedule it was edited, not away: it begins anew.
    const newOrChanged = wantedSchedules()
      .filter(({ policy, schedule }) => this.#agenda.scheduleOf(policy) !== schedule)
      .map((one) => ({ ...one, ...defined({ from: this.#missing.get(one.policy)?.schedule }) }));
    const begun = await ledger.openWatermarks(newOrChanged, nowMs);
    await this.#putOnAgenda({ policies, wanted }, begun, nowMs);
    this.#listOnAgenda = policies;
    for (let part = 0; part < backlogPartsMax && this.#due(nowMs).length > 0; part += 1)
      if (!(await this.#planDue(moment))) break;
    if (this.#stopping.signal.aborted) return;
    // Another replica may have changed these meanwhile.
    for (const name of this.#superseded) wanted.delete(name);
    const changes = wantedSchedules().flatMap(({ policy, schedule }) => {
      const planned = this.#agenda.scheduleOf(policy);
      const from = planned ?? begun.get(policy)?.schedule;
      if (from === undefined || from === schedule || this.#agenda.owes(policy, nowMs)) return [];
      if (planned === undefined) log.error("bug.caught", { policy, stack: `unreadable schedule until now: ${from}` });
      return [{ policy, schedule, from }];
    });
    await this.#putOnAgenda({ policies, wanted }, await ledger.openWatermarks(changes, nowMs), nowMs);
    const isDone = wantedSchedules().every(({ policy, schedule }) => this.#agenda.scheduleOf(policy) === schedule);
    // A newer list may have come meanwhile.
    this.#isAdopted = isDone && this.#agenda.names().size === wanted.size && this.#policies === policies;
  }

  async #putOnAgenda(
    { policies, wanted }: { readonly policies: readonly Policy[]; readonly wanted: ReadonlyMap<string, Policy> },
    watermarks: ReadonlyMap<string, Watermark>,
    nowMs: number,
  ): Promise<void> {
    const removed = [...this.#agenda.names()].filter((name) => !wanted.has(name));
    const owing = removed.flatMap((name) => (this.#agenda.owes(name, nowMs) ? (this.#agenda.find(name) ?? []) : []));
    const kept = new Set(owing.map(({ name }) => name));
    for (const name of wanted.keys()) this.#missing.delete(name);
    for (const name of removed)
      if (!kept.has(name)) this.#missing.set(name, { atMs: nowMs, schedule: this.#agenda.scheduleOf(name) ?? "" });
    // Still in a file, without a schedule: on purpose.
    const bare = policies.flatMap(({ name }) => (this.#missing.has(name) && !wanted.has(name) ? [name] : []));
    await this.#options.ledger.drop(bare);
    for (const name of bare) this.#missing.delete(name);
    this.#agenda.adopt([...wanted.values(), ...owing], watermarks, nowMs);
  }

  /** Forgets policies that left ten minutes ago. */
  async #forgetGone(nowMs: number): Promise<void> {
    const gone = [...this.#missing].flatMap(([name, { atMs }]) => (nowMs - atMs < goneAfterMs ? [] : [name]));
    if (gone.length === 0 || nowMs - (await this.#newestSinceMs()) < goneAfterMs) return;
    // A list that has come meanwhile may have them again, and so may that of a newer replica.
    if (!this.#isAdopted) return;
    await this.#options.ledger.drop(gone);
    for (const name of gone) this.#missing.delete(name);
  }

  /** If no replica has newer policies, plans again, after a minute, what it had left to another. */
  async #planSupersededAgain(nowMs: number): Promise<void> {
    if (this.#superseded.size === 0 || nowMs < this.#planAgainAtMs) return;
    this.#planAgainAtMs = nowMs + againAfterMs;
    if ((await this.#newestSinceMs()) > nowMs) return;
    this.#superseded.clear();
    this.#isAdopted = false;
  }

  #due(nowMs: number): Entry[] {
    return this.#agenda.due(nowMs).filter(({ policy }) => (this.#faulty.get(policy.name) ?? 0) <= nowMs);
  }

  /**
   * Plans, records and queues what is due. False: it did nothing, since it does not know yet what
   * Redis may have lost.
   */
  async #planDue(moment: PlanningMoment): Promise<boolean> {
    const { nowMs } = moment;
    const due = this.#due(nowMs);
    if (due.length === 0) return true;
    const { lossesSince = async () => [] } = this.#options;
    const losses = await lossesSince(Math.min(...due.map(({ nextMs = nowMs }) => nextMs)));
    if (losses === undefined) return false;
    const inputs = await readInputsOf(
      due.map(({ policy }) => policy),
      this.#options.inputs,
    );
    const batches = planBatches(due, { ...moment, inputs, losses });
    const unlogged: QueuedBatch[] = [];
    // Three loops share one sequence of batches; a failure in one ends it for all. On stop they
    // leave the rest: it stays due for the next round, here or on another replica.
    const work = async () => {
      for (const batch of batches) {
        if (this.#stopping.signal.aborted) return;
        await this.#carryOut(batch, nowMs, unlogged);
        if (unlogged.length >= unloggedBatchesMax) await this.#logBatches(unlogged.splice(0));
      }
    };
    const results = await Promise.allSettled(Array.from({ length: batchesAtOnce }, work));
    // Not before: thousands of lines would delay the slots of the last batches.
    await this.#logBatches(unlogged);
    for (const result of results) if (result.status === "rejected") throw result.reason;
    return true;
  }

  /** Records and queues a batch; adds what is still to be logged of it to `unlogged`. */
  async #carryOut(batch: readonly PlannedEntry[], nowMs: number, unlogged: QueuedBatch[]): Promise<void> {
    const { ledger, enqueue, log } = this.#options;
    const answers = await ledger.record(batch.map(({ slots }) => slots));
    const superseded: string[] = [];
    for (const [index, { entry }] of batch.entries()) {
      const { watermarkMs, fault, isSuperseded, supersededFollowers = [] } = answers[index] ?? {};
      const { name } = entry.policy;
      if (isSuperseded === true) superseded.push(name);
      else if (watermarkMs !== undefined) this.#agenda.moveWatermark(name, watermarkMs);
      superseded.push(...supersededFollowers);
      if (fault === undefined) this.#faulty.delete(name);
      else {
        this.#faulty.set(name, nowMs + againAfterMs);
        log.error("bug.caught", { policy: name, stack: `its slots cannot be recorded: ${fault}` });
      }
    }
    this.#noteSuperseded(superseded, nowMs);
    if (answers.some(({ watermarkMs }) => watermarkMs === undefined)) await this.#renewWatermarks(nowMs);
    const recorded = batch.filter((_, index) => answers[index]?.recorded === true);
    if (recorded.length === 0) return;
    let queuedAtMs = nowMs;
    // Tasks that could not be enqueued stay in the outbox, for the sweep.
    const queue = async () => {
      await enqueue(recorded.flatMap(({ slots }) => slots.tasks));
      queuedAtMs = await ledger.nowMs();
      await ledger.confirmQueued(recorded.map(({ slots }) => slots));
    };
    // The sweep tells of the tasks; of slots that start nothing only this does.
    const withoutStarts = () =>
      recorded.map((one) => ({ ...one, plans: one.plans.filter(({ state }) => state !== "started") }));
    const isQueued = await this.#guarded({}, queue).catch((error: unknown) => {
      unlogged.push({ entries: withoutStarts(), queuedAtMs });
      throw error;
    });
    const told = isQueued ? recorded : withoutStarts();
    unlogged.push({ entries: told.filter(({ slots }) => slots.followers === undefined), queuedAtMs });
    for (const { slots: planned, plans } of told) {
      if (planned.followers === undefined) continue;
      // Before the lines of its followers.
      for (const plan of plans) this.#logPlan(planned.policy, plan, queuedAtMs);
      const slotsMs = plans.flatMap(({ state, slotMs }) => (state === "started" ? [] : [slotMs]));
      await this.#guarded({ policy: planned.policy }, async () => this.#options.chains?.ended(planned.policy, slotsMs));
    }
  }

  /** Leaves policies and their followers to the replica that put other schedules into force. */
  #noteSuperseded(names: readonly string[], nowMs: number): void {
    if (names.length === 0) return;
    if (this.#superseded.size === 0) this.#planAgainAtMs = nowMs + againAfterMs;
    for (const policy of this.#agenda.remove(names)) {
      this.#superseded.add(policy);
      this.#options.log.warn("schedule.superseded", { policy });
    }
  }

  #newestSinceMs(): Promise<number> {
    return this.#options.newestSinceMs?.() ?? Promise.resolve(Number.POSITIVE_INFINITY);
  }

  /**
   * After Redis changed or lost writes, a policy without a watermark gets the one that this process
   * knows. Slots that may have been started since then end as unknown (store/redis-watch.ts).
   */
  async #renewWatermarks(nowMs: number): Promise<void> {
    this.#agenda.moveWatermarks(await this.#options.ledger.openWatermarks(this.#agenda.schedules(), nowMs));
  }

  async #logBatches(batches: readonly QueuedBatch[]): Promise<void> {
    for (const { entries, queuedAtMs } of batches) {
      for (const { slots, plans } of entries) for (const plan of plans) this.#logPlan(slots.policy, plan, queuedAtMs);
      await nextTurn();
    }
  }

  #logPlan(policy: string, plan: ScheduledPlan, queuedAtMs: number): void {
    const slot = new Date(plan.slotMs).toISOString();
    if (plan.state === "started") {
      const delayMs = queuedAtMs - plan.slotMs;
      this.#options.log.info("slot.queued", { policy, slot, covers: plan.covers.length, delayMs });
    } else if (plan.state === "skipped")
      this.#options.log.info("slot.skipped", { policy, slot, reason: plan.reason, note: plan.note });
    else if (plan.state === "missed") this.#options.log.error("slot.missed", { policy, slot, reason: plan.reason });
    else this.#options.log.warn("slot.coalesced", { policy, slot, into: new Date(plan.into).toISOString() });
  }

  async #sweep(nowMs: number): Promise<void> {
    this.#sweptAtMs = nowMs;
    for (const planned of await this.#options.ledger.unqueued(nowMs - unqueuedForMs)) {
      await this.#guarded({ policy: planned.policy }, async () => {
        await this.#options.enqueue(planned.tasks);
        await this.#options.ledger.confirmQueued([planned]);
        this.#options.log.warn("slot.repaired", { policy: planned.policy, tasks: planned.tasks.length });
      });
    }
    await this.#guarded({}, async () => this.#options.chains?.sweep());
    await this.#guarded({}, () => this.#forgetGone(nowMs));
  }

  /**
   * Logs a mistake in a policy's slots; the others go on. An unreachable Redis ends the round.
   * Answers whether all was done.
   */
  async #guarded(about: EventFields, act: () => Promise<void>): Promise<boolean> {
    try {
      await act();
      return true;
    } catch (error) {
      if (isRedisOutage(error)) throw error;
      this.#options.log.error("bug.caught", { ...about, stack: stackOf(error) });
      return false;
    }
  }

  #report(error: unknown): void {
    if ((error !== undefined) === this.#failing) return;
    this.#failing = error !== undefined;
    if (error === undefined) this.#options.log.info("scheduler.recovered");
    else {
      this.#options.log.error("scheduler.failing", { message: errorText(error) });
      if (!isRedisOutage(error)) this.#options.log.error("bug.caught", { stack: stackOf(error) });
    }
  }
}
