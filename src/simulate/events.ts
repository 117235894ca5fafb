// The events of a simulation: emitted by simulation.ts, counted by the meters.
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

type FollowerSkip = Extract<FollowerPlan, { readonly state: "skipped" }>["detail"];

/**
 * A planned slot. `isProblem`: the predecessor started, but ended so that the follower does not.
 */
export type SimulatedPlan = { readonly slotMs: number } & (
  | SlotPlan
  | {
      readonly state: "skipped";
      readonly reason: FollowerSkip;
      readonly note: string;
      readonly isProblem: boolean;
    }
  | { readonly state: "missed"; readonly reason: "after-within"; readonly note: string }
);

interface StartedEvent extends SimulatedTask {
  readonly event: "started";
  readonly atMs: number;
  /** When the run is over in the service. */
  readonly endsAtMs: number;
  /** Until when its task is open, and how it ends then. */
  readonly heldUntilMs: number;
  readonly status: OutcomeStatus;
  /** The wait for a free worker. */
  readonly turnMs: number;
  /** The wait behind another run. */
  readonly behindMs: number;
  /** Another run of the sync job that goes on. */
  readonly atOnceWith: string | undefined;
}

/** Nothing was sent. `holder`: the task that holds the sync job. */
interface NotStartedEvent extends SimulatedTask {
  readonly event: "not-started";
  readonly atMs: number;
  readonly reason: "overlap" | "too-late";
  readonly holder: string | undefined;
}

/** A tick found due slots, or a waiting slot is resolved. */
interface PlannedEvent {
  readonly event: "planned";
  readonly nowMs: number;
  readonly policy: Policy;
  readonly plans: readonly SimulatedPlan[];
}

/** One event; `masks`: a worker reads masks. Instants are milliseconds UTC and never go back. */
export type SimulationEvent =
  | PlannedEvent
  | (SimulatedTask & { readonly event: "masks"; readonly atMs: number })
  | StartedEvent
  | NotStartedEvent;
