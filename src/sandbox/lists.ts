// The six lists and their `/$count` twins. Called through the route table.
// A list is in key order, and that is the order of appearance. Without `repository` it holds all repositories.
import type { Call, World } from "./call.ts";
import { toPage } from "./odata-page.ts";
import { applySelect, checkSelect, parseQuery } from "./odata-query.ts";
import { jsonReply, type Reply, textReply } from "./reply.ts";
import { activityRoles, conflictRoles, type FieldNames, type Role, shapeEntity } from "./shape.ts";
import type { Row, Store } from "./store.ts";

type Entity = Readonly<Record<string, unknown>>;

/** One list: its name in the path, the rows it shows, its properties, and how a row looks outside. */
export interface ListView {
  readonly name: string;
  readonly properties: (names: FieldNames) => readonly string[];
  readonly rows: (store: Store) => readonly Row<Entity>[];
  readonly toEntity: (entity: Entity, names: FieldNames) => Entity;
}

/** The lists of the service. Source: service-interface §2, §4.1 */
export const listViews = {
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

/** Answers one page of a list. Source: service-interface §2, §8 */
export function getList(view: ListView, world: World, call: Call): Reply {
  const { select, skip } = parseQuery(call.parameters, ["$select", "$expand", "$skip"]);
  const { fieldNames, pageSize, nextLinkStyle } = world.settings;
  checkSelect(select, view.properties(fieldNames));
  const { baseUrl, parameters } = call;
  const request = { list: view.name, baseUrl, parameters, select, skip, pageSize, style: nextLinkStyle };
  const toEntity = (row: Row<Entity>) => applySelect(view.toEntity(row.entity, fieldNames), select);
  return jsonReply(toPage(visibleRows(view, world, call), request, toEntity));
}

/** Answers the number of items of a list as plain digits. Source: service-interface §4.2 */
export function countList(view: ListView, world: World, call: Call): Reply {
  const { select } = parseQuery(call.parameters, ["$select", "$expand"]);
  checkSelect(select, view.properties(world.settings.fieldNames));
  return textReply(String(visibleRows(view, world, call).length));
}

function visibleRows(view: ListView, world: World, call: Call): readonly Row<Entity>[] {
  const rows = view.rows(world.store);
  return call.repository === undefined ? rows : rows.filter((row) => row.repository === call.repository);
}

function shown(name: string, properties: readonly string[], rows: (store: Store) => readonly Row<Entity>[]): ListView {
  return { name, properties: () => properties, rows, toEntity: (entity) => entity };
}

function shaped(name: string, roles: readonly Role[], rows: (store: Store) => readonly Row<Entity>[]): ListView {
  return {
    name,
    properties: (names) => roles.flatMap((role) => names[role] ?? []),
    rows,
    toEntity: (entity, names) => shapeEntity(entity, roles, names),
  };
}
