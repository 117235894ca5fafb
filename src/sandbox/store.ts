// The state of one sandbox: plain data in memory. Every entity belongs to one destination
// repository. Filled by sandbox.ts, changed by handlers and runs; knows no HTTP.
import { KeptLinks } from "./odata-page.ts";

/** An entity and its repository key. */
export interface Row<E> {
  readonly repository: string;
  entity: E;
}

/** SyncJobEntity. Source of all: service-interface §2. */
export type SyncJob = { readonly syncJobId: number; readonly name: string };
/** MaskEntity. */
type Mask = {
  readonly maskId: number;
  readonly name: string;
  readonly ecmMaskId: string;
  readonly type: "DocMask" | "FolderMask";
  readonly syncJobId: number;
};
/** DriveSyncTargetEntity and SiteSyncTargetEntity: the same fields. */
type SyncTarget = {
  readonly thirdSystemSyncTargetId: number;
  readonly siteName: string;
  readonly siteId: string;
  readonly folderName: string;
  readonly folderId: string;
};
/** ApprovalEntity. */
type Approval = { readonly approvalId: number; readonly itemName: string; readonly itemId: string };
/** TriggerEntity. */
type Trigger = { readonly triggerId: number; readonly isActive: boolean };
/** AuthAccountActivityEntity, without its further fields. */
type AuthActivity = {
  readonly authAccountActivityEntityId: number;
  readonly accountIdentifier: boolean;
  readonly accountObjectId: boolean;
};
/** EcmIdentityEntity. */
type Identity = {
  readonly id: string;
  readonly idAsNumber: number;
  readonly name: string;
  readonly isAdministrator: boolean;
};
/** An activity by meaning; `finishedAt` null while running. The sandbox's own choice (shape.ts). */
type Activity = {
  readonly activityId: number;
  readonly syncJobId: number;
  readonly state: "Running" | "Finished" | "Failed";
  readonly startedAt: string;
  readonly finishedAt: string | null;
  readonly itemsProcessed: number;
};
/** A conflict detail by meaning. The sandbox's own choice (shape.ts). */
type Conflict = {
  readonly conflictId: number;
  readonly syncJobId: number;
  readonly itemName: string;
  readonly detectedAt: string;
};

/** A running run. Its end is decided already; the first request after `endsAtMs` applies it. */
export interface OpenRun {
  readonly row: Row<Activity>;
  readonly endsAtMs: number;
  readonly runNumber: number;
  /** The approval that keeps it running, when approvals block. */
  readonly waitsFor: number | undefined;
}

/** All data of a sandbox. Maps are in key order, lists in order of appearance. */
export interface Store {
  readonly syncJobs: Map<number, Row<SyncJob>>;
  readonly masks: Map<number, Row<Mask>>;
  readonly driveTargets: Map<number, Row<SyncTarget>>;
  readonly siteTargets: Map<number, Row<SyncTarget>>;
  readonly triggers: Map<number, Row<Trigger>>;
  readonly approvals: Map<number, Row<Approval>>;
  readonly authActivities: Row<AuthActivity>[];
  readonly identities: Row<Identity>[];
  readonly activities: Row<Activity>[];
  conflicts: Row<Conflict>[];
  /** Running runs, in the order of their start. */
  openRuns: OpenRun[];
  /** How often each sync job was run since the sandbox started. */
  readonly runsOfJob: Map<number, number>;
  /** The sync jobs that were activated. The interface shows no field for it. */
  readonly activated: Set<number>;
  /** The next free ids: a removed entity's id is never used again. */
  approvalIdNext: number;
  conflictIdNext: number;
  /** What next links without content stand for. */
  readonly links: KeptLinks;
  /** How often each list was shuffled. */
  readonly shuffles: Map<string, number>;
}

/** An empty state. */
export function createStore(): Store {
  return {
    syncJobs: new Map(),
    masks: new Map(),
    driveTargets: new Map(),
    siteTargets: new Map(),
    triggers: new Map(),
    approvals: new Map(),
    authActivities: [],
    identities: [],
    activities: [],
    conflicts: [],
    openRuns: [],
    runsOfJob: new Map(),
    activated: new Set(),
    approvalIdNext: 1,
    conflictIdNext: 1,
    links: new KeptLinks(),
    shuffles: new Map(),
  };
}

/** True when a run of the sync job has not ended. Call after settling the runs. */
export function isRunning(store: Store, syncJobId: number): boolean {
  return store.openRuns.some((run) => run.row.entity.syncJobId === syncJobId);
}

/** Removes a sync job with its masks, targets and trigger; activities and conflicts stay. */
export function removeSyncJob(store: Store, syncJobId: number): void {
  store.syncJobs.delete(syncJobId);
  store.driveTargets.delete(syncJobId);
  store.siteTargets.delete(syncJobId);
  store.triggers.delete(syncJobId);
  for (const [maskId, mask] of store.masks) {
    if (mask.entity.syncJobId === syncJobId) store.masks.delete(maskId);
  }
}
