// The table of all that the service answers: operation, method, path, handler. Called by
// exchange.ts. Only PUT and DELETE of a sync job document a 404 (§7): what is missing is 400
// elsewhere, or 404 when `missingStatus` says so (its own choice). Source: service-interface §4.1

import {
  applySelect,
  checkSelect,
  matchPath,
  type OperationName,
  type PathForm,
  parseKey,
  parseNamedArguments,
  parseQuery,
  unquote,
} from "./address.ts";
import { type Call, checkRepository, findRow, parseUpdate, type UpdateRules, type World } from "./call.ts";
import { type Place, readToken, toPage } from "./odata-page.ts";
import { activityRoles, conflictRoles, type FieldNames, type Role, shapeEntity } from "./options.ts";
import { bareReply, jsonReply, Refusal, type Reply, textReply } from "./reply.ts";
import { activateSyncJob, runsMax, startRun } from "./runs.ts";
import { isRunning, type Row, removeSyncJob, type Store } from "./store.ts";

const syncJobRules: UpdateRules = { updatable: ["name"], readOnly: ["syncJobId"] };

const maskRules: UpdateRules = { updatable: ["name", "ecmMaskId"], readOnly: ["maskId", "type", "syncJobId"] };

const targetRules: UpdateRules = {
  updatable: ["siteName", "siteId", "folderName", "folderId"],
  readOnly: [],
  keyProperty: "thirdSystemSyncTargetId",
};

/** The lists of the service. Source: service-interface §2, §4.1 */
const listViews = {
  masks: shown("syncjobsmasks", ["maskId", "name", "ecmMaskId", "type", "syncJobId"], (s) => [...s.masks.values()]),
  approvals: shown("approvals", ["approvalId", "itemName", "itemId"], (s) => [...s.approvals.values()]),
  triggers: shown("trigger", ["triggerId", "isActive"], (s) => [...s.triggers.values()]),
  authActivities: shown(
    "authactivities",
    ["authAccountActivityEntityId", "accountIdentifier", "accountObjectId"],
    (store) => store.authActivities,
  ),
  activities: shaped("synchronizationactivities", activityRoles, (store) => store.activities),
  conflicts: shaped("syncconflictdetails", conflictRoles, (store) => store.conflicts),
} as const satisfies Readonly<Record<string, ListView>>;

const identityProperties = ["id", "idAsNumber", "name", "isAdministrator"];
const syncJobProperties = ["syncJobId", "name"] as const;

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

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
  key(
    "UpdateSyncJobById",
    "PUT",
    "/odata/syncjobs",
    update((store) => store.syncJobs, syncJobRules, 404),
  ),
  key("DeleteSyncJobById", "DELETE", "/odata/syncjobs", deleteSyncJob),
  key("RunSyncJob", "POST", "/api/syncjobs/run", runSyncJob),
  key("EnableSyncJobById", "POST", "/api/syncjobs/activate", enableSyncJob),
  key("UpdateEcmDocumentMaskById", "PUT", "/odata/syncjobsdocmasks", updateDocMask),
  ...list("GetJobMasks", listViews.masks),
  key(
    "UpdateDriveSyncTargetById",
    "PUT",
    "/odata/drivesynctargets",
    update((store) => store.driveTargets, targetRules),
  ),
  key(
    "UpdateSiteSyncTargetById",
    "PUT",
    "/odata/sitesynctargets",
    update((store) => store.siteTargets, targetRules),
  ),
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

/** A route with the key or arguments; or the methods of the path, none for an unknown one. */
type RouteMatch =
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

/** GetIdentityById: an unknown id gives an empty `value` (its own choice). Source: §4.1, §4.4 */
function getIdentity(world: World, call: Call): Reply {
  const { select } = parseQuery(call.parameters, ["$select", "$expand"]);
  checkSelect(select, identityProperties);
  const named = parseNamedArguments(call.key);
  const id = readArgument("id", named, call);
  const repository = checkRepository(readArgument("repository", named, call), world);
  if (!uuid.test(id)) throw new Refusal(400, "The argument 'id' is not a UUID.");
  const found = world.store.identities.filter(
    (row) => row.repository === repository && row.entity.id === id.toLowerCase(),
  );
  return jsonReply({
    "@odata.context": `${call.baseUrl}/odata/$metadata#ecmidentities`,
    value: found.map((row) => applySelect(row.entity, select)),
  });
}

function readArgument(name: string, named: ReadonlyMap<string, string>, call: Call): string {
  const value = named.get(name) ?? call.parameters.get(name);
  if (value === null || value === "") throw new Refusal(400, `The argument '${name}' is missing.`);
  return unquote(value);
}

type Entity = Readonly<Record<string, unknown>>;

/** One list of the service. */
interface ListView {
  readonly name: string;
  readonly key: string;
  readonly properties: (names: FieldNames) => readonly string[];
  readonly rows: (store: Store) => readonly Row<Entity>[];
  readonly toEntity: (entity: Entity, names: FieldNames) => Entity;
}

/** Answers one page of a list. Source: service-interface §2, §8 */
function getList(view: ListView, world: World, call: Call): Reply {
  const { settings, store } = world;
  const { select, skip, skipToken } = parseQuery(call.parameters, ["$select", "$expand", "$skip", "$skiptoken"]);
  checkSelect(select, view.properties(settings.fieldNames));
  const place = skipToken === undefined ? { skip } : readToken(skipToken, store.links);
  const { rows, start } = inOrder(view, world, { rows: visibleRows(view, world, call), place });
  const { baseUrl, parameters } = call;
  const request = { list: view.name, baseUrl, parameters, select, start, settings, links: store.links };
  const keyOf = (row: Row<Entity>) => Number(row.entity[view.key]);
  const toEntity = (row: Row<Entity>) => applySelect(view.toEntity(row.entity, settings.fieldNames), select);
  return jsonReply(toPage(rows, request, { keyOf, toEntity }));
}

/** Answers the number of items of a list as plain digits. Source: service-interface §4.2 */
function countList(view: ListView, world: World, call: Call): Reply {
  const { select } = parseQuery(call.parameters, ["$select", "$expand"]);
  checkSelect(select, view.properties(world.settings.fieldNames));
  return textReply(String(visibleRows(view, world, call).length));
}

function visibleRows(view: ListView, world: World, call: Call): readonly Row<Entity>[] {
  const rows = view.rows(world.store);
  return call.repository === undefined ? rows : rows.filter((row) => row.repository === call.repository);
}

/** The rows in the list's order, and how many of them come before the place. */
function inOrder(
  view: ListView,
  { settings: { order, seed }, store }: World,
  { rows, place }: { readonly rows: readonly Row<Entity>[]; readonly place: Place },
): { readonly rows: readonly Row<Entity>[]; readonly start: number } {
  const isFirst = "skip" in place && place.skip === 0;
  const shuffles = (store.shuffles.get(view.name) ?? 0) + (isFirst ? 1 : 0);
  if (order === "shuffled") store.shuffles.set(view.name, shuffles);
  const salt = scatter(order === "shuffled" ? seed + shuffles : seed);
  const rank = (key: number) => (order === "ascending" ? key : order === "descending" ? -key : scatter(salt ^ key));
  const rankOf = (row: Row<Entity>) => rank(Number(row.entity[view.key]));
  // They are in key order already.
  const sorted =
    order === "ascending"
      ? rows
      : order === "descending"
        ? rows.toReversed()
        : rows.toSorted((left, right) => rankOf(left) - rankOf(right));
  if ("skip" in place) return { rows: sorted, start: place.skip };
  const next = sorted.findIndex((row) => rankOf(row) > rank(place.after));
  return { rows: sorted, start: next < 0 ? sorted.length : next };
}

/** Maps numbers below 2^32 to others without order: the last step of MurmurHash3. */
function scatter(number: number): number {
  const once = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  const twice = Math.imul(once ^ (once >>> 13), 0xc2b2ae35);
  return (twice ^ (twice >>> 16)) >>> 0;
}

function shown(name: string, properties: readonly string[], rows: (store: Store) => readonly Row<Entity>[]): ListView {
  const [key = ""] = properties;
  return { name, key, properties: () => properties, rows, toEntity: (entity) => entity };
}

function shaped(name: string, roles: readonly Role[], rows: (store: Store) => readonly Row<Entity>[]): ListView {
  return {
    name,
    key: roles[0] ?? "",
    properties: (names) => roles.flatMap((role) => names[role] ?? []),
    rows,
    toEntity: (entity, names) => shapeEntity(entity, roles, names),
  };
}

/** Merges the changes of a PUT. Source: service-interface §4.1, §4.3 */
function update<E extends object>(
  rowsOf: (store: Store) => ReadonlyMap<number, Row<E>>,
  rules: UpdateRules,
  missingStatus?: number,
): Handler {
  return ({ store, settings }, call) => {
    parseQuery(call.parameters, []);
    const key = parseKey(call.key);
    const changes = parseUpdate(call.body, rules, key);
    const row = findRow(rowsOf(store), key, call, missingStatus ?? settings.missingStatus);
    row.entity = { ...row.entity, ...changes };
    return jsonReply(row.entity, { key: String(key), repository: row.repository, runNumber: null });
  };
}

/** Folder masks are no document masks. */
function updateDocMask(world: World, call: Call): Reply {
  const key = parseKey(call.key);
  if (world.store.masks.get(key)?.entity.type === "FolderMask") {
    throw new Refusal(world.settings.missingStatus, `There is no document mask with the id ${key}.`);
  }
  return update((store) => store.masks, maskRules)(world, call);
}

/** GetSyncJobById. Source: service-interface §4.1 */
function getSyncJob(world: World, call: Call): Reply {
  const { select } = parseQuery(call.parameters, ["$select", "$expand"]);
  const { isActive } = world.settings.fieldNames;
  checkSelect(select, isActive === undefined ? syncJobProperties : [...syncJobProperties, isActive]);
  const row = findRow(world.store.syncJobs, parseKey(call.key), call, world.settings.missingStatus);
  const active = isActive === undefined ? {} : { [isActive]: world.store.activated.has(row.entity.syncJobId) };
  return jsonReply(applySelect({ ...row.entity, ...active }, select));
}

/** DeleteSyncJobById: `true`, or `false` while it runs (its own choice). Source: §4.4 */
function deleteSyncJob(world: World, call: Call): Reply {
  parseQuery(call.parameters, []);
  const key = parseKey(call.key);
  const row = findRow(world.store.syncJobs, key, call, 404);
  if (isRunning(world.store, key)) return jsonReply(false);
  removeSyncJob(world.store, key);
  return jsonReply(true, { key: String(key), repository: row.repository, runNumber: null });
}

/** RunSyncJob: a bare 200. Source: service-interface §4.4 */
function runSyncJob(world: World, call: Call): Reply {
  parseQuery(call.parameters, []);
  const key = parseKey(call.key);
  const row = findRow(world.store.syncJobs, key, call, world.settings.missingStatus);
  if (world.store.activities.length >= world.settings.activities + runsMax) {
    throw new Refusal(500, `Starting the run failed: the sandbox keeps ${runsMax} runs at most.`);
  }
  const runNumber = startRun(world.store, world.settings, row, call.nowMs);
  return bareReply({ key: String(key), repository: row.repository, runNumber });
}

/** EnableSyncJobById: a bare 200. Source: service-interface §4.4 */
function enableSyncJob(world: World, call: Call): Reply {
  parseQuery(call.parameters, []);
  const key = parseKey(call.key);
  const row = findRow(world.store.syncJobs, key, call, world.settings.missingStatus);
  activateSyncJob(world.store, key);
  return bareReply({ key: String(key), repository: row.repository, runNumber: null });
}
