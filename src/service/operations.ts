// The one table of the service's operations: method, paths, answer and documented statuses. Holds
// facts only. Used by request-url.ts, client.ts, `syncline api` and the reference pages.
// Source: service-interface §4.1 (operations, paths), §4.2 (parameters), §7 (statuses).

/** The key in parentheses or as a path segment: the service treats both alike. */
export type PathForm = "parentheses" | "segment";

/** The facts about one operation. A PUT sends a JSON object; a list has a `$count` twin. */
export interface OperationFacts {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** Path under the base URL, without the key and without a trailing slash. */
  readonly path: string;
  /** `identity`: the function with two named values. */
  readonly target: "key" | "none" | "identity";
  /** `identities`: those in `value`. */
  readonly answer: "entity" | "list" | "boolean" | "nothing" | "identities";
  /** What the interface says of each status; a missing status is not documented. */
  readonly statuses: Readonly<Partial<Record<number, string>>>;
}

const invalid = "invalid request data";
const noAccess = "access not allowed";
const loading = "server error while loading";
const updating = "server error during update";

const list = { method: "GET", target: "none", answer: "list", statuses: { 400: invalid, 500: loading } } as const;
const update = { method: "PUT", target: "key", answer: "entity" } as const;
const start = { method: "POST", target: "key", answer: "nothing" } as const;

/** The fifteen operations by their names in the interface. Source: service-interface §4.1, §7. */
export const operations = {
  GetSyncJobById: {
    method: "GET",
    path: "/odata/syncjobs",
    target: "key",
    answer: "entity",
    statuses: { 400: invalid, 401: noAccess, 500: loading },
  },
  UpdateSyncJobById: {
    ...update,
    path: "/odata/syncjobs",
    statuses: {
      400: "no sync job data could be read from the request, or read-only properties sent",
      401: noAccess,
      404: "no sync job with the id",
      500: updating,
    },
  },
  DeleteSyncJobById: {
    method: "DELETE",
    path: "/odata/syncjobs",
    target: "key",
    answer: "boolean",
    statuses: { 400: invalid, 401: noAccess, 404: "no sync job with the id", 500: "server error during deletion" },
  },
  RunSyncJob: {
    ...start,
    path: "/api/syncjobs/run",
    statuses: { 400: invalid, 401: noAccess, 500: "starting the run failed on the server" },
  },
  EnableSyncJobById: {
    ...start,
    path: "/api/syncjobs/activate",
    statuses: { 400: invalid, 401: noAccess, 500: "activation failed on the server" },
  },
  UpdateEcmDocumentMaskById: {
    ...update,
    path: "/odata/syncjobsdocmasks",
    statuses: { 400: "invalid request data, or read-only properties sent", 500: updating },
  },
  GetJobMasks: { ...list, path: "/odata/syncjobsmasks" },
  UpdateDriveSyncTargetById: {
    ...update,
    path: "/odata/drivesynctargets",
    statuses: { 400: "immutable properties sent, or no data could be read from the request", 500: updating },
  },
  UpdateSiteSyncTargetById: {
    ...update,
    path: "/odata/sitesynctargets",
    statuses: { 400: "invalid request data, or read-only properties sent", 500: updating },
  },
  GetApprovals: { ...list, path: "/odata/approvals" },
  GetIdentityById: {
    method: "GET",
    path: "/odata/ecmidentities",
    target: "identity",
    answer: "identities",
    statuses: { 400: invalid, 401: "caller lacks rights to load identities", 500: loading },
  },
  GetTriggers: { ...list, path: "/odata/trigger", statuses: { 500: loading } },
  GetAuthActivities: { ...list, path: "/odata/authactivities" },
  GetActivities: { ...list, path: "/odata/synchronizationactivities" },
  GetConflictDetails: { ...list, path: "/odata/syncconflictdetails", statuses: { 500: loading } },
} as const satisfies Record<string, OperationFacts>;

/** The name of an operation, as in the interface. */
export type Operation = keyof typeof operations;

/** The operations that list entities page by page and have a `$count` twin. */
export type ListOperation = {
  [Name in Operation]: (typeof operations)[Name]["answer"] extends "list" ? Name : never;
}[Operation];

/** The operations that take a JSON body. */
export type UpdateOperation = {
  [Name in Operation]: (typeof operations)[Name]["method"] extends "PUT" ? Name : never;
}[Operation];

/** Every operation name, in the order of the interface. */
export const operationNames = Object.keys(operations) as readonly Operation[];

/** The facts of an operation, with its literal types widened. */
export function factsOf(operation: Operation): OperationFacts {
  return operations[operation];
}

/** What the interface says of a status for an operation; undefined where it says nothing. */
export function documentedStatus(operation: Operation, status: number): string | undefined {
  const meaning = factsOf(operation).statuses[status];
  return meaning === undefined ? undefined : `${meaning} (service-interface §7)`;
}
