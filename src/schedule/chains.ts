// Chains: which policies follow which, and the slots that wait for the end of their predecessor.
// Called by the worker that ends the last task of a slot, by the scheduler for slots that did not
// start, and by its sweep for what a crash in between left behind.
//
//   slot ended ─▶ waiting followers ─▶ predecessor state ─▶ planFollower ─▶ record + outbox, once ─▶ enqueue ─▶ confirm
//                        ▲                                                   └─ did not start: its own followers next ─┐
//                        └─────────────────────────────────────────────────────────────────────────────────────────────┘
import type { Policy } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import { NewerVersionError } from "../core/newer-version.ts";
import { isNotified } from "../model/notify-event.ts";
import type { Pause } from "../model/pause.ts";
import type { Follower, Loss, PredecessorState, WaitingSlot, WaitingSlotEnd } from "../model/slot-record.ts";
import type { Task } from "../model/task.ts";
import type { ChainProgress, EnqueueTasks } from "../model/task-processing.ts";
import { alwaysNewest, type FollowerPlan, planFollower } from "./plan-follower.ts";
import { type ReadInputs, readInputsOf, type SlotLedgerPort } from "./scheduler-ports.ts";
import { tasksOf, toFollowerRecord } from "./slot-tasks.ts";
import { scheduleText } from "./slots.ts";

/** The part of store/chain-store.ts that chains use. */
interface WaitingSlots {
  fannedOut(task: Task, targets: readonly string[]): Promise<void>;
  taskOver(task: Task): Promise<boolean>;
  find(slots: readonly Pick<WaitingSlot, "policy" | "slotMs">[]): Promise<readonly WaitingSlot[]>;
  scan(cursor: string): Promise<{ readonly slots: readonly WaitingSlot[]; readonly cursor: string }>;
  predecessorOf(slot: WaitingSlot): Promise<PredecessorState>;
  endWaiting(end: WaitingSlotEnd, nowMs: number): Promise<number | undefined>;
}

/** The dependencies of chains. */
export interface ChainsOptions {
  readonly policy: (name: string) => Policy | undefined;
  /** The names of the policies that follow one directly. */
  readonly followers: (name: string) => readonly string[];
  readonly chainStore: WaitingSlots;
  readonly ledger: Pick<SlotLedgerPort, "nowMs" | "confirmQueued">;
  readonly enqueue: EnqueueTasks;
  readonly pauses: () => Promise<readonly Pause[]>;
  /** How fresh the inputs of policies are; none is judged unless given. */
  readonly inputs?: ReadInputs;
  /** What Redis may have lost since an instant; undefined: not known as yet. Default: nothing. */
  readonly lossesSince?: (sinceMs: number) => Promise<readonly Loss[] | undefined>;
  /** Since when these policies are the newest; Infinity: another process has newer. */
  readonly newestSinceMs: () => Promise<number>;
  readonly log: EventLog;
}

/** The chains. Any number of replicas may work on them: each waiting slot is resolved once. */
export class Chains implements ChainProgress {
  readonly #options: ChainsOptions;
  readonly #limitedLog: EventLog;
  #cursor = "0";

  constructor(options: ChainsOptions) {
    this.#options = options;
    this.#limitedLog = createRateLimitedLog(options.log, systemClock, "policy");
  }

  noteFannedOut(task: Task, targets: readonly string[]): Promise<void> {
    return this.#options.chainStore.fannedOut(task, targets);
  }

  async taskOver(task: Task): Promise<void> {
    if (await this.#options.chainStore.taskOver(task)) await this.ended(task.policy, [task.slotMs]);
  }

  /** Resolves the followers of slots that have ended or will never start. */
  async ended(policy: string, slots: readonly number[]): Promise<void> {
    const { followers, chainStore } = this.#options;
    const names = followers(policy);
    if (names.length > 0) await this.#resolve(await chainStore.find(slotsOf(names, slots)));
  }

  /** Resolves the next thousand or so of all waiting slots. */
  async sweep(): Promise<void> {
    const { slots, cursor } = await this.#options.chainStore.scan(this.#cursor);
    this.#cursor = cursor;
    await this.#resolve(slots);
  }

  async #resolve(waiting: readonly WaitingSlot[]): Promise<void> {
    if (waiting.length === 0) return;
    const { chainStore, ledger, pauses, policy, followers, lossesSince = async () => [] } = this.#options;
    const losses = await lossesSince(Math.min(...waiting.map(({ slotMs }) => slotMs)));
    // The sweep repeats it.
    if (losses === undefined) return;
    const nowMs = await ledger.nowMs();
    const moment = { nowMs, pauses: await pauses(), losses };
    // Ends: each round goes one policy further down the chain.
    let now = [...waiting];
    while (now.length > 0) {
      const next: WaitingSlot[] = [];
      const inputs = await readInputsOf(
        now.map((slot) => policy(slot.policy)),
        this.#options.inputs,
      );
      const isOther = now.some((slot) => slot.isLeftOut === true || policy(slot.policy)?.after?.policy !== slot.after);
      const newestSinceMs = isOther ? await this.#options.newestSinceMs() : alwaysNewest;
      const states = await Promise.all(now.map((slot) => this.#predecessorOf(slot)));
      for (const [index, slot] of now.entries()) {
        const known = policy(slot.policy);
        const plan = planFollower({
          policy: known,
          slot,
          predecessor: states[index] ?? { state: "open" },
          ...moment,
          inputs,
          newestSinceMs,
        });
        if (plan === undefined) continue;
        const hasEnded = await this.#endWaiting({ slot, plan, policy: known, nowMs });
        if (!hasEnded || plan.state === "started") continue;
        next.push(...(await chainStore.find(slotsOf(followers(slot.policy), [slot.slotMs]))));
      }
      now = next;
    }
  }

  /** One that only a newer version can read is not known to have ended; other chains go on. */
  async #predecessorOf(waiting: WaitingSlot): Promise<PredecessorState> {
    try {
      return await this.#options.chainStore.predecessorOf(waiting);
    } catch (error) {
      if (!(error instanceof NewerVersionError)) throw error;
      const slot = new Date(waiting.slotMs).toISOString();
      this.#limitedLog.warn("slot.newer-version", { policy: waiting.after, slot, message: error.message });
      return { state: "open", isUnreadable: true };
    }
  }

  async #endWaiting({ slot, plan, policy, nowMs }: WaitingSlotPlan): Promise<boolean> {
    const { chainStore, ledger, enqueue } = this.#options;
    const due = { slotMs: slot.slotMs, dueMs: nowMs, origin: "schedule", covers: [] } as const;
    const tasks = plan.state === "started" && policy !== undefined ? tasksOf(policy, due) : [];
    const notified = isNotified(policy) ? ({ isNotified: true } as const) : {};
    const newWatermarkMs = await chainStore.endWaiting(
      {
        slot,
        record: toFollowerRecord(slot, plan, policy),
        tasks,
        timezone: policy?.timezone,
        ...notified,
      },
      nowMs,
    );
    if (newWatermarkMs === undefined) return false;
    // Without tasks this place in the outbox may be of another slot that ends its waiting just now.
    let queuedAtMs = nowMs;
    if (tasks.length > 0) {
      await enqueue(tasks);
      queuedAtMs = await ledger.nowMs();
      await ledger.confirmQueued([{ policy: slot.policy, newWatermarkMs }]);
    }
    this.#logPlan(slot, plan, queuedAtMs);
    return true;
  }

  #logPlan({ policy, slotMs, after }: WaitingSlot, { state, detail, note }: FollowerPlan, queuedAtMs: number): void {
    const { log } = this.#options;
    const slot = new Date(slotMs).toISOString();
    if (state === "started") log.info("slot.queued", { policy, slot, covers: 0, delayMs: queuedAtMs - slotMs, after });
    else if (state === "skipped") log.info("slot.skipped", { policy, slot, reason: detail, note });
    else log.error("slot.missed", { policy, slot, reason: detail, note });
  }
}

interface WaitingSlotPlan {
  readonly slot: WaitingSlot;
  readonly plan: FollowerPlan;
  /** Undefined when it was removed. */
  readonly policy: Policy | undefined;
  readonly nowMs: number;
}

/** The chains of a list of policies. */
export interface FollowerMap {
  /** The names of the policies that follow one directly. */
  direct(name: string): readonly string[];
  /** All that follow one, directly or through others, each after its predecessor. */
  all(name: string): readonly Follower[];
}

/** Builds the map. */
export function createFollowerMap(policies: readonly Policy[]): FollowerMap {
  const byPredecessor = Map.groupBy(policies, ({ after }) => after?.policy);
  const of = (name: string): readonly Policy[] => byPredecessor.get(name) ?? [];
  const all = (name: string): Follower[] =>
    of(name).flatMap((policy) => [
      { policy: policy.name, after: name, followers: of(policy.name).length, schedule: scheduleText(policy) ?? "" },
      ...all(policy.name),
    ]);
  return { direct: (name) => of(name).map((policy) => policy.name), all };
}

function slotsOf(policies: readonly string[], slots: readonly number[]) {
  return policies.flatMap((policy) => slots.map((slotMs) => ({ policy, slotMs })));
}
