// The data that is there when a sandbox starts. The same settings and the same start instant give the same data.
// Called once by startSandbox. Ids: sync jobs 1…N; masks 3·job-2 and 3·job-1 (DocMask) and 3·job (FolderMask);
// drive target, site target and trigger of a job have the id of the job.
import { chanceUuid, createChance, pickBy } from "./chance.ts";
import type { SandboxSettings } from "./options.ts";
import { createStore, type Store } from "./store.ts";

const docMaskNames = ["Contract", "Invoice", "Personnel file", "Contract appendix", "Offer", "Delivery note"] as const;
const areas = ["Contracts", "Invoices", "Personnel", "Projects", "Purchasing", "Quality", "Travel", "Board"] as const;
const people = ["Ada Berger", "Ben Koch", "Clara Hofer", "Auditors", "Administrators", "Everyone"] as const;
const activityEveryMs = 600_000;
const identitiesPerRepository = people.length;

/** Builds the state for the settings; history counts back from `nowMs`. */
export function seedStore(settings: SandboxSettings, nowMs: number): Store {
  const store = createStore();
  for (let syncJobId = 1; syncJobId <= settings.jobs; syncJobId += 1) addSyncJob(store, settings, syncJobId);
  settings.repositories.forEach((repository, index) => {
    addIdentities(store, repository, index);
  });
  addHistory(store, settings, nowMs);
  return store;
}

/** The repository key of a sync job: equal blocks of ids, in the order of the keys. */
function repositoryOfJob(settings: SandboxSettings, syncJobId: number): string {
  const index = Math.floor(((syncJobId - 1) * settings.repositories.length) / settings.jobs);
  return settings.repositories[index] ?? "";
}

/** The id of the nth identity of a sandbox, from 1: `00000000-0000-4000-8000-000000000001` is the first of the first repository. */
function identityId(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
}

function addSyncJob(store: Store, settings: SandboxSettings, syncJobId: number): void {
  const { seed } = settings;
  const chance = createChance(seed);
  const repository = repositoryOfJob(settings, syncJobId);
  const area = pickBy(areas, chance("area", syncJobId));
  store.syncJobs.set(syncJobId, { repository, entity: { syncJobId, name: `${area} ${syncJobId}` } });
  for (let index = 0; index < 3; index += 1) {
    const maskId = 3 * (syncJobId - 1) + index + 1;
    const type = index === 2 ? "FolderMask" : "DocMask";
    const name = index === 2 ? `${area} folder` : (docMaskNames[(2 * syncJobId + index) % docMaskNames.length] ?? "");
    const ecmMaskId = chanceUuid(seed, "mask", maskId);
    store.masks.set(maskId, { repository, entity: { maskId, name, ecmMaskId, type, syncJobId } });
  }
  for (const kind of ["driveTargets", "siteTargets"] as const) {
    const entity = {
      thirdSystemSyncTargetId: syncJobId,
      siteName: `${repository} ${area}`,
      siteId: chanceUuid(seed, kind, "site", syncJobId),
      folderName: "Incoming",
      folderId: chanceUuid(seed, kind, "folder", syncJobId),
    };
    store[kind].set(syncJobId, { repository, entity });
  }
  store.triggers.set(syncJobId, { repository, entity: { triggerId: syncJobId, isActive: syncJobId % 3 === 0 } });
  for (let index = 0; index < 2; index += 1) {
    const entity = {
      authAccountActivityEntityId: 2 * (syncJobId - 1) + index + 1,
      accountIdentifier: true,
      accountObjectId: chance("objectId", syncJobId, index) < 0.9,
    };
    store.authActivities.push({ repository, entity });
  }
}

function addIdentities(store: Store, repository: string, repositoryIndex: number): void {
  people.forEach((name, index) => {
    const number = repositoryIndex * identitiesPerRepository + index + 1;
    const entity = {
      id: identityId(number),
      idAsNumber: 900 + number,
      name,
      isAdministrator: name === "Administrators",
    };
    store.identities.push({ repository, entity });
  });
}

function addHistory(store: Store, settings: SandboxSettings, nowMs: number): void {
  const chance = createChance(settings.seed);
  for (let activityId = 1; activityId <= settings.activities; activityId += 1) {
    const syncJobId = ((activityId - 1) % settings.jobs) + 1;
    const repository = repositoryOfJob(settings, syncJobId);
    const startMs = nowMs - (settings.activities - activityId + 1) * activityEveryMs;
    const failed = syncJobId % 7 === 0 && chance("history-fails", activityId) < 1 / 3;
    const finishedAt = isoText(startMs + 1_000 + Math.floor(chance("history-takes", activityId) * 60_000));
    const itemsProcessed = failed ? 0 : Math.floor(chance("history-items", activityId) * 500);
    const state = failed ? "Failed" : "Finished";
    const entity = { activityId, syncJobId, state, startedAt: isoText(startMs), finishedAt, itemsProcessed } as const;
    store.activities.push({ repository, entity });
    // One past conflict a job that leaves conflicts, from its first activity.
    if (syncJobId % 5 !== 0 || activityId > settings.jobs) continue;
    const conflictId = store.conflictIdNext++;
    const conflict = { conflictId, syncJobId, itemName: `Old draft ${syncJobId}.docx`, detectedAt: finishedAt };
    store.conflicts.push({ repository, entity: conflict });
  }
}

function isoText(instantMs: number): string {
  return new Date(instantMs).toISOString();
}
