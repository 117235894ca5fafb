// What happens when a slot is due: every second a beat looks which policies are due by Redis's clock, plans their
// slots, records them and the new mark in one atomic step, and hands the tasks to the queue.
//
//   beat ─▶ due policies ─▶ slots after the mark ─▶ plan (closed, paused, catch-up) ─▶ record + mark ─▶ enqueue ─▶ confirm
//
// The beat is only an alarm clock: one that comes late, twice or not at all changes nothing but the latency.
import cron from "node-cron";
import type { Policy } from "../config/policy-set.ts";
import type { Component } from "../core/component.ts";
import type { EventLog } from "../core/event-log.ts";
import type { EnqueueTasks } from "../tasks/seams.ts";
import type { Task } from "../tasks/task.ts";
import type { ReadPauses } from "./pause-watch.ts";
import { planSlots } from "./plan-slots.ts";
import { toRecords, toTasks } from "./slot-tasks.ts";
import { createSlotSource, type SlotSource } from "./slots.ts";

/** One recorded step of planning, as the ledger keeps it. */
interface PlannedStep {
  readonly policy: string;
  readonly expectedMarkMs: number;
  readonly newMarkMs: number;
  readonly records: ReturnType<typeof toRecords>;
  readonly tasks: readonly Task[];
}

/** What the scheduler needs of the slot ledger (store/slot-ledger.ts). */
export interface Ledger {
  nowMs(): Promise<number>;
  marks(policies: readonly string[], nowMs: number): Promise<ReadonlyMap<string, number>>;
  record(step: PlannedStep): Promise<{ readonly recorded: boolean; readonly markMs: number | undefined }>;
  confirmQueued(step: { readonly policy: string; readonly newMarkMs: number }): Promise<void>;
  unqueued(olderThanMs: number): Promise<readonly { policy: string; newMarkMs: number; tasks: readonly Task[] }[]>;
}

/** What the scheduler is made of. */
export interface SchedulerOptions {
  readonly policies: readonly Policy[];
  readonly ledger: Ledger;
  readonly enqueue: EnqueueTasks;
  /** The pauses, asked for once a beat; none unless given. */
  readonly pauses?: ReadPauses;
  readonly log: EventLog;
}

interface Entry {
  readonly policy: Policy;
  readonly source: SlotSource;
  markMs: number;
  nextMs: number | undefined;
}

const sweepEveryMs = 10_000;
const unqueuedForMs = 5_000;

/** The scheduler: plans slots at each beat. Any number of replicas may run one. */
export class Scheduler implements Component {
  readonly name = "scheduler";
  readonly #options: SchedulerOptions;
  #entries: Entry[] | undefined;
  #beat: { stop(): unknown; destroy(): unknown } | undefined;
  #busy: Promise<void> | undefined;
  #pauses: Awaited<ReturnType<ReadPauses>> = [];
  #sweptAtMs = 0;
  #failing = false;

  constructor(options: SchedulerOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    this.#beat = cron.schedule("* * * * * *", () => this.#onBeat(), { suppressMissedWarning: true });
  }

  async stop(): Promise<void> {
    await this.#beat?.destroy();
    await this.#busy;
  }

  /** One look at what is due. Called by the beat; tests call it by hand. */
  async look(): Promise<void> {
    const nowMs = await this.#options.ledger.nowMs();
    this.#pauses = (await this.#options.pauses?.(nowMs)) ?? [];
    this.#entries ??= await this.#loadEntries(nowMs);
    for (const entry of this.#entries) {
      if (entry.nextMs !== undefined && entry.nextMs <= nowMs) await this.#plan(entry, nowMs);
    }
    if (nowMs - this.#sweptAtMs >= sweepEveryMs) await this.#sweep(nowMs);
  }

  #onBeat(): void {
    if (this.#busy !== undefined) return;
    this.#busy = this.look()
      .then(() => this.#report(undefined))
      .catch((error: unknown) => this.#report(error))
      .finally(() => {
        this.#busy = undefined;
      });
  }

  async #loadEntries(nowMs: number): Promise<Entry[]> {
    const scheduled = this.#options.policies.flatMap((policy) => {
      const source = createSlotSource(policy);
      return source === undefined ? [] : [{ policy, source }];
    });
    const marks = await this.#options.ledger.marks(
      scheduled.map(({ policy }) => policy.name),
      nowMs,
    );
    return scheduled.map(({ policy, source }) => {
      const markMs = marks.get(policy.name) ?? nowMs;
      return { policy, source, markMs, nextMs: source.next(markMs) };
    });
  }

  async #plan(entry: Entry, nowMs: number): Promise<void> {
    const { policy, source } = entry;
    const slots = source.due(entry.markMs, nowMs);
    const newMarkMs = slots.at(-1);
    if (newMarkMs === undefined) return;
    const plans = planSlots(policy, slots, { nowMs, pauses: this.#pauses });
    const step = {
      policy: policy.name,
      expectedMarkMs: entry.markMs,
      newMarkMs,
      records: toRecords(policy, plans),
      tasks: toTasks(policy, plans),
    };
    const { recorded, markMs } = await this.#options.ledger.record(step);
    // Without a mark Redis has lost its memory: begin anew from now instead of making up for what nobody knows.
    entry.markMs = markMs ?? (await this.#options.ledger.marks([policy.name], nowMs)).get(policy.name) ?? nowMs;
    entry.nextMs = source.next(entry.markMs);
    if (!recorded) return;
    await this.#options.enqueue(step.tasks);
    await this.#options.ledger.confirmQueued(step);
    for (const plan of plans) this.#logPlan(policy.name, plan, nowMs);
  }

  #logPlan(policy: string, plan: ReturnType<typeof planSlots>[number], nowMs: number): void {
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
      await this.#options.ledger.confirmQueued(step);
      this.#options.log.warn("slot.repaired", { policy: step.policy, tasks: step.tasks.length });
    }
  }

  #report(error: unknown): void {
    if ((error !== undefined) === this.#failing) return;
    this.#failing = error !== undefined;
    if (error === undefined) this.#options.log.info("scheduler.recovered");
    else
      this.#options.log.error("scheduler.failing", { message: error instanceof Error ? error.message : String(error) });
  }
}
