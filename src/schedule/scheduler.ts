// What happens when a slot is due: every second a beat looks which policies are due by Redis's clock, plans their
// slots, records them and the new marks atomically, and hands the tasks to the queue.
//
//   beat ─▶ newest policies ─▶ due ─▶ slots after the mark ─▶ plan (closed, paused, catch-up) ─▶ record + mark ─▶ enqueue ─▶ confirm
//
// The beat is only an alarm clock: one that comes late, twice or not at all changes nothing but the latency.
import type { Policy } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import type { EnqueueTasks } from "../tasks/seams.ts";
import { Agenda } from "./agenda.ts";
import { type Beat, beatMs, startBeat } from "./beat.ts";
import type { Chains } from "./chains.ts";
import type { Ledger } from "./ledger-port.ts";
import type { ReadPauses } from "./pause-watch.ts";
import { type PlannedEntry, planBatches } from "./plan-batches.ts";
import type { PlanningMoment, SlotPlan } from "./plan-slots.ts";

/** What the scheduler is made of. */
export interface SchedulerOptions {
  readonly policies: readonly Policy[];
  readonly ledger: Ledger;
  readonly enqueue: EnqueueTasks;
  /** The pauses, asked for once a look; none unless given. */
  readonly pauses?: ReadPauses;
  /** Whether slots may be planned now; always unless given. What is due meanwhile is planned afterwards, as after an outage. */
  readonly mayPlan?: () => boolean;
  /** How often Redis was found to be another one or to have forgotten something; 0 unless given. Each time the marks are asked for anew. */
  readonly losses?: () => number;
  /** What goes on with the slots of policies that follow others; needed when there are any. */
  readonly chains?: Pick<Chains, "ended" | "sweep">;
  /** Told after each look that did all it should. */
  readonly onLooked?: () => void;
  readonly log: EventLog;
}

const sweepEveryMs = 10_000;
const unqueuedForMs = 5_000;
const tidyEveryMs = 3_600_000;
/** Before changed policies are taken over, so many portions of a backlog are planned by the old ones: 20,000 slots a policy. */
const backlogRoundsMax = 20;
/** How many portions of one look are under way at once: while Redis takes one in, the next is made. */
const batchesAtOnce = 3;

/** The scheduler: plans slots at each beat. Any number of replicas may run one. */
export class Scheduler implements Component {
  readonly name = "scheduler";
  readonly #options: SchedulerOptions;
  readonly #agenda = new Agenda();
  /** The policies to plan for from the next look on; undefined when they are on the agenda already. */
  #wanted: readonly Policy[] | undefined;
  #beat: Beat | undefined;
  #busy: Promise<void> | undefined;
  readonly #stopping = new AbortController();
  #sweptAtMs = 0;
  #tidiedAtMs = 0;
  #failing = false;
  /** Up to where this process has looked, by Redis; undefined before its first look. */
  #lookedAtMs: number | undefined;
  /** The losses of Redis that the marks here know of. */
  #lossesKnown = 0;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#wanted = options.policies;
  }

  async start(): Promise<void> {
    this.#beat = startBeat(
      () => this.#onBeat(),
      () => this.#options.log.warn("beat.renewed"),
    );
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#beat?.stop();
    await this.#busy;
  }

  /**
   * Takes a new list of policies from the next look on. A new policy begins at that moment. One with the same schedule goes on
   * where it is. One with another schedule first gets what was due under the old one; slots of the new one at or before that
   * moment are not made up for. A removed one is forgotten, so that it begins anew when it comes back.
   */
  replace(policies: readonly Policy[]): void {
    this.#wanted = policies;
  }

  /** One look at what is due. Called by the beat; tests call it by hand. */
  async look(): Promise<void> {
    if (this.#options.mayPlan?.() === false) return;
    const nowMs = await this.#options.ledger.nowMs();
    // After the time, so that no pause is missed that holds at a slot which is due.
    const moment = { nowMs, pauses: (await this.#options.pauses?.(nowMs)) ?? [] };
    const losses = this.#options.losses?.() ?? 0;
    if (losses !== this.#lossesKnown) await this.#renewMarks(nowMs);
    this.#lossesKnown = losses;
    await this.#planDue(moment);
    if (this.#wanted !== undefined) {
      // Adopting moves the marks of changed schedules: what is due by then gets its records first.
      for (let round = 1; round < backlogRoundsMax && this.#agenda.due(nowMs).length > 0; round += 1)
        await this.#planDue(moment);
      if (this.#stopping.signal.aborted) return;
      await this.#adopt(this.#wanted, nowMs);
      await this.#planDue(moment);
    }
    this.#lookedAtMs = nowMs;
    if (nowMs - this.#sweptAtMs >= sweepEveryMs) await this.#sweep(nowMs);
    if (nowMs - this.#tidiedAtMs >= tidyEveryMs) {
      await this.#options.ledger.tidy(this.#agenda.names(), nowMs);
      this.#tidiedAtMs = nowMs;
    }
    this.#options.onLooked?.();
  }

  #onBeat(): void {
    if (this.#busy !== undefined) return;
    this.#busy = this.#lookUntilBeat()
      .then(() => this.#report(undefined))
      .catch((error: unknown) => this.#report(error))
      .finally(() => {
        this.#busy = undefined;
      });
  }

  async #lookUntilBeat(): Promise<void> {
    await this.look();
    const earliestMs = this.#agenda.earliestMs();
    if (earliestMs === undefined) return;
    // A slot that comes before the next beat is waited for, since the beat follows this machine's clock and not Redis's.
    const waitMs = earliestMs - (await this.#options.ledger.nowMs());
    if (waitMs >= beatMs) return;
    await systemClock.sleep(Math.max(0, waitMs), this.#stopping.signal);
    if (!this.#stopping.signal.aborted) await this.look();
  }

  async #adopt(policies: readonly Policy[], nowMs: number): Promise<void> {
    const change = this.#agenda.compare(policies);
    const marks = await this.#options.ledger.marks(change.begin, nowMs);
    await this.#options.ledger.drop(change.end);
    this.#agenda.adopt(change, marks, nowMs);
    // Only when all of it is done: a failure in between is made good at the next look. A newer list may have come meanwhile.
    if (this.#wanted === policies) this.#wanted = undefined;
  }

  async #planDue(moment: PlanningMoment): Promise<void> {
    const { nowMs } = moment;
    const batches = planBatches(this.#agenda.due(nowMs), moment);
    // Several workers share one sequence of portions; when one fails, the sequence ends for all of them. Told to stop, they leave the rest
    // to whoever looks next: it stays due.
    const work = async () => {
      for (const batch of batches) {
        if (this.#stopping.signal.aborted) return;
        await this.#carryOut(batch, nowMs);
      }
    };
    const results = await Promise.allSettled(Array.from({ length: batchesAtOnce }, work));
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  async #carryOut(batch: readonly PlannedEntry[], nowMs: number): Promise<void> {
    const { ledger, enqueue } = this.#options;
    const answers = await ledger.record(batch.map(({ step }) => step));
    for (const [index, { entry }] of batch.entries()) {
      const { markMs } = answers[index] ?? {};
      if (markMs !== undefined) this.#agenda.moveMark(entry, markMs);
    }
    if (answers.some(({ markMs }) => markMs === undefined)) await this.#renewMarks(nowMs);
    const recorded = batch.filter((_, index) => answers[index]?.recorded === true);
    if (recorded.length === 0) return;
    await enqueue(recorded.flatMap(({ step }) => step.tasks));
    await ledger.confirmQueued(recorded.map(({ step }) => step));
    for (const { step, plans } of recorded) for (const plan of plans) this.#logPlan(step.policy, plan, nowMs);
    for (const { step, plans } of recorded) {
      if (step.followers === undefined) continue;
      const over = plans.filter(({ state }) => state !== "started");
      await this.#options.chains?.ended(
        step.policy,
        over.map(({ slotMs }) => slotMs),
      );
    }
  }

  /**
   * Redis has lost its memory: begin anew where this process looked last, instead of making up for what nobody knows. What is due since
   * then and may have been started by others ends as unknown (store/redis-watch.ts). All policies at once, not each when it is due.
   */
  async #renewMarks(nowMs: number): Promise<void> {
    const sinceMs = Math.min(nowMs, this.#lookedAtMs ?? nowMs);
    this.#agenda.moveMarks(await this.#options.ledger.marks(this.#agenda.schedules(), sinceMs));
  }

  #logPlan(policy: string, plan: SlotPlan, nowMs: number): void {
    const slot = new Date(plan.slotMs).toISOString();
    if (plan.state === "started") {
      this.#options.log.info("slot.queued", { policy, slot, covers: plan.covers.length, delayMs: nowMs - plan.slotMs });
    } else if (plan.state === "skipped")
      this.#options.log.info("slot.skipped", { policy, slot, reason: plan.reason, note: plan.note });
    else if (plan.state === "missed") this.#options.log.error("slot.missed", { policy, slot, reason: plan.reason });
    else this.#options.log.warn("slot.coalesced", { policy, slot, into: new Date(plan.into).toISOString() });
  }

  async #sweep(nowMs: number): Promise<void> {
    this.#sweptAtMs = nowMs;
    for (const step of await this.#options.ledger.unqueued(nowMs - unqueuedForMs)) {
      await this.#options.enqueue(step.tasks);
      await this.#options.ledger.confirmQueued([step]);
      this.#options.log.warn("slot.repaired", { policy: step.policy, tasks: step.tasks.length });
    }
    await this.#options.chains?.sweep();
  }

  #report(error: unknown): void {
    if ((error !== undefined) === this.#failing) return;
    this.#failing = error !== undefined;
    if (error === undefined) this.#options.log.info("scheduler.recovered");
    else this.#options.log.error("scheduler.failing", { message: errorText(error) });
  }
}
