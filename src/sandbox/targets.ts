// The updates of document masks, drive targets and site targets. Called through the route table.
// They document no 404 (service-interface §7): an unknown id is 400 "invalid request data", or 404 when
// `missingStatus` says so (Assumption S3). The id of a folder mask is unknown here too.
import { type Call, findRow, type World } from "./call.ts";
import { parseKey, parseQuery } from "./odata-query.ts";
import { jsonReply, Refusal, type Reply } from "./reply.ts";
import type { Row } from "./store.ts";
import { parseUpdate, type UpdateRules } from "./update-body.ts";

const maskRules: UpdateRules = { updatable: ["name", "ecmMaskId"], readOnly: ["maskId", "type", "syncJobId"] };
const targetRules: UpdateRules = {
  updatable: ["siteName", "siteId", "folderName", "folderId"],
  readOnly: [],
  keyProperty: "thirdSystemSyncTargetId",
};

/** UpdateEcmDocumentMaskById. Source: service-interface §4.1, §4.3 */
export function updateDocMask(world: World, call: Call): Reply {
  const { masks } = world.store;
  const key = parseKey(call.key);
  if (masks.get(key)?.entity.type === "FolderMask") {
    throw new Refusal(world.settings.missingStatus, `There is no document mask with the id ${key}.`);
  }
  return updateRow(world, call, { rows: masks, rules: maskRules });
}

/** UpdateDriveSyncTargetById. Source: service-interface §4.1, §4.3 */
export function updateDriveTarget(world: World, call: Call): Reply {
  return updateRow(world, call, { rows: world.store.driveTargets, rules: targetRules });
}

/** UpdateSiteSyncTargetById. Source: service-interface §4.1, §4.3 */
export function updateSiteTarget(world: World, call: Call): Reply {
  return updateRow(world, call, { rows: world.store.siteTargets, rules: targetRules });
}

function updateRow<E extends object>(
  world: World,
  call: Call,
  what: { readonly rows: ReadonlyMap<number, Row<E>>; readonly rules: UpdateRules },
): Reply {
  parseQuery(call.parameters, []);
  const key = parseKey(call.key);
  const changes = parseUpdate(call.body, what.rules, key);
  const row = findRow(what.rows, key, call, world.settings.missingStatus);
  row.entity = { ...row.entity, ...changes };
  return jsonReply(row.entity, { key: String(key), repository: row.repository, runNumber: null });
}
