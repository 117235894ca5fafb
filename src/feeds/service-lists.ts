// Maps each list to the service's operation that reads it.

import type { ListName } from "../core/list-name.ts";
import type { ListOperation } from "../service/operations.ts";

/** The list operation behind each list. Source: service-interface §4.1 */
export const operationOf: Readonly<Record<ListName, ListOperation>> = {
  activities: "GetActivities",
  conflictDetails: "GetConflictDetails",
  approvals: "GetApprovals",
  triggers: "GetTriggers",
  authActivities: "GetAuthActivities",
  masks: "GetJobMasks",
};
