// The table of everything the service answers: operation, method, path, handler. Called by the exchange.
// Source: service-interface §4.1
import type { Call, World } from "./call.ts";
import { getIdentity } from "./identity.ts";
import { countList, getList, type ListView, listViews } from "./lists.ts";
import type { OperationName } from "./operation-names.ts";
import { matchPath, type PathForm } from "./path.ts";
import type { Reply } from "./reply.ts";
import { deleteSyncJob, enableSyncJob, getSyncJob, runSyncJob, updateSyncJob } from "./sync-jobs.ts";
import { updateDocMask, updateDriveTarget, updateSiteTarget } from "./targets.ts";

/** Answers one request. @throws Refusal to answer with an error status. */
type Handler = (world: World, call: Call) => Reply;

/** One line of the table. */
export interface Route {
  readonly operation: OperationName;
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  readonly path: string;
  readonly form: PathForm;
  readonly handler: Handler;
}

const routes: readonly Route[] = [
  key("GetSyncJobById", "GET", "/odata/syncjobs", getSyncJob),
  key("UpdateSyncJobById", "PUT", "/odata/syncjobs", updateSyncJob),
  key("DeleteSyncJobById", "DELETE", "/odata/syncjobs", deleteSyncJob),
  key("RunSyncJob", "POST", "/api/syncjobs/run", runSyncJob),
  key("EnableSyncJobById", "POST", "/api/syncjobs/activate", enableSyncJob),
  key("UpdateEcmDocumentMaskById", "PUT", "/odata/syncjobsdocmasks", updateDocMask),
  ...list("GetJobMasks", listViews.masks),
  key("UpdateDriveSyncTargetById", "PUT", "/odata/drivesynctargets", updateDriveTarget),
  key("UpdateSiteSyncTargetById", "PUT", "/odata/sitesynctargets", updateSiteTarget),
  ...list("GetApprovals", listViews.approvals),
  ...["ecmsync.userorgroup", "userorgroup"].map(identity),
  ...list("GetTriggers", listViews.triggers),
  ...list("GetAuthActivities", listViews.authActivities),
  ...list("GetActivities", listViews.activities),
  ...list("GetConflictDetails", listViews.conflicts),
];

/** The operations that answer 401 to a caller without the rights. Source: service-interface §5.2 */
export const guardedOperations: ReadonlySet<OperationName> = new Set<OperationName>([
  "RunSyncJob",
  "EnableSyncJobById",
  "GetSyncJobById",
  "UpdateSyncJobById",
  "DeleteSyncJobById",
  "GetIdentityById",
]);

/** A route with the key or arguments from the path; or the methods that the path does take (none: unknown path). */
export type RouteMatch =
  | { readonly route: Route; readonly key: string }
  | { readonly route: undefined; readonly methods: readonly string[] };

/** Finds the route of a request. */
export function findRoute(method: string, segments: readonly string[]): RouteMatch {
  const methods: string[] = [];
  for (const route of routes) {
    const found = matchPath(segments, route.path, route.form);
    if (found === undefined) continue;
    if (route.method === method) return { route, key: found };
    methods.push(route.method);
  }
  return { route: undefined, methods };
}

function key(operation: OperationName, method: Route["method"], path: string, handler: Handler): Route {
  return { operation, method, path, form: "key", handler };
}

function list(operation: OperationName, view: ListView): readonly Route[] {
  const shared = { operation, method: "GET", path: `/odata/${view.name}` } as const;
  return [
    { ...shared, form: "list", handler: (world, call) => getList(view, world, call) },
    { ...shared, form: "count", handler: (world, call) => countList(view, world, call) },
  ];
}

function identity(name: string): Route {
  const path = `/odata/ecmidentities/${name}`;
  return { operation: "GetIdentityById", method: "GET", path, form: "call", handler: getIdentity };
}
