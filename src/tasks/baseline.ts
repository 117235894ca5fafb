// The baseline of a run: where the feeds stood right before its start, and what has changed since
// in approvals and conflicts. Called by run.ts; reads the FeedStore, never the service.
import type { Follow } from "../config/policy-set.ts";
import { totalOfAll, totalOfItem, totalOfSyncJob } from "../feeds/list-totals.ts";
import { approvalsAfterMs } from "../feeds/pace.ts";
import type { Task } from "../model/task.ts";
import type { SeenItem } from "../store/feed-mirror.ts";
import type { StartEntry } from "../store/start-entry.ts";
import type { FollowedLists, Runtime } from "./contracts.ts";
import { type Appeared, type Baseline, baselineSince, feedOf, parseBaseline, waitForFeed } from "./evidence.ts";
import type { TaskEnding } from "./step.ts";

/** The most approvals since a start that are checked, the earliest first. */
const approvalsCheckedMax = 200;

/** A baseline, complete or not yet. */
export interface TakenBaseline {
  readonly baseline: Baseline;
  /** False while a walk is worth waiting for. */
  readonly isReady: boolean;
  /** False without a fresh walk of activities and conflicts: then the run may end as unknown. */
  readonly isComplete: boolean;
}

/** Takes the baseline of a run from walks that began after `readyAtMs`. */
export async function takeBaseline(
  task: Task,
  deps: FollowedLists & Pick<Runtime, "nowMs">,
  { readyAtMs, follow }: { readonly readyAtMs: number; readonly follow: Follow },
): Promise<TakenBaseline> {
  const [read, approvals] = await Promise.all([
    baselineSince(task, deps, readyAtMs),
    follow.blockedAfterMs === undefined ? undefined : approvalsBefore(task, deps, readyAtMs),
  ]);
  const isComplete = read.activities !== null && read.conflictDetails !== null;
  if (!isComplete) return { baseline: read, isReady: false, isComplete };
  const conflicts = await conflictsBefore(task, deps, read);
  const baseline: Baseline = {
    ...read,
    ...(conflicts === undefined ? {} : { conflictsBefore: conflicts }),
    ...(typeof approvals === "number" ? { approvals } : {}),
  };
  return { baseline, isReady: approvals !== "awaited", isComplete };
}

/** Approvals that appeared since a start and were still listed at the last whole walk. */
export interface WaitingApprovals {
  /** In the order of their appearance. */
  readonly waiting: readonly SeenItem[];
  /** True when the mapping names an approval's sync job: then all of these are of this one. */
  readonly ofSyncJob: boolean;
  /** When the walk that showed them began, milliseconds UTC by Redis. */
  readonly readAtMs: number;
}

/** The feed's sequence; `awaited` while a walk may bring it; undefined if it cannot be read. */
async function approvalsBefore(
  task: Task,
  deps: FollowedLists & Pick<Runtime, "nowMs">,
  sinceMs: number,
): Promise<number | "awaited" | undefined> {
  const feed = feedOf(task, "approvals");
  const { readSinceMs = 0, seq, failingSinceMs } = await deps.feeds.status(feed);
  if (readSinceMs >= sinceMs) return seq;
  // Also while it fails: only another walk shows that it works again.
  await waitForFeed(feed, task, deps, { nowMs: await deps.nowMs(), hurry: true });
  return failingSinceMs === undefined ? "awaited" : undefined;
}

/** The approvals that wait; undefined for a run that none can block, or not yet. */
export async function approvalsSince(
  task: Task,
  deps: FollowedLists,
  { entry, follow, nowMs }: { readonly entry: StartEntry; readonly follow: Follow; readonly nowMs: number },
): Promise<WaitingApprovals | undefined> {
  const known = parseBaseline(entry.baseline).approvals;
  if (known === undefined || follow.blockedAfterMs === undefined) return undefined;
  if (nowMs - (entry.sentAtMs ?? entry.claimedAtMs) < approvalsAfterMs(follow.blockedAfterMs)) return undefined;
  const feed = feedOf(task, "approvals");
  await waitForFeed(feed, task, deps, { nowMs, hurry: false });
  const ofSyncJob = deps.itemMapper(feed)?.knows("syncJobId") === true;
  const appeared = await deps.feeds.discoveredSince(feed, known);
  const candidates = appeared
    .filter(({ syncJobId }) => !ofSyncJob || syncJobId === task.target)
    .slice(0, approvalsCheckedMax);
  if (candidates.length === 0) return { waiting: [], ofSyncJob, readAtMs: 0 };
  const totals = await deps.feeds.totals(
    feed,
    candidates.map(({ id }) => totalOfItem(id)),
  );
  const waiting = candidates.filter((_, index) => (totals?.counts[index] ?? 0) > 0);
  return { waiting, ofSyncJob, readAtMs: totals?.atMs ?? 0 };
}

/** Conflicts of the sync job where the mapping says whose they are, else of the repository. */
type ConflictCount = NonNullable<Baseline["conflictsBefore"]>;

/** The conflicts right before a run; undefined unless the last walk saw the whole list. */
async function conflictsBefore(
  task: Task,
  deps: FollowedLists,
  baseline: Pick<Baseline, "conflictDetails">,
): Promise<ConflictCount | undefined> {
  const counted = await countNow(task, deps);
  return counted?.seq === baseline.conflictDetails ? counted?.conflicts : undefined;
}

/** What became of the conflicts from before a run that has just ended; empty if not known. */
export async function conflictChange(
  task: Task,
  deps: FollowedLists,
  { entry, appeared, ending }: { readonly entry: StartEntry; readonly appeared: Appeared; readonly ending: TaskEnding },
): Promise<Pick<TaskEnding, "goneConflicts" | "stillConflicts">> {
  const before = parseBaseline(entry.baseline).conflictsBefore;
  // Only for a run that is over: settle.ts has waited for a walk after its end.
  const isOver = ["succeeded", "conflicts", "failed"].includes(ending.status);
  if (before === undefined || appeared.newConflicts === undefined || !isOver) return {};
  const after = await countNow(task, deps);
  if (after === undefined || after.seq !== appeared.conflictDetails.seq || after.conflicts.of !== before.of) return {};
  return compareConflicts(before.count, after.conflicts.count, appeared.newConflicts) ?? {};
}

/** How many earlier conflicts are gone, and how many remain; undefined for impossible counts. */
export function compareConflicts(
  before: number,
  after: number,
  appeared: number,
): { readonly goneConflicts: number; readonly stillConflicts: number } | undefined {
  const stillConflicts = after - appeared;
  const goneConflicts = before - stillConflicts;
  return stillConflicts < 0 || goneConflicts < 0 ? undefined : { goneConflicts, stillConflicts };
}

/** The conflicts that the last walk counted, if nothing was discovered since. */
async function countNow(
  task: Task,
  { feeds, itemMapper }: Pick<FollowedLists, "feeds" | "itemMapper">,
): Promise<{ readonly seq: number; readonly conflicts: ConflictCount } | undefined> {
  const feed = feedOf(task, "conflictDetails");
  const of = itemMapper(feed)?.knows("syncJobId") === true ? "syncJob" : "repository";
  const fields = [of === "syncJob" ? totalOfSyncJob(task.target) : totalOfAll];
  const first = await feeds.totals(feed, fields);
  const status = await feeds.status(feed);
  // A walk may have ended in between: then its totals are there now.
  const totals = first?.atMs === status.readSinceMs ? first : await feeds.totals(feed, fields);
  if (totals === undefined || totals.atMs !== status.readSinceMs || totals.seq !== status.seq) return undefined;
  return { seq: status.seq, conflicts: { of, count: totals.counts[0] ?? 0 } };
}
