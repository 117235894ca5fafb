// Chains: ends the waiting of slots whose predecessor has ended. Called by the worker that ends the last task of a slot, by the
// scheduler for slots that did not start, and by the scheduler's sweep for whatever was left behind by a death in between.
//
//   slot ended ─▶ followers that wait ─▶ how far is the predecessor? ─▶ plan ─▶ record + outbox, once ─▶ enqueue ─▶ confirm
//                      ▲                                                  └─ did not start: its own followers next ─┐
//                      └────────────────────────────────────────────────────────────────────────────────────────────┘
import type { Policy } from "../config/policy-set.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Pause } from "../tasks/pause.ts";
import type { EnqueueTasks, FollowChains } from "../tasks/seams.ts";
import type { Task } from "../tasks/task.ts";
import { isToldOf } from "../tasks/telling-event.ts";
import type { FollowStep, PredecessorState, WaitingSlot } from "../tasks/waiting-slot.ts";
import type { Ledger } from "./ledger-port.ts";
import { type FollowerPlan, planFollower } from "./plan-follower.ts";
import { tasksOf, toFollowedRecord } from "./slot-tasks.ts";

/** What chains need of the chain book (store/chain-book.ts). */
interface WaitingSlots {
  expanded(task: Task, targets: readonly string[]): Promise<void>;
  released(task: Task): Promise<boolean>;
  find(slots: readonly Pick<WaitingSlot, "policy" | "slotMs">[]): Promise<readonly WaitingSlot[]>;
  scan(cursor: string): Promise<{ readonly slots: readonly WaitingSlot[]; readonly cursor: string }>;
  look(slot: WaitingSlot): Promise<PredecessorState>;
  follow(step: FollowStep, nowMs: number): Promise<number | undefined>;
}

/** What chains are made of. */
export interface ChainsOptions {
  readonly policy: (name: string) => Policy | undefined;
  /** The names of the policies that follow one directly. */
  readonly followers: (name: string) => readonly string[];
  readonly book: WaitingSlots;
  readonly ledger: Pick<Ledger, "nowMs" | "confirmQueued">;
  readonly enqueue: EnqueueTasks;
  readonly pauses: () => Promise<readonly Pause[]>;
  readonly log: EventLog;
}

/** The chains. Any number of replicas may work on the same ones: each waiting slot ends once. */
export class Chains implements FollowChains {
  readonly #options: ChainsOptions;
  #cursor = "0";

  constructor(options: ChainsOptions) {
    this.#options = options;
  }

  expanded(task: Task, targets: readonly string[]): Promise<void> {
    return this.#options.book.expanded(task, targets);
  }

  async released(task: Task): Promise<void> {
    if (await this.#options.book.released(task)) await this.ended(task.policy, [task.slotMs]);
  }

  /** Slots of a policy have ended, or will never start: goes on with what follows them. */
  async ended(policy: string, slots: readonly number[]): Promise<void> {
    const { followers, book } = this.#options;
    const names = followers(policy);
    if (names.length > 0) await this.#resolve(await book.find(slotsOf(names, slots)));
  }

  /** Looks at about a thousand waiting slots, each time at the next ones. */
  async sweep(): Promise<void> {
    const { slots, cursor } = await this.#options.book.scan(this.#cursor);
    this.#cursor = cursor;
    await this.#resolve(slots);
  }

  async #resolve(waiting: readonly WaitingSlot[]): Promise<void> {
    if (waiting.length === 0) return;
    const { book, ledger, pauses, policy, followers } = this.#options;
    const nowMs = await ledger.nowMs();
    const moment = { nowMs, pauses: await pauses() };
    // Those of one slot end with a chain's last policy, so this comes to an end.
    let now = [...waiting];
    while (now.length > 0) {
      const next: WaitingSlot[] = [];
      const states = await Promise.all(now.map((slot) => book.look(slot)));
      for (const [index, slot] of now.entries()) {
        const known = policy(slot.policy);
        const plan = planFollower({ policy: known, slot, predecessor: states[index] ?? { state: "open" }, ...moment });
        if (plan === undefined) continue;
        const hasEnded = await this.#follow({ slot, plan, policy: known, nowMs });
        if (!hasEnded || plan.state === "started") continue;
        next.push(...(await book.find(slotsOf(followers(slot.policy), [slot.slotMs]))));
      }
      now = next;
    }
  }

  async #follow({ slot, plan, policy, nowMs }: Following): Promise<boolean> {
    const { book, ledger, enqueue } = this.#options;
    const due = { slotMs: slot.slotMs, dueMs: nowMs, origin: "schedule", covers: [] } as const;
    const tasks = plan.state === "started" && policy !== undefined ? tasksOf(policy, due) : [];
    const told = isToldOf(policy) ? ({ isTold: true } as const) : {};
    const newMarkMs = await book.follow({ slot, record: toFollowedRecord(slot, plan, policy), tasks, ...told }, nowMs);
    if (newMarkMs === undefined) return false;
    await enqueue(tasks);
    await ledger.confirmQueued([{ policy: slot.policy, newMarkMs }]);
    this.#logPlan(slot, plan, nowMs);
    return true;
  }

  #logPlan({ policy, slotMs, after }: WaitingSlot, { state, detail, note }: FollowerPlan, nowMs: number): void {
    const { log } = this.#options;
    const slot = new Date(slotMs).toISOString();
    if (state === "started") log.info("slot.queued", { policy, slot, covers: 0, delayMs: nowMs - slotMs, after });
    else if (state === "skipped") log.info("slot.skipped", { policy, slot, reason: detail, note });
    else log.error("slot.missed", { policy, slot, reason: detail, note });
  }
}

interface Following {
  readonly slot: WaitingSlot;
  readonly plan: FollowerPlan;
  /** undefined when it is removed. */
  readonly policy: Policy | undefined;
  readonly nowMs: number;
}

function slotsOf(policies: readonly string[], slots: readonly number[]) {
  return policies.flatMap((policy) => slots.map((slotMs) => ({ policy, slotMs })));
}
