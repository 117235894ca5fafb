// What the processors work with. app.ts builds it once; nothing here knows the queue.
import type { Policy } from "../config/policy-set.ts";
import type { EventLog } from "../core/event-log.ts";
import type { GateRequest, Hold, Pass } from "../core/gate.ts";
import type { MaskShelf } from "../declared/mask-shelf.ts";
import type { Memory } from "../declared/ports.ts";
import type { ActiveSign, ItemReader } from "../feeds/mapping.ts";
import type { SyncService } from "../service/client.ts";
import type { FeedBook } from "../store/feed-book.ts";
import type { Leases } from "../store/leases.ts";
import type { PollMemories } from "../store/poll-memories.ts";
import type { Entrance } from "../store/service-gate.ts";
import type { SharedReadings } from "../store/shared-readings.ts";
import type { StartJournal } from "../store/start-journal.ts";
import type { Feed } from "../tasks/feed.ts";
import type { EnqueueTasks, FindFate, FollowChains } from "../tasks/seams.ts";
import type { Task } from "../tasks/task.ts";
import type { WorkTiming } from "./timing.ts";

/** The tools of every processor. Lookups answer undefined for what is no longer configured. */
export interface WorkParts {
  readonly policy: (name: string) => Policy | undefined;
  readonly service: (name: string) => SyncService | undefined;
  /** What holds everything to a service back right now: it asked for patience, or its breaker is open. */
  readonly held: (service: string) => Promise<Hold | undefined>;
  /** Asks a service's gate for one exchange. */
  readonly enter: (service: string, request: GateRequest) => Promise<Pass | Hold>;
  /** The way through a service's gate as a part of the step that permits a start; undefined where there are no limits. */
  readonly entrance: (service: string, subject: string) => Entrance | undefined;
  /** Whether Redis may have forgotten a start of this task (`loss`), or nobody knows yet (`hold`). */
  readonly shut: (task: Task) => Promise<"hold" | "loss" | undefined>;
  readonly itemReader: (feed: Feed) => ItemReader | undefined;
  /** Undefined where nothing tells whether a sync job is active. */
  readonly activeSign: (service: string) => ActiveSign | undefined;
  readonly journal: StartJournal;
  readonly leases: Leases;
  readonly book: FeedBook;
  readonly polls: PollMemories;
  /** What polls of one list share, and whether several policies poll it. */
  readonly readings: SharedReadings;
  readonly isPolledTogether: (feed: Feed) => boolean;
  /** Makes sure that somebody reads a feed; with `hurry`, as soon as its pace allows. */
  readonly read: (feed: Feed, options: { readonly hurry: boolean }) => Promise<void>;
  readonly enqueue: EnqueueTasks;
  /** What the queue will do with another task of this service that starts something. */
  readonly fate: FindFate;
  readonly chains: FollowChains;
  /** For declared objects: the latest readings of the masks, and what is remembered. */
  readonly declared: { readonly masks: MaskShelf; readonly memory: Memory };
  /** The shared clock: Redis's. */
  readonly nowMs: () => Promise<number>;
  /** Aborts when the process is told to stop: from then on no start is permitted. */
  readonly stopping: AbortSignal;
  readonly timing: WorkTiming;
  readonly log: EventLog;
}
