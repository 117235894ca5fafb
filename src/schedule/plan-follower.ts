// Plans a slot that waits for its predecessor: it starts, is skipped, is missed, or goes on
// waiting. Pure; called by chains.ts and the simulation.
//
//   policy gone ─▶ skipped (removed)      predecessor did not start, or ended otherwise ─▶ skipped (predecessor)
//   later than within ─▶ missed           predecessor not at its end ─▶ wait
//   left out, and nothing known of its predecessor's end ─▶ missed
//   closed or paused when the predecessor ended, or input stale now ─▶ skipped      else ─▶ started
//   it would not start, but Redis may have lost its start ─▶ started; its task ends as unknown
import type { Policy } from "../config/policy-set.ts";
import { formatDuration } from "../core/duration.ts";
import type { OutcomeStatus } from "../model/outcome.ts";
import type { PredecessorState, SlotRecord, WaitingSlot } from "../model/slot-record.ts";
import { taskId } from "../model/task.ts";
import { isFenced, type LeftOutPlan, type PlanningMoment, planLeftOut, planSkip, type SkipPlan } from "./plan-slots.ts";

/** How a waiting slot ends. `note`: the state of the predecessor that led to it. */
export type FollowerPlan = { readonly note: string } & (
  | { readonly state: "started"; readonly detail: "followed" }
  | { readonly state: "skipped"; readonly detail: "predecessor" | "removed" | SkipPlan["reason"] }
  | { readonly state: "missed"; readonly detail: "after-within" | "left-out" }
);

/**
 * `policy`: undefined when this replica does not know it. `newestSinceMs`: since when no other has
 * newer policies.
 */
export interface FollowerInput extends PlanningMoment {
  readonly newestSinceMs: number;
  readonly policy: Policy | undefined;
  readonly slot: WaitingSlot;
  readonly predecessor: PredecessorState;
}

/** `newestSinceMs` of a replica whose policies have always been the newest. */
export const alwaysNewest = 0;

/** A policy is gone when the newest set has not named it for this long: replicas may be older. */
export const goneAfterMs = 600_000;
/** A task releases its sync job right after its outcome, unless its worker died in between. */
const releasedWithinMs = 5_000;

/** Plans a waiting slot; undefined while it waits. */
export function planFollower(input: FollowerInput): FollowerPlan | undefined {
  const plan = planByPredecessor(input);
  // Redis may have lost its start: it counts as started, and its task ends as unknown.
  return plan !== undefined && mayHaveFollowed(plan, input) ? { ...plan, state: "started", detail: "followed" } : plan;
}

/** Whether Redis may have lost its start, perhaps with the good end of its predecessor. */
function mayHaveFollowed(
  { state, detail }: FollowerPlan,
  { slot: { slotMs }, predecessor, policy, losses = [] }: FollowerInput,
): boolean {
  if (state === "started" || policy === undefined || !isFenced(policy.action.kind)) return false;
  const isLate = detail === "after-within" || detail === "stale-input";
  // A task without a fence may have ended otherwise before.
  const isUnknown =
    predecessor.state === "ended" &&
    (!isFenced(predecessor.kind) || predecessor.endings.some(({ status }) => status === "unknown"));
  if (!isLate && !(detail === "predecessor" && isUnknown)) return false;
  const lateMs = slotMs + (policy.after?.withinMs ?? 0);
  return losses.some(({ fromMs, untilMs }) => fromMs <= lateMs && slotMs <= untilMs);
}

function planByPredecessor(input: FollowerInput): FollowerPlan | undefined {
  const { policy, slot, predecessor, newestSinceMs, ...moment } = input;
  const { after, slotMs, openedMs, isLeftOut = false } = slot;
  const { nowMs } = moment;
  if (policy?.after?.policy !== after) {
    const note = `${slot.policy} does not follow ${after} any more`;
    return nowMs - Math.max(openedMs, newestSinceMs) < goneAfterMs
      ? undefined
      : { state: "skipped", detail: "removed", note };
  }
  // Newer policies may not have it any more.
  if (isLeftOut && newestSinceMs === Number.POSITIVE_INFINITY) return undefined;
  // Its predecessor may have started, but no replica noted its end for followers.
  if (isLeftOut && predecessor.state === "nothing") return toFollowerPlan(planLeftOut(policy, slotMs, nowMs));
  const stop = stopOf(slot, predecessor, policy.after.on);
  if (stop !== undefined) return { state: "skipped", detail: "predecessor", note: stop };
  if (nowMs - slotMs > policy.after.withinMs)
    return { state: "missed", detail: "after-within", note: lateNote(slot, predecessor) };
  if (predecessor.state !== "ended") return undefined;
  const { endedMs, isReleased, endings } = predecessor;
  if (!isReleased && nowMs - endedMs < releasedWithinMs) return undefined;
  // A follower comes due when its predecessor ends: blackouts and pauses count at that instant.
  const skip = planSkip(policy, endedMs, moment);
  if (skip !== undefined) return toFollowerPlan(skip);
  return { state: "started", detail: "followed", note: `${after} ended: ${countsOf(endings)}` };
}

function toFollowerPlan(plan: SkipPlan | LeftOutPlan): FollowerPlan {
  if (plan.state === "skipped") return { state: plan.state, detail: plan.reason, note: plan.note };
  return { state: plan.state, detail: plan.reason, note: "a replica without this policy planned its predecessor" };
}

/** Why the predecessor keeps the slot from starting, as soon as that is certain. */
function stopOf({ after, slotMs }: WaitingSlot, predecessor: PredecessorState, on: readonly OutcomeStatus[]) {
  switch (predecessor.state) {
    case "open":
      return undefined;
    case "nothing":
      return `${after} has no record of the slot any more`;
    case "not-started":
      return `${after} did not start: ${describeState(predecessor.record)}`;
    case "ended": {
      const others = predecessor.endings.filter(({ status }) => !on.includes(status));
      const [first] = others;
      if (first === undefined) return undefined;
      const { kind } = predecessor;
      const id = taskId({ policy: after, kind, target: first.target, slotMs, origin: "schedule" });
      return `${id} ended ${first.status}${others.length > 1 ? `, and ${others.length - 1} more` : ""}`;
    }
  }
}

/** Without the note about a predecessor's predecessor: its own record has that. */
function describeState({ state, detail, note }: SlotRecord): string {
  return `${state} (${detail})${note === undefined || detail === "predecessor" ? "" : `: ${note}`}`;
}

function lateNote({ after, slotMs }: WaitingSlot, predecessor: PredecessorState): string {
  if (predecessor.state === "open" && predecessor.isUnreadable === true)
    return `only a newer version can read what became of ${after}`;
  if (predecessor.state !== "ended") return `${after} had not ended`;
  return `${after} ended ${formatDuration(predecessor.endedMs - slotMs)} after its slot`;
}

/** `2 succeeded, 1 conflicts`. */
function countsOf(endings: readonly { readonly status: OutcomeStatus }[]): string {
  const byStatus = Map.groupBy(endings, ({ status }) => status);
  return [...byStatus].map(([status, group]) => `${group.length} ${status}`).join(", ");
}
