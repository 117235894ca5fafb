// What the steps of a task work with. app.ts builds it once per process; this folder does not know
// the queue.

import type { DeclaredMemoryPort } from "../apply/contracts.ts";
import type { MaskCache } from "../apply/mask-cache.ts";
import type { Policy } from "../config/policy-set.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Denied, LimiterRequest, Permit } from "../core/limiter.ts";
import type { ActivePredicate, ItemReader } from "../feeds/mapping.ts";
import type { EnqueueTasks, FindJobStatus, FollowChains } from "../model/contracts.ts";
import type { Feed } from "../model/feed.ts";
import type { Task } from "../model/task.ts";
import type { SyncService } from "../service/client.ts";
import type { FeedStore } from "../store/feed-store.ts";
import type { Leases } from "../store/leases.ts";
import type { PollStore } from "../store/poll-store.ts";
import type { ScriptedAcquire } from "../store/service-limiter.ts";
import type { SharedReadings } from "../store/shared-readings.ts";
import type { StartJournal } from "../store/start-journal.ts";
import type { TaskTiming } from "./follow-pace.ts";

/** The dependencies of every step. Lookups return undefined for what is no longer configured. */
export interface TaskDependencies {
  readonly policy: (name: string) => Policy | undefined;
  readonly service: (name: string) => SyncService | undefined;
  /**
   * Why nothing may be sent to a service right now: it throttles, or its circuit breaker is open.
   */
  readonly deniedBy: (service: string) => Promise<Denied | undefined>;
  /** Asks the limiter of a service for the permit of one exchange. */
  readonly acquire: (service: string, request: LimiterRequest) => Promise<Permit | Denied>;
  /** The limiter's part of the script that permits a start; undefined where there are no limits. */
  readonly scriptedAcquire: (service: string, resource: string) => ScriptedAcquire | undefined;
  /**
   * Whether Redis may have lost a start of this task (`loss`), or that is not known yet (`hold`).
   */
  readonly checkFence: (task: Task) => Promise<"hold" | "loss" | undefined>;
  readonly itemReader: (feed: Feed) => ItemReader | undefined;
  /** Reads whether a sync job is active; undefined where the mapping does not say how. */
  readonly activePredicate: (service: string) => ActivePredicate | undefined;
  readonly journal: StartJournal;
  readonly leases: Leases;
  readonly feeds: FeedStore;
  readonly polls: PollStore;
  /** Polls of one list that are due together share one reading. */
  readonly sharedReadings: SharedReadings;
  readonly isPolledTogether: (feed: Feed) => boolean;
  /** Makes sure that a walk of the feed is queued; with `hurry`, as soon as its pace allows. */
  readonly read: (feed: Feed, options: { readonly hurry: boolean }) => Promise<void>;
  readonly enqueue: EnqueueTasks;
  /** The status of another task's job: open, over or missing. */
  readonly jobStatus: FindJobStatus;
  readonly chains: FollowChains;
  /** For declared objects: cached masks, and the record of what was applied. */
  readonly declared: { readonly masks: MaskCache; readonly memory: DeclaredMemoryPort };
  /** The shared clock: Redis's. */
  readonly nowMs: () => Promise<number>;
  /** Aborts when the process stops: from then on no start is permitted. */
  readonly stopping: AbortSignal;
  readonly timing: TaskTiming;
  readonly log: EventLog;
}
