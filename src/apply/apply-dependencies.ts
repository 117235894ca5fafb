// What applying an object needs from outside: the service, the memory, and who works on a sync job.
// Filled in by app.ts and the commands.
import type { DeclaredKind, DeclaredObject, ObjectPlace } from "../core/declared-object.ts";
import type { AppliedRecord, ReadOnlyField } from "../model/applied-record.ts";
import type { SyncService } from "../service/client.ts";
import type { MaskCache } from "./mask-cache.ts";

/** What is remembered of objects (store/declared-memory.ts). */
export interface DeclaredMemoryPort {
  nowMs(): Promise<number>;
  record(place: ObjectPlace, object: DeclaredObject): Promise<AppliedRecord>;
  remember(place: ObjectPlace, object: DeclaredObject, record: AppliedRecord): Promise<void>;
  hold(place: ObjectPlace, object: DeclaredObject, by: string): Promise<string>;
  letGo(place: ObjectPlace, object: DeclaredObject, by: string): Promise<void>;
  readOnly(service: string, kind: DeclaredKind): Promise<readonly ReadOnlyField[]>;
  learn(service: string, kind: DeclaredKind, field: ReadOnlyField): Promise<void>;
  unlearn(service: string, kind: DeclaredKind, field: string): Promise<void>;
}

/** What inspecting an object needs. */
export interface InspectDependencies {
  readonly place: ObjectPlace;
  readonly service: SyncService;
  readonly masks: MaskCache;
  readonly memory: DeclaredMemoryPort;
  readonly signal: AbortSignal;
  /** By the monotonic clock: a reading of the masks that began since then is fresh enough. */
  readonly sinceMs: number;
  /** Refusals before this instant (Redis time) do not count: those fields are tried again. */
  readonly forgetBeforeMs?: number;
}

/** What applying an object needs. */
export interface ApplyDependencies extends InspectDependencies {
  /** The task that applies. What it changed before an interruption counts as its own. */
  readonly by: string;
  /** Which task or person works on a sync job now, so that nothing may be sent. */
  readonly holder: (syncJobId: string) => Promise<string | undefined>;
}
