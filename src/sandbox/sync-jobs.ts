// The five operations on a sync job. GetSyncJobById, RunSyncJob and EnableSyncJobById document no
// 404 (service-interface §7): a missing sync job is 400 "invalid request data" there, or 404 when
// `missingStatus` says so (Assumption S3). PUT and DELETE answer 404. Called through routes.ts.

import { applySelect, checkSelect, parseKey, parseQuery } from "./address.ts";
import { type Call, findRow, parseUpdate, type World } from "./call.ts";
import { bareReply, jsonReply, Refusal, type Reply } from "./reply.ts";
import { activateSyncJob, runsMax, startRun } from "./runs.ts";
import { isRunning, removeSyncJob } from "./store.ts";

const properties = ["syncJobId", "name"] as const;
const updateRules = { updatable: ["name"], readOnly: ["syncJobId"] };

/** GetSyncJobById. Source: service-interface §4.1 */
export function getSyncJob(world: World, call: Call): Reply {
  const { select } = parseQuery(call.parameters, ["$select", "$expand"]);
  const { isActive } = world.settings.fieldNames;
  checkSelect(select, isActive === undefined ? properties : [...properties, isActive]);
  const row = findRow(world.store.syncJobs, parseKey(call.key), call, world.settings.missingStatus);
  const active = isActive === undefined ? {} : { [isActive]: world.store.activated.has(row.entity.syncJobId) };
  return jsonReply(applySelect({ ...row.entity, ...active }, select));
}

/** UpdateSyncJobById: merges `name`. Source: service-interface §4.3 */
export function updateSyncJob(world: World, call: Call): Reply {
  parseQuery(call.parameters, []);
  const key = parseKey(call.key);
  const changes = parseUpdate(call.body, updateRules, key);
  const row = findRow(world.store.syncJobs, key, call, 404);
  row.entity = { ...row.entity, ...changes };
  return jsonReply(row.entity, { key: String(key), repository: row.repository, runNumber: null });
}

/** DeleteSyncJobById: `true`, or `false` while it runs (Assumption S7). Source: §4.4 */
export function deleteSyncJob(world: World, call: Call): Reply {
  parseQuery(call.parameters, []);
  const key = parseKey(call.key);
  const row = findRow(world.store.syncJobs, key, call, 404);
  if (isRunning(world.store, key)) return jsonReply(false);
  removeSyncJob(world.store, key);
  return jsonReply(true, { key: String(key), repository: row.repository, runNumber: null });
}

/** RunSyncJob: a bare 200. Source: service-interface §4.4 */
export function runSyncJob(world: World, call: Call): Reply {
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
export function enableSyncJob(world: World, call: Call): Reply {
  parseQuery(call.parameters, []);
  const key = parseKey(call.key);
  const row = findRow(world.store.syncJobs, key, call, world.settings.missingStatus);
  activateSyncJob(world.store, key);
  return bareReply({ key: String(key), repository: row.repository, runNumber: null });
}
