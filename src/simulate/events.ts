// What happens in a simulation, told one after the other: made by simulation.ts, counted by tally.ts and the meters.
import type { Policy } from "../config/policy-set.ts";
import type { FollowerPlan } from "../schedule/plan-follower.ts";
import type { SlotPlan } from "../schedule/plan-slots.ts";
import type { OutcomeStatus } from "../tasks/outcome.ts";
import type { Task } from "../tasks/task.ts";

/** A task with its policy. */
export interface SimulatedTask {
  readonly policy: Policy;
  readonly task: Task;
}

/**
 * What becomes of a slot: of a policy with a schedule, or of one that follows another. `isUnwished`: the predecessor started, and did
 * not end so that its follower may.
 */
export type SimulatedPlan =
  | SlotPlan
  | {
      readonly slotMs: number;
      readonly state: "skipped";
      readonly reason: Extract<FollowerPlan, { readonly state: "skipped" }>["detail"];
      readonly note: string;
      readonly isUnwished: boolean;
    }
  | { readonly slotMs: number; readonly state: "missed"; readonly reason: "after-within"; readonly note: string };

/**
 * One event. Instants are milliseconds UTC and never go back.
 * `planned`: a look found slots due, or a slot that waited for its predecessor has its end. `masks`: the masks of a policy are read. `started`: a request goes out, `endsAtMs`: when the run
 * is over in the service, `heldUntilMs`: how long Syncline takes care of it; `turnMs` was spent waiting for a free worker, `behindMs`
 * behind another run; `atOnceWith`: a run of the same sync job that is still going on; `status`: how it ends at `heldUntilMs`.
 * `not-started`: nothing was sent.
 */
export type SimulationEvent =
  | {
      readonly event: "planned";
      readonly nowMs: number;
      readonly policy: Policy;
      readonly plans: readonly SimulatedPlan[];
    }
  | (SimulatedTask & { readonly event: "masks"; readonly atMs: number })
  | (SimulatedTask & {
      readonly event: "started";
      readonly atMs: number;
      readonly endsAtMs: number;
      readonly heldUntilMs: number;
      readonly turnMs: number;
      readonly behindMs: number;
      readonly atOnceWith: string | undefined;
      readonly status: OutcomeStatus;
    })
  | (SimulatedTask & {
      readonly event: "not-started";
      readonly atMs: number;
      readonly reason: "overlap" | "too-late";
      /** The task that holds the sync job. */
      readonly holder: string | undefined;
    });
