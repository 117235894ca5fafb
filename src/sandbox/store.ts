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
/** An activity by meaning; `finishedAt` null while running. The sandbox's choice (options.ts). */
type Activity = {
  readonly activityId: number;
  readonly syncJobId: number;
  readonly state: "Running" | "Finished" | "Failed";
  readonly startedAt: string;
  readonly finishedAt: string | null;
  readonly itemsProcessed: number;
};
/** A conflict detail by meaning. The sandbox's own choice (options.ts). */
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

/** All data of a sandbox. */
export type Store = ReturnType<typeof createStore>;

/** An empty state. Maps are in key order, lists in order of appearance. */
export function createStore() {
  return {
    syncJobs: new Map<number, Row<SyncJob>>(),
    masks: new Map<number, Row<Mask>>(),
    driveTargets: new Map<number, Row<SyncTarget>>(),
    siteTargets: new Map<number, Row<SyncTarget>>(),
    triggers: new Map<number, Row<Trigger>>(),
    approvals: new Map<number, Row<Approval>>(),
    authActivities: [] as Row<AuthActivity>[],
    identities: [] as Row<Identity>[],
    activities: [] as Row<Activity>[],
    conflicts: [] as Row<Conflict>[],
    /** Running runs, in the order of their start. */
    openRuns: [] as OpenRun[],
    /** How often each sync job was run since the sandbox started. */
    runsOfJob: new Map<number, number>(),
    /** The sync jobs that were activated. The interface shows no field for it. */
    activated: new Set<number>(),
    /** The next free ids: a removed entity's id is never used again. */
    approvalIdNext: 1,
    conflictIdNext: 1,
    /** What next links without content stand for. */
    links: new KeptLinks(),
    /** How often each list was shuffled. */
    shuffles: new Map<string, number>(),
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
