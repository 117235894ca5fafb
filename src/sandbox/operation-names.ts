// The names of the fifteen operations. Used by routes, faults and shape.

/**
 * Every operation of the service.
 * Source: service-interface §4.1
 */
export const operationNames = [
  "GetSyncJobById",
  "UpdateSyncJobById",
  "DeleteSyncJobById",
  "RunSyncJob",
  "EnableSyncJobById",
  "UpdateEcmDocumentMaskById",
  "GetJobMasks",
  "UpdateDriveSyncTargetById",
  "UpdateSiteSyncTargetById",
  "GetApprovals",
  "GetIdentityById",
  "GetTriggers",
  "GetAuthActivities",
  "GetActivities",
  "GetConflictDetails",
] as const;

/** The name of one operation of the service. */
export type OperationName = (typeof operationNames)[number];
