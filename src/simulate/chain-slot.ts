// A slot of a chain in a simulation: it waits for the end of its predecessor, then starts or not.
// It decides by planFollower, as schedule/chains.ts does. Called by simulation.ts.
import type { Policy } from "../config/policy-set.ts";
import type { OutcomeStatus } from "../model/outcome.ts";
import type { PredecessorState, SlotRecord } from "../model/slot-record.ts";
import { alwaysNewest, type FollowerPlan, planFollower } from "../schedule/plan-follower.ts";
import type { PlanningMoment } from "../schedule/plan-slots.ts";
import { toFollowerRecord } from "../schedule/slot-tasks.ts";

/** The policies that follow one directly. */
export type FollowersOf = (policy: string) => readonly Policy[];

/** One slot with the slots that wait for it. */
export class ChainSlot {
  readonly policy: Policy;
  readonly slotMs: number;
  readonly followers: readonly ChainSlot[];
  readonly #openedMs: number;
  readonly #predecessor: ChainSlot | undefined;
  #record: SlotRecord | undefined;
  #openTasks = 0;
  readonly #endings: { readonly target: string; readonly status: OutcomeStatus }[] = [];

  constructor(
    policy: Policy,
    { slotMs, openedMs, followersOf }: { slotMs: number; openedMs: number; followersOf: FollowersOf },
    predecessor?: ChainSlot,
  ) {
    this.policy = policy;
    this.slotMs = slotMs;
    this.#openedMs = openedMs;
    this.#predecessor = predecessor;
    const slot = { slotMs, openedMs, followersOf };
    this.followers = followersOf(policy.name).map((follower) => new ChainSlot(follower, slot, this));
  }

  /** From when on it is missed if it still waits. */
  get lateAtMs(): number {
    return Math.max(this.#openedMs, this.slotMs + (this.policy.after?.withinMs ?? 0) + 1);
  }

  /** Notes its record; its tasks are open from now on. */
  record(record: SlotRecord): void {
    this.#record = record;
    this.#openTasks = record.state === "started" ? (record.targets?.length ?? 0) : 0;
  }

  /** One of its tasks becomes this many: one for each sync job that masks name. */
  fanOut(count: number): void {
    this.#openTasks += count - 1;
  }

  /** Notes the end of a task; true when it was the last one. */
  endTask(target: string, status: OutcomeStatus): boolean {
    this.#endings.push({ target, status });
    this.#openTasks -= 1;
    return this.#openTasks === 0;
  }

  /** All slots that wait for it, directly or through others. */
  allFollowers(): ChainSlot[] {
    return this.followers.flatMap((slot) => [slot, ...slot.allFollowers()]);
  }

  /** Plans it by the state of its predecessor; undefined while it waits, or when it is planned. */
  resolve(predecessor: PredecessorState, moment: PlanningMoment): FollowerPlan | undefined {
    const { policy, slotMs, followers } = this;
    if (this.#record !== undefined || policy.after === undefined) return undefined;
    const about = { v: 1, policy: policy.name, after: policy.after.policy, followers: followers.length } as const;
    const slot = { ...about, slotMs, openedMs: this.#openedMs };
    const plan = planFollower({ policy, slot, predecessor, newestSinceMs: alwaysNewest, ...moment });
    if (plan !== undefined) this.record(toFollowerRecord(slot, plan, policy));
    return plan;
  }

  /** The state of the slot that it waits for. */
  predecessorAt(nowMs: number): PredecessorState {
    const predecessor = this.#predecessor;
    if (predecessor === undefined) return { state: "open" };
    const record = predecessor.#record;
    if (record === undefined) return { state: "open" };
    if (record.state !== "started") return { state: "not-started", record };
    if (predecessor.#openTasks > 0 || record.kind === undefined) return { state: "open" };
    const endings = predecessor.#endings;
    return { state: "ended", kind: record.kind, endedMs: nowMs, isReleased: true, endings };
  }
}
