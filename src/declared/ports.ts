// What applying an object needs from outside: the service, the memory, and whether it may send now. Built by app.ts and by the commands.
import type { DeclaredKind, DeclaredObject, ObjectOwner } from "../core/declared-object.ts";
import type { SyncService } from "../service/client.ts";
import type { AppliedRecord, ReadOnlyField } from "../tasks/applied-record.ts";
import type { MaskShelf } from "./mask-shelf.ts";

/** What is remembered of objects (store/declared-memory.ts). */
export interface Memory {
  nowMs(): Promise<number>;
  record(owner: ObjectOwner, object: DeclaredObject): Promise<AppliedRecord>;
  remember(owner: ObjectOwner, object: DeclaredObject, record: AppliedRecord): Promise<void>;
  readOnly(service: string, kind: DeclaredKind): Promise<readonly ReadOnlyField[]>;
  learn(service: string, kind: DeclaredKind, field: ReadOnlyField): Promise<void>;
  unlearn(service: string, kind: DeclaredKind, field: string): Promise<void>;
}

/** What looking at an object needs. */
export interface LookParts {
  readonly owner: ObjectOwner;
  readonly service: SyncService;
  readonly masks: MaskShelf;
  readonly memory: Memory;
  readonly signal: AbortSignal;
  /** By the monotonic clock: a reading of the masks that was begun then or later shows what is live. */
  readonly sinceMs: number;
  /** Refusals from before this instant, by Redis, do not count: what was refused then is tried again. */
  readonly forgetBeforeMs?: number;
}

/** What applying an object needs. */
export interface ApplyParts extends LookParts {
  /** Who applies: a task's id. What it changed before it was interrupted is told as its own. */
  readonly by: string;
  /** Who works on a sync job right now, so that nothing may be sent; undefined when nobody does. */
  readonly holder: (syncJobId: string) => Promise<string | undefined>;
}
