// The events of a simulation: emitted by simulation.ts, counted by tally.ts and the meters.
import type { Policy } from "../config/policy-set.ts";
import type { OutcomeStatus } from "../model/outcome.ts";
import type { Task } from "../model/task.ts";
import type { FollowerPlan } from "../schedule/plan-follower.ts";
import type { SlotPlan } from "../schedule/plan-slots.ts";

/** A task with its policy. */
export interface SimulatedTask {
  readonly policy: Policy;
  readonly task: Task;
}

/**
 * The plan of a slot, of a policy with a schedule or of a follower. `isProblem`: the predecessor
 * started, but ended so that the follower does not.
 */
export type SimulatedPlan =
  | SlotPlan
  | {
      readonly slotMs: number;
      readonly state: "skipped";
      readonly reason: Extract<FollowerPlan, { readonly state: "skipped" }>["detail"];
      readonly note: string;
      readonly isProblem: boolean;
    }
  | { readonly slotMs: number; readonly state: "missed"; readonly reason: "after-within"; readonly note: string };

/**
 * One event. Instants are milliseconds UTC and never go back. `planned`: a tick found due slots, or
 * a waiting slot is resolved. `masks`: the worker reads the masks of a policy. `started`: a request
 * is sent. `endsAtMs`: when the run is over in the service; `heldUntilMs`: until when its task is
 * open; `turnMs`: the wait for a free worker; `behindMs`: the wait behind another run;
 * `atOnceWith`: another run of the sync job that goes on; `status`: how the task ends at
 * `heldUntilMs`. `not-started`: nothing was sent.
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
