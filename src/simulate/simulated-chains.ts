// Chains in a simulation: which slots wait for which, and how they end. It decides by planFollower,
// as schedule/chains.ts does; without losses, a slot is resolved at the instant at which its end is
// certain. Called by simulation.ts.
//
//   planned ─▶ all followers wait ─▶ the predecessor's last task ends, or `within` has passed ─▶ resolved ─▶ its own followers
import type { Policy } from "../config/policy-set.ts";
import type { OutcomeStatus } from "../model/outcome.ts";
import type { Pause } from "../model/pause.ts";
import type { SlotRecord } from "../model/slot-record.ts";
import type { Task } from "../model/task.ts";
import type { PredecessorState, WaitingSlot } from "../model/waiting-slot.ts";
import { createFollowerMap, type FollowerMap } from "../schedule/followers.ts";
import { type FollowerPlan, planFollower } from "../schedule/plan-follower.ts";
import { tasksOf, toFollowedRecord, toRecords } from "../schedule/slot-tasks.ts";
import type { VirtualTick } from "./virtual-ticks.ts";

/** A resolved slot. `predecessor`: the state of its predecessor. `tasks`: what starts. */
export interface FollowedTask {
  readonly policy: Policy;
  readonly slotMs: number;
  readonly plan: FollowerPlan;
  readonly predecessor: PredecessorState["state"];
  readonly tasks: readonly Task[];
}

/**
 * One slot of a predecessor. `open`: tasks without an end. `waiting`: unresolved slots of
 * followers.
 */
interface Predecessor {
  readonly record: SlotRecord;
  readonly endings: { readonly target: string; readonly status: OutcomeStatus }[];
  open: number;
  waiting: number;
}

/** The chains of one simulation. Instants never go back. */
export class SimulatedChains {
  readonly #policies: ReadonlyMap<string, Policy>;
  readonly #followers: FollowerMap;
  readonly #pauses: readonly Pause[];
  readonly #predecessors = new Map<string, Predecessor>();
  readonly #waiting = new Map<string, WaitingSlot>();

  constructor(policies: readonly Policy[], pauses: readonly Pause[]) {
    this.#policies = new Map(policies.map((policy) => [policy.name, policy]));
    this.#followers = createFollowerMap(policies);
    this.#pauses = pauses;
  }

  /** Whether a policy has followers. */
  isFollowed({ name }: Pick<Policy, "name">): boolean {
    return this.#followers.direct(name).length > 0;
  }

  /** How many policies follow one, directly or through others. */
  countFollowers({ name }: Pick<Policy, "name">): number {
    return this.#followers.all(name).length;
  }

  /**
   * Slots of a chain's root are planned: all followers wait. Returns when each is missed if it has
   * not started.
   */
  open({ policy, plans, nowMs }: VirtualTick): { readonly slot: WaitingSlot; readonly missedAtMs: number }[] {
    if (!this.isFollowed(policy)) return [];
    const followers = this.#followers.all(policy.name);
    const opened = plans.flatMap(({ slotMs }) =>
      followers.map((follower): WaitingSlot => ({ v: 1, ...follower, slotMs, openedMs: nowMs })),
    );
    for (const slot of opened) this.#waiting.set(keyOf(slot), slot);
    for (const record of toRecords(policy, plans)) this.#note(policy, record);
    return opened.map((slot) => {
      const withinMs = this.#policies.get(slot.policy)?.after?.withinMs ?? 0;
      return { slot, missedAtMs: Math.max(nowMs, slot.slotMs + withinMs + 1) };
    });
  }

  /** Resolves the followers of slots that do not start. */
  unstarted({ policy, plans, nowMs }: VirtualTick): FollowedTask[] {
    const slots = plans.filter(({ state }) => state !== "started");
    return this.resolve(
      slots.flatMap((slot) => this.#after(policy.name, slot)),
      nowMs,
    );
  }

  /** Resolves the slots that need not wait any more, by the present state of their predecessors. */
  resolve(slots: readonly WaitingSlot[], nowMs: number): FollowedTask[] {
    const followed: FollowedTask[] = [];
    // Each round goes one policy further down the chain.
    let now = slots;
    while (now.length > 0) {
      const states = now.map((slot) => this.#stateOf(slot, nowMs));
      const ended = now.flatMap((slot, index) => this.#end(slot, states[index] ?? { state: "open" }, nowMs) ?? []);
      followed.push(...ended);
      now = ended.filter(({ plan }) => plan.state !== "started").flatMap((one) => this.#after(one.policy.name, one));
    }
    return followed;
  }

  /** A task fans out into this many: one for each sync job that its masks name. */
  fannedOut(task: Task, count: number): void {
    const predecessor = this.#predecessors.get(keyOf(task));
    if (predecessor !== undefined) predecessor.open += count - 1;
  }

  /** A task has ended. Resolves the followers if it was the last one of its slot. */
  ended(task: Task, status: OutcomeStatus, nowMs: number): FollowedTask[] {
    const predecessor = this.#predecessors.get(keyOf(task));
    if (predecessor === undefined) return [];
    predecessor.endings.push({ target: task.target, status });
    predecessor.open -= 1;
    return predecessor.open > 0 ? [] : this.resolve(this.#after(task.policy, task), nowMs);
  }

  #end(slot: WaitingSlot, predecessor: PredecessorState, nowMs: number): FollowedTask | undefined {
    const policy = this.#policies.get(slot.policy);
    if (policy === undefined || !this.#waiting.has(keyOf(slot))) return undefined;
    const plan = planFollower({ policy, slot, predecessor, nowMs, pauses: this.#pauses });
    if (plan === undefined) return undefined;
    this.#waiting.delete(keyOf(slot));
    this.#forget(slot);
    this.#note(policy, toFollowedRecord(slot, plan, policy));
    const { slotMs } = slot;
    const due = { slotMs, dueMs: nowMs, origin: "schedule", covers: [] } as const;
    const tasks = plan.state === "started" ? tasksOf(policy, due) : [];
    return { policy, slotMs, plan, predecessor: predecessor.state, tasks };
  }

  /** Notes the record of a slot and how many tasks it has, for its followers. */
  #note(policy: Policy, record: SlotRecord): void {
    const waiting = this.#after(policy.name, record).length;
    if (waiting === 0) return;
    const open = record.state === "started" ? (record.targets?.length ?? 0) : 0;
    this.#predecessors.set(keyOf({ policy: policy.name, ...record }), { record, endings: [], open, waiting });
  }

  #forget({ after, slotMs }: WaitingSlot): void {
    const key = keyOf({ policy: after, slotMs });
    const predecessor = this.#predecessors.get(key);
    if (predecessor === undefined) return;
    predecessor.waiting -= 1;
    if (predecessor.waiting === 0) this.#predecessors.delete(key);
  }

  #stateOf({ after, slotMs }: WaitingSlot, nowMs: number): PredecessorState {
    const predecessor = this.#predecessors.get(keyOf({ policy: after, slotMs }));
    if (predecessor === undefined) return { state: "open" };
    const { record, open, endings } = predecessor;
    if (record.state !== "started") return { state: "not-started", record };
    if (open > 0 || record.kind === undefined) return { state: "open" };
    return { state: "ended", kind: record.kind, endedMs: nowMs, isReleased: true, endings };
  }

  #after(policy: string, { slotMs }: { readonly slotMs: number }): WaitingSlot[] {
    return this.#followers.direct(policy).flatMap((name) => this.#waiting.get(keyOf({ policy: name, slotMs })) ?? []);
  }
}

function keyOf({ policy, slotMs }: { readonly policy: string; readonly slotMs: number }): string {
  return `${policy} ${slotMs}`;
}
