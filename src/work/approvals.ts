// The approvals that appeared since a start and still wait, as the feed book knows them. Called by run.ts and baseline.ts. What they mean
// for the run says blocked.ts. Source: service-interface §2: an approval has no sync job, unless the mapping finds one.

import type { Follow } from "../config/policy-set.ts";
import { censusOfItem } from "../feeds/census.ts";
import { approvalsAfterMs } from "../feeds/pace.ts";
import type { SeenItem } from "../store/seen-item.ts";
import type { StartEntry } from "../store/start-entry.ts";
import type { Task } from "../tasks/task.ts";
import { feedOf, parseBaseline, waitForFeed } from "./evidence.ts";
import type { WorkParts } from "./parts.ts";

/** So many approvals that appeared since a start are looked at, the first ones. */
const lookedAtMax = 200;

/** The approvals that appeared since a start and were there when the list was last read whole. */
export interface WaitingApprovals {
  /** In the order of their appearance. */
  readonly waiting: readonly SeenItem[];
  /** True when the mapping says whose an approval is, and these are of this sync job. */
  readonly ofSyncJob: boolean;
  /** When the walk began that showed them, milliseconds UTC by Redis. */
  readonly readAtMs: number;
}

/** Up to where the approvals are known: a number, `awaited` while a walk is worth waiting for, or undefined when they cannot be read. */
export async function approvalsBefore(
  task: Task,
  parts: WorkParts,
  sinceMs: number,
): Promise<number | "awaited" | undefined> {
  const feed = feedOf(task, "approvals");
  const { walkStartedAtMs = 0, seq, failingSinceMs } = await parts.book.status(feed);
  if (walkStartedAtMs >= sinceMs) return seq;
  // Also while it fails, or nobody would notice that it works again.
  await waitForFeed(feed, task, parts, { nowMs: await parts.nowMs(), hurry: true });
  return failingSinceMs === undefined ? "awaited" : undefined;
}

/** Reads on, and says which approvals wait; undefined for a run that none can block, or not yet. */
export async function approvalsSince(
  task: Task,
  parts: WorkParts,
  { entry, follow, nowMs }: { readonly entry: StartEntry; readonly follow: Follow; readonly nowMs: number },
): Promise<WaitingApprovals | undefined> {
  const known = parseBaseline(entry.baseline).approvals;
  if (known === undefined || follow.blockedAfterMs === undefined) return undefined;
  if (nowMs - (entry.sentAtMs ?? entry.claimedAtMs) < approvalsAfterMs(follow.blockedAfterMs)) return undefined;
  const feed = feedOf(task, "approvals");
  await waitForFeed(feed, task, parts, { nowMs, hurry: false });
  const ofSyncJob = parts.itemReader(feed)?.knows("syncJobId") === true;
  const appeared = await parts.book.discoveredSince(feed, known);
  const candidates = appeared.filter(({ syncJobId }) => !ofSyncJob || syncJobId === task.target).slice(0, lookedAtMax);
  if (candidates.length === 0) return { waiting: [], ofSyncJob, readAtMs: 0 };
  const census = await parts.book.census(
    feed,
    candidates.map(({ id }) => censusOfItem(id)),
  );
  const waiting = candidates.filter((_, index) => (census?.counts[index] ?? 0) > 0);
  return { waiting, ofSyncJob, readAtMs: census?.atMs ?? 0 };
}
