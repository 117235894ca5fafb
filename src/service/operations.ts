// The one table of the service's operations: method, paths, body, answer and documented statuses.
// Holds facts only. Used by request-url.ts, client.ts, `syncline api` and the reference pages.
// Source: service-interface §4.1 (operations, paths), §4.2 (parameters), §7 (statuses).

/**
 * The key in parentheses or as a path segment; the service treats both alike. Source:
 * service-interface §4.
 */
export type PathForm = "parentheses" | "segment";

/**
 * What the answer holds: one entity, a page of entities, a boolean, nothing, or the identities in
 * `value`.
 */
type AnswerShape = "entity" | "list" | "boolean" | "nothing" | "identities";

/** The facts about one operation. */
export interface OperationFacts {
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /** Path under the base URL, without the key and without a trailing slash. */
  readonly path: string;
  /**
   * `key`: `{path}({key})` or `{path}/{key}`; `none`: the path alone; `identity`: the function with
   * two named values.
   */
  readonly target: "key" | "none" | "identity";
  /** Whether `{path}/$count` exists. */
  readonly hasCount: boolean;
  /** Whether a JSON object must be sent. */
  readonly hasBody: boolean;
  readonly answer: AnswerShape;
  /**
   * Whether a repeated identical request changes no more than the first: true for reads and PUT.
   */
  readonly safeToRepeat: boolean;
  /** What the interface says of each status; a missing status is not documented. */
  readonly statuses: Readonly<Partial<Record<number, string>>>;
}

const invalid = "invalid request data";
const noAccess = "access not allowed";
const loading = "server error while loading";
const updating = "server error during update";

const list = { method: "GET", target: "none", hasCount: true, hasBody: false, answer: "list" } as const;
const update = { method: "PUT", target: "key", hasCount: false, hasBody: true, answer: "entity" } as const;
const start = { method: "POST", target: "key", hasCount: false, hasBody: false, answer: "nothing" } as const;

/** The fifteen operations by their names in the interface. Source: service-interface §4.1, §7. */
export const operations = {
  GetSyncJobById: {
    method: "GET",
    path: "/odata/syncjobs",
    target: "key",
    hasCount: false,
    hasBody: false,
    answer: "entity",
    safeToRepeat: true,
    statuses: { 400: invalid, 401: noAccess, 500: loading },
  },
  UpdateSyncJobById: {
    ...update,
    path: "/odata/syncjobs",
    safeToRepeat: true,
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
    hasCount: false,
    hasBody: false,
    answer: "boolean",
    safeToRepeat: false,
    statuses: { 400: invalid, 401: noAccess, 404: "no sync job with the id", 500: "server error during deletion" },
  },
  RunSyncJob: {
    ...start,
    path: "/api/syncjobs/run",
    safeToRepeat: false,
    statuses: { 400: invalid, 401: noAccess, 500: "starting the run failed on the server" },
  },
  EnableSyncJobById: {
    ...start,
    path: "/api/syncjobs/activate",
    safeToRepeat: false,
    statuses: { 400: invalid, 401: noAccess, 500: "activation failed on the server" },
  },
  UpdateEcmDocumentMaskById: {
    ...update,
    path: "/odata/syncjobsdocmasks",
    safeToRepeat: true,
    statuses: { 400: "invalid request data, or read-only properties sent", 500: updating },
  },
  GetJobMasks: {
    ...list,
    path: "/odata/syncjobsmasks",
    safeToRepeat: true,
    statuses: { 400: invalid, 500: loading },
  },
  UpdateDriveSyncTargetById: {
    ...update,
    path: "/odata/drivesynctargets",
    safeToRepeat: true,
    statuses: { 400: "immutable properties sent, or no data could be read from the request", 500: updating },
  },
  UpdateSiteSyncTargetById: {
    ...update,
    path: "/odata/sitesynctargets",
    safeToRepeat: true,
    statuses: { 400: "invalid request data, or read-only properties sent", 500: updating },
  },
  GetApprovals: {
    ...list,
    path: "/odata/approvals",
    safeToRepeat: true,
    statuses: { 400: invalid, 500: loading },
  },
  GetIdentityById: {
    method: "GET",
    path: "/odata/ecmidentities",
    target: "identity",
    hasCount: false,
    hasBody: false,
    answer: "identities",
    safeToRepeat: true,
    statuses: { 400: invalid, 401: "caller lacks rights to load identities", 500: loading },
  },
  GetTriggers: { ...list, path: "/odata/trigger", safeToRepeat: true, statuses: { 500: loading } },
  GetAuthActivities: {
    ...list,
    path: "/odata/authactivities",
    safeToRepeat: true,
    statuses: { 400: invalid, 500: loading },
  },
  GetActivities: {
    ...list,
    path: "/odata/synchronizationactivities",
    safeToRepeat: true,
    statuses: { 400: invalid, 500: loading },
  },
  GetConflictDetails: {
    ...list,
    path: "/odata/syncconflictdetails",
    safeToRepeat: true,
    statuses: { 500: loading },
  },
} as const satisfies Record<string, OperationFacts>;

/** The name of an operation, as in the interface. */
export type Operation = keyof typeof operations;

/** The operations that list entities page by page and have a `$count` twin. */
export type ListOperation = {
  [Name in Operation]: (typeof operations)[Name]["hasCount"] extends true ? Name : never;
}[Operation];

/** The operations that take a JSON body. */
export type UpdateOperation = {
  [Name in Operation]: (typeof operations)[Name]["hasBody"] extends true ? Name : never;
}[Operation];

/** Every operation name, in the order of the interface. */
export const operationNames = Object.keys(operations) as readonly Operation[];

/** The facts of an operation, with its literal types widened. */
export function factsOf(operation: Operation): OperationFacts {
  return operations[operation];
}

/**
 * What the interface says of a status for an operation, with its section; undefined where it says
 * nothing.
 */
export function documentedStatus(operation: Operation, status: number): string | undefined {
  const meaning = factsOf(operation).statuses[status];
  return meaning === undefined ? undefined : `${meaning} (service-interface §7)`;
}
