// What happens in a simulation, told one after the other: made by simulation.ts, counted by tally.ts and the meters.
import type { Policy } from "../config/policy-set.ts";
import type { Task } from "../tasks/task.ts";
import type { VirtualLook } from "./virtual-looks.ts";

/** A task with its policy. */
export interface SimulatedTask {
  readonly policy: Policy;
  readonly task: Task;
}

/**
 * One event. Instants are milliseconds UTC and never go back.
 * `planned`: a look found slots due. `masks`: the masks of a policy are read. `started`: a request goes out, `endsAtMs`: when the run
 * is over in the service, `heldUntilMs`: how long Syncline takes care of it; `turnMs` was spent waiting for a free worker, `behindMs`
 * behind another run; `atOnceWith`: a run of the same sync job that is still going on. `not-started`: nothing was sent.
 */
export type SimulationEvent =
  | ({ readonly event: "planned" } & VirtualLook)
  | (SimulatedTask & { readonly event: "masks"; readonly atMs: number })
  | (SimulatedTask & {
      readonly event: "started";
      readonly atMs: number;
      readonly endsAtMs: number;
      readonly heldUntilMs: number;
      readonly turnMs: number;
      readonly behindMs: number;
      readonly atOnceWith: string | undefined;
    })
  | (SimulatedTask & {
      readonly event: "not-started";
      readonly atMs: number;
      readonly reason: "overlap" | "too-late";
      /** The task that holds the sync job. */
      readonly holder: string | undefined;
    });
