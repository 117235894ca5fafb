// The baseline of a run: where the feeds stood right before its request. The journal keeps it as
// JSON. Called by run.ts before the start, and by evidence.ts, which says what appeared since.
import * as z from "zod";
import { type Follow, readsApprovals } from "../config/policy-set.ts";
import { isJsonObject } from "../core/json.ts";
import { refuseNewer } from "../core/newer-version.ts";
import { totalOfAll, totalOfSyncJob } from "../feeds/list-totals.ts";
import { awaitedLists, type ListName } from "../model/feed.ts";
import type { Task } from "../model/task.ts";
import type { FeedStatus } from "../store/feed-store.ts";
import { feedOf, followedLists, requestFeed } from "./followed-lists.ts";
import type { FeedAccess, Runtime } from "./step-dependencies.ts";

const baselineSchema = z.object({
  activities: z.int().nullable(),
  conflictDetails: z.int().nullable(),
  conflictsKnown: z.int().exactOptional(),
  conflictsBefore: z.object({ of: z.enum(["syncJob", "repository"]), count: z.int() }).exactOptional(),
  approvals: z.int().exactOptional(),
});

/**
 * The sequence of each feed before the request; null: it was not read in time. `conflictsKnown`:
 * then that of the last reading, however old. `conflictsBefore`: their number, after a whole walk.
 */
export type Baseline = Readonly<z.infer<typeof baselineSchema>>;

/** No feed was read. */
const emptyBaseline: Baseline = { activities: null, conflictDetails: null };

/** Writes a baseline for the journal. */
export function writeBaseline(baseline: Baseline): string {
  return JSON.stringify({ v: 1, ...baseline });
}

/** Reads a baseline of the journal; unreadable text is empty. @throws NewerVersionError */
export function parseBaseline(text: string | undefined): Baseline {
  if (text === undefined || text === "") return emptyBaseline;
  const value: unknown = JSON.parse(text);
  refuseNewer("baseline", isJsonObject(value) ? value["v"] : undefined);
  const parsed = baselineSchema.safeParse(value);
  return parsed.success ? parsed.data : emptyBaseline;
}

/** A baseline, complete or not yet. */
export interface TakenBaseline {
  readonly baseline: Baseline;
  /** False while a walk is worth waiting for. */
  readonly isTaken: boolean;
  /**
   * The lists without a fresh walk. Without activities or conflicts the run may end as unknown,
   * without approvals it is never blocked.
   */
  readonly lacks: readonly ListName[];
}

/** Takes the baseline of a run from walks that began after `sinceMs`. */
export async function takeBaseline(
  task: Task,
  deps: FeedAccess & Pick<Runtime, "nowMs">,
  { sinceMs, follow }: { readonly sinceMs: number; readonly follow: Follow },
): Promise<TakenBaseline> {
  const isFollowed = follow.until !== "accepted";
  const isNeeded = { activities: true, conflictDetails: isFollowed, approvals: readsApprovals(follow) };
  const [read, approvals] = await Promise.all([
    baselineSince(task, deps, sinceMs),
    isNeeded.approvals ? approvalsBefore(task, deps, sinceMs) : undefined,
  ]);
  // Where the answer is the end, only an activity is looked for afterwards.
  const isComplete = read.activities !== null && (!isFollowed || read.conflictDetails !== null);
  const conflicts = isComplete ? await conflictsBefore(task, deps, read) : undefined;
  const baseline: Baseline = {
    ...read,
    ...(conflicts === undefined ? {} : { conflictsBefore: conflicts }),
    ...(typeof approvals === "number" ? { approvals } : {}),
  };
  const lacks = awaitedLists.filter((list) => isNeeded[list] && baseline[list] == null);
  return { baseline, isTaken: isComplete && approvals !== "awaited", lacks };
}

/** The sequence of both feeds, from walks that began after `sinceMs`. */
export async function baselineSince(task: Task, deps: Pick<FeedAccess, "feeds">, sinceMs: number): Promise<Baseline> {
  const [activities, conflictDetails] = await Promise.all(
    followedLists.map((list) => deps.feeds.status(feedOf(task, list))),
  );
  const conflicts = seqSince(conflictDetails, sinceMs);
  const known = conflicts === null ? { conflictsKnown: conflictDetails?.seq ?? 0 } : {};
  return { activities: seqSince(activities, sinceMs), conflictDetails: conflicts, ...known };
}

function seqSince(status: FeedStatus | undefined, sinceMs: number): number | null {
  return status?.walkBeganAtMs !== undefined && status.walkBeganAtMs >= sinceMs ? status.seq : null;
}

/** The feed's sequence; `awaited` while a walk may bring it; undefined if it cannot be read. */
async function approvalsBefore(
  task: Task,
  deps: FeedAccess & Pick<Runtime, "nowMs">,
  sinceMs: number,
): Promise<number | "awaited" | undefined> {
  const feed = feedOf(task, "approvals");
  const { walkBeganAtMs = 0, seq, failingSinceMs } = await deps.feeds.status(feed);
  if (walkBeganAtMs >= sinceMs) return seq;
  // Also while it fails: only another walk shows that it works again.
  await requestFeed(feed, task, deps, { nowMs: await deps.nowMs(), hurry: true });
  return failingSinceMs === undefined ? "awaited" : undefined;
}

/** Conflicts of the sync job where the mapping says whose they are, else of the repository. */
type ConflictCount = NonNullable<Baseline["conflictsBefore"]>;

/** The conflicts right before a run; undefined unless the last walk saw the whole list. */
async function conflictsBefore(
  task: Task,
  deps: FeedAccess,
  baseline: Pick<Baseline, "conflictDetails">,
): Promise<ConflictCount | undefined> {
  const counted = await countConflicts(task, deps);
  return counted?.seq === baseline.conflictDetails ? counted?.conflicts : undefined;
}

/** The conflicts that the last walk counted, if nothing was discovered since. */
export async function countConflicts(
  task: Task,
  { feeds, itemMapper }: Pick<FeedAccess, "feeds" | "itemMapper">,
): Promise<{ readonly seq: number; readonly conflicts: ConflictCount } | undefined> {
  const feed = feedOf(task, "conflictDetails");
  const of = itemMapper(feed)?.knows("syncJobId") === true ? "syncJob" : "repository";
  const fields = [of === "syncJob" ? totalOfSyncJob(task.target) : totalOfAll];
  const first = await feeds.totals(feed, fields);
  const status = await feeds.status(feed);
  // A walk may have ended in between: then its totals are there now.
  const totals = first?.atMs === status.walkBeganAtMs ? first : await feeds.totals(feed, fields);
  if (totals === undefined || totals.atMs !== status.walkBeganAtMs || totals.seq !== status.seq) return undefined;
  return { seq: status.seq, conflicts: { of, count: totals.counts[0] ?? 0 } };
}
