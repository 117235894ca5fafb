// What a driver tells a replica process: at its start as JSON in CHAOS_REPLICA, later through the
// channel between them.
import type { FeedPace } from "../../src/feeds/pace.ts";
import type { TaskTiming } from "../../src/tasks/timing.ts";
import type { ReplicaScript, Trap } from "./fault-script.ts";

/** Load everything, so that later starts find it compiled, and end. */
export interface WarmUpOrders {
  readonly isWarmUp: true;
}

/** The orders at the start. */
export interface ReplicaOrders {
  readonly isWarmUp: false;
  readonly config: string;
  readonly redis: { readonly url: string; readonly prefix: string };
  readonly roles: ReplicaScript["roles"];
  readonly clockShiftMs: number;
  readonly traps: readonly Omit<Trap, "life">[];
  readonly takeOverAfterMs: number;
  readonly drainMs: number;
  readonly timing: TaskTiming;
  readonly pace: FeedPace;
  /** An exchange that takes longer is told. */
  readonly exchangeMsMax?: number;
}

/**
 * An order to a running replica: keep your event loop busy; your clock steps; the clock that all
 * share steps, as far as this replica's scheduler sees.
 */
export interface ReplicaOrder {
  readonly order: "block" | "clock" | "shared-clock";
  readonly ms: number;
}
