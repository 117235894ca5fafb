// Runs and activations. A run's end is decided at its start and applied by the first request after
// that instant, so no timer is needed. Called by the handlers and, before each request, by
// exchange.ts. The chance of a run depends on the seed, the sync job and the run's number:
//   ids divisible by 5 always leave 1 or 2 conflicts, others in 1 of 20 runs;
//   ids divisible by 7 fail in 1 of 3 runs, others never;
//   ids divisible by 11 always leave an approval, others never.

import { toIso } from "../core/instant.ts";
import { type Chance, chanceUuid, createChance } from "./chance.ts";
import type { SandboxSettings } from "./options.ts";
import type { OpenRun, Row, Store, SyncJob } from "./store.ts";

/** The most runs of a sandbox. Further ones get 500, so that memory stays bounded. */
export const runsMax = 50_000;

/** What chance decided for one run. */
export interface RunLuck {
  readonly fails: boolean;
  readonly conflicts: number;
  readonly leavesApproval: boolean;
  readonly durationMs: number;
  readonly items: number;
}

/** Decides a run: the same for the same seed, sync job and run number. */
export function planRun(
  chance: Chance,
  syncJobId: number,
  runNumber: number,
  runMs: readonly [number, number],
): RunLuck {
  const luck = (word: string) => chance(word, syncJobId, runNumber);
  const [shortestMs, longestMs] = runMs;
  const always = syncJobId % 5 === 0;
  return {
    fails: syncJobId % 7 === 0 && luck("fails") < 1 / 3,
    conflicts: always ? 1 + Math.floor(luck("conflicts") * 2) : luck("conflict") < 0.05 ? 1 : 0,
    leavesApproval: syncJobId % 11 === 0,
    durationMs: Math.round(shortestMs + luck("takes") * (longestMs - shortestMs)),
    items: Math.floor(luck("items") * 500),
  };
}

/** Starts a run, also beside another one (its own choice). Returns its number. */
export function startRun(store: Store, settings: SandboxSettings, job: Row<SyncJob>, nowMs: number): number {
  const { syncJobId } = job.entity;
  const runNumber = (store.runsOfJob.get(syncJobId) ?? 0) + 1;
  store.runsOfJob.set(syncJobId, runNumber);
  const luck = planRun(createChance(settings.seed), syncJobId, runNumber, settings.runMs);
  const row: OpenRun["row"] = {
    repository: job.repository,
    entity: {
      activityId: store.activities.length + 1,
      syncJobId,
      state: "Running",
      startedAt: toIso(nowMs),
      finishedAt: null,
      itemsProcessed: 0,
    },
  };
  store.activities.push(row);
  const approvalId = luck.leavesApproval ? addApproval(store, settings, job, runNumber) : undefined;
  const waitsFor = settings.approvalsBlock ? approvalId : undefined;
  store.openRuns.push({ row, endsAtMs: nowMs + luck.durationMs, runNumber, waitsFor });
  return runNumber;
}

/** Ends every due run that waits for no approval; conflicts appear in the order of the ends. */
export function advanceRuns(store: Store, settings: SandboxSettings, nowMs: number): void {
  const isDue = (run: OpenRun) =>
    run.endsAtMs <= nowMs && (run.waitsFor === undefined || !store.approvals.has(run.waitsFor));
  const due = store.openRuns.filter(isDue);
  if (due.length === 0) return;
  store.openRuns = store.openRuns.filter((run) => !due.includes(run));
  for (const run of due.toSorted((left, right) => left.endsAtMs - right.endsAtMs)) endRun(store, settings, run, nowMs);
}

/** Removes the approvals of a repository, or all of them. Returns how many. */
export function clearApprovals(store: Store, repository?: string): number {
  let cleared = 0;
  for (const [approvalId, approval] of store.approvals) {
    if (repository !== undefined && approval.repository !== repository) continue;
    store.approvals.delete(approvalId);
    cleared += 1;
  }
  return cleared;
}

/** Removes the conflicts of a repository, or all of them. Returns how many. */
export function clearConflicts(store: Store, repository?: string): number {
  const before = store.conflicts.length;
  store.conflicts = store.conflicts.filter((one) => repository !== undefined && one.repository !== repository);
  return before - store.conflicts.length;
}

/** Activates a sync job: its trigger becomes active. */
export function activateSyncJob(store: Store, syncJobId: number): void {
  store.activated.add(syncJobId);
  const trigger = store.triggers.get(syncJobId);
  if (trigger !== undefined) trigger.entity = { ...trigger.entity, isActive: true };
}

function endRun(store: Store, settings: SandboxSettings, run: OpenRun, nowMs: number): void {
  const { row, runNumber } = run;
  const { syncJobId } = row.entity;
  const luck = planRun(createChance(settings.seed), syncJobId, runNumber, settings.runMs);
  // A blocked run ends at the first look after its approval has gone, the others when their time
  // was up.
  const endedAt = toIso(run.waitsFor === undefined ? run.endsAtMs : nowMs);
  row.entity = {
    ...row.entity,
    state: luck.fails ? "Failed" : "Finished",
    finishedAt: endedAt,
    itemsProcessed: luck.fails ? 0 : luck.items,
  };
  for (let index = 1; index <= luck.conflicts; index += 1) {
    const itemName = `Draft ${syncJobId}-${runNumber}-${index}.docx`;
    const entity = { conflictId: store.conflictIdNext++, syncJobId, itemName, detectedAt: endedAt };
    store.conflicts.push({ repository: row.repository, entity });
  }
}

function addApproval(store: Store, settings: SandboxSettings, job: Row<SyncJob>, runNumber: number): number {
  const approvalId = store.approvalIdNext;
  store.approvalIdNext += 1;
  const { syncJobId } = job.entity;
  const itemId = chanceUuid(settings.seed, "approval", syncJobId, runNumber);
  const entity = { approvalId, itemName: `Release of ${job.entity.name}, run ${runNumber}`, itemId };
  store.approvals.set(approvalId, { repository: job.repository, entity });
  return approvalId;
}
