// What the steps of a task depend on, in groups; each step names the groups it uses. app.ts builds
// them once per process. This folder does not know the queue.
import type { DeclaredMemoryPort } from "../apply/apply-dependencies.ts";
import type { MaskCache } from "../apply/mask-cache.ts";
import type { Policy } from "../config/policy-set.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Denial, LimiterRequest, Permit } from "../core/limiter.ts";
import type { ActivePredicate, ItemMapper } from "../feeds/mapping.ts";
import type { Feed } from "../model/feed.ts";
import type { Task } from "../model/task.ts";
import type { ChainProgress, EnqueueTasks, FindJobStatus } from "../model/task-processing.ts";
import type { RunFigures } from "../model/unusual.ts";
import type { SyncService } from "../service/client.ts";
import type { FeedStore } from "../store/feed-store.ts";
import type { Leases } from "../store/leases.ts";
import type { PollStore } from "../store/poll-store.ts";
import type { ScriptedAcquire } from "../store/service-limiter.ts";
import type { SharedReadings } from "../store/shared-readings.ts";
import type { StartJournal } from "../store/start-journal.ts";
import type { TaskTiming } from "./timing.ts";

/** The clock, the stop and the log of this process. */
export interface Runtime {
  /** The shared clock: Redis's. */
  readonly nowMs: () => Promise<number>;
  /** Aborts when the process stops: from then on no start is sent. */
  readonly stopping: AbortSignal;
  readonly timing: TaskTiming;
  readonly log: EventLog;
}

/** What is configured now; undefined for what no longer is. */
export interface Configuration {
  readonly policy: (name: string) => Policy | undefined;
  readonly service: (name: string) => SyncService | undefined;
  /**
   * For how long this process has had this policy set; of a policy that left, for how long it has
   * been gone. For ever unless given.
   */
  readonly unchangedForMs?: (policy: string) => number;
  /** Whether a worker has newer policies, and lives or may be back; none has unless given. */
  readonly hasNewerWorker?: () => Promise<boolean>;
}

/** What may be sent to a service now. */
export interface Limits {
  /** Why nothing may be sent: the service throttles, or its circuit breaker is open. */
  readonly denialOf: (service: string) => Promise<Denial | undefined>;
  /** Asks for the permit of one exchange. */
  readonly acquire: (service: string, request: LimiterRequest) => Promise<Permit | Denial>;
  /** The limiter's part of the script that permits a start; undefined where there are no limits. */
  readonly scriptedAcquire: (service: string, resource: () => string) => ScriptedAcquire | undefined;
}

/** What a start needs: run, activate and delete. */
export interface StartDependencies extends Runtime, Configuration, Limits {
  readonly journal: StartJournal;
  readonly leases: Leases;
  /** The status of another task's job. */
  readonly jobStatus: FindJobStatus;
  /** Reads whether a sync job is active; undefined where the mapping does not say how. */
  readonly activePredicate: (service: string) => ActivePredicate | undefined;
}

/** How the followed lists are read. */
export interface FeedAccess {
  readonly feeds: FeedStore;
  readonly itemMapper: (feed: Feed) => ItemMapper | undefined;
  /** Queues a walk of the feed unless one is; with `hurry`, as soon as its pace allows. */
  readonly requestWalk: (feed: Feed, options: { readonly hurry: boolean }) => Promise<void>;
}

/** How the newest runs of a sync job went that ended well, oldest first. */
interface KnownRuns {
  readonly runsOf: (run: Pick<Task, "policy" | "target">) => Promise<readonly RunFigures[]>;
}

/** What a run needs: a start, and the lists that show it. */
export interface RunDependencies extends StartDependencies, FeedAccess, KnownRuns {}

/** What reading a list together needs. */
export interface ReadDependencies
  extends Pick<Runtime, "nowMs" | "log">,
    Pick<FeedAccess, "itemMapper" | "requestWalk"> {
  readonly sharedReadings: SharedReadings;
  readonly isPolledTogether: (feed: Feed) => boolean;
}

/** What a poll needs. */
export interface PollDependencies extends ReadDependencies, Configuration {
  readonly polls: PollStore;
}

/** What an apply task needs. */
export interface ApplyTaskDependencies extends Runtime, Configuration, Pick<Limits, "denialOf"> {
  readonly journal: Pick<StartJournal, "readCancelled">;
  readonly leases: Pick<Leases, "liveHolder">;
  readonly jobStatus: FindJobStatus;
  /** For declared objects: cached masks, and the record of what was applied. */
  readonly declared: { readonly masks: MaskCache; readonly memory: DeclaredMemoryPort };
}

/** What the fan-out of a task over sync jobs needs. */
export interface FanOutDependencies extends Configuration, Pick<Runtime, "nowMs" | "log"> {
  readonly journal: StartJournal;
  readonly enqueue: EnqueueTasks;
  readonly chains: ChainProgress;
}

/** What ending a task needs. */
export interface FinishDependencies extends Configuration, KnownRuns, Pick<Runtime, "nowMs" | "log"> {
  readonly polls: PollStore;
  readonly chains: ChainProgress;
  readonly journal: Pick<StartJournal, "entry" | "close">;
  /** Whether Redis may have lost a start of this task (`undecided`: not known yet). */
  readonly checkFence: (task: Task) => Promise<"undecided" | "loss" | undefined>;
}
