// Reading, deleting, running and activating a sync job. Only PUT and DELETE document a 404
// (service-interface §7): a missing sync job is 400 elsewhere, or 404 when `missingStatus` says so
// (Assumption S3). Called through routes.ts.

import { applySelect, checkSelect, parseKey, parseQuery } from "./address.ts";
import { type Call, findRow, type World } from "./call.ts";
import { bareReply, jsonReply, Refusal, type Reply } from "./reply.ts";
import { activateSyncJob, runsMax, startRun } from "./runs.ts";
import { isRunning, removeSyncJob } from "./store.ts";

const properties = ["syncJobId", "name"] as const;

/** GetSyncJobById. Source: service-interface §4.1 */
export function getSyncJob(world: World, call: Call): Reply {
  const { select } = parseQuery(call.parameters, ["$select", "$expand"]);
  const { isActive } = world.settings.fieldNames;
  checkSelect(select, isActive === undefined ? properties : [...properties, isActive]);
  const row = findRow(world.store.syncJobs, parseKey(call.key), call, world.settings.missingStatus);
  const active = isActive === undefined ? {} : { [isActive]: world.store.activated.has(row.entity.syncJobId) };
  return jsonReply(applySelect({ ...row.entity, ...active }, select));
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
