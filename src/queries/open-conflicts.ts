// Open conflicts of policies, as the last whole walk of each list counted them: one read a list,
// none of the service.
import { type Policy, targetsOf } from "../config/policy-set.ts";
import { getOrMake } from "../core/get-or-make.ts";
import { showNear } from "../core/instant.ts";
import { counted, someNames } from "../core/plain-text.ts";
import { totalOfAll, totalOfSyncJob } from "../feeds/list-totals.ts";
import { type Feed, feedId } from "../model/feed.ts";
import { type AllTotals, FeedStore } from "../store/feed-store.ts";
import type { Store } from "../store/redis.ts";
import { batchesOf } from "../store/script.ts";
import { feedsOf } from "./feeds.ts";

/** The conflicts of a policy's sync jobs that wait for a person at the service. */
export interface OpenConflicts {
  readonly count: number;
  /** Those with some, and how many each has. */
  readonly syncJobs: readonly { readonly id: string; readonly count: number }[];
  /** When they were counted. */
  readonly atMs: number;
  /** Since when one of these sync jobs has some. */
  readonly sinceMs: number;
}

/** What an acknowledgement calls them, among targets. No task is about it. */
export const openTarget = "open conflicts";

/** What the last whole walk of a list counted. `areNamed`: each conflict names its sync job. */
export interface ConflictTotals extends AllTotals {
  readonly areNamed: boolean;
}

/** What was read of an installation: only lists that were counted since are read again. */
const readTotals = new WeakMap<Store, Map<string, ConflictTotals>>();

/** So many lists are remembered; one that was dropped is only read anew. */
const listsMax = 10_000;

/** Reads what was counted; the answer asks for the list of one policy. */
export async function readConflictTotals(
  policies: readonly Policy[],
  store: Store,
): Promise<(policy: Policy) => ConflictTotals | undefined> {
  const feeds = new FeedStore(store);
  // A look at a few policies keeps what is known of the lists of all others.
  const known = getOrMake(readTotals, store, () => new Map());
  const totals = new Map<string, Map<string | null, ConflictTotals>>();
  const read = async (feed: Feed, atMs: number | undefined) => {
    const id = feedId(feed);
    if (atMs === undefined) {
      known.delete(id);
      return;
    }
    const kept = known.get(id);
    const found = kept?.atMs === atMs ? kept : withNames(await feeds.allTotals(feed));
    if (found === undefined) return;
    known.set(id, found);
    for (const oldest of known.keys()) if (known.size > listsMax) known.delete(oldest);
    getOrMake(totals, feed.service, () => new Map()).set(feed.repository, found);
  };
  for (const batch of batchesOf(feedsOf({ policies }).filter(({ list }) => list === "conflictDetails"))) {
    const counted = await feeds.countedAt(batch);
    await Promise.all(batch.map((feed, index) => read(feed, counted[index])));
  }
  return ({ action, service, repository = null }) =>
    action.kind === "run" ? totals.get(service)?.get(repository) : undefined;
}

function withNames(totals: AllTotals | undefined): ConflictTotals | undefined {
  if (totals === undefined) return undefined;
  const all = totals.counts.get(totalOfAll) ?? 0;
  return { ...totals, areNamed: totals.counts.values().reduce((sum, count) => sum + count, 0) === 2 * all };
}

/** The conflicts of a policy; undefined: not known. `known`: its sync jobs, where it names none. */
export function openConflictsOf(
  { action }: Policy,
  known: readonly string[],
  { atMs, counts, sinceMs, areNamed: isCertain }: ConflictTotals,
): OpenConflicts | undefined {
  const all = (targetsOf(action) ?? known).map((id) => ({ id, count: counts.get(totalOfSyncJob(id)) ?? 0 }));
  const syncJobs = all.filter((job) => job.count > 0);
  const count = syncJobs.reduce((sum, job) => sum + job.count, 0);
  // Conflicts that name no sync job may be those of any.
  if (count === 0 && !isCertain) return undefined;
  return {
    ...{ count, syncJobs, atMs },
    sinceMs: Math.min(atMs, ...syncJobs.map(({ id }) => sinceMs.get(totalOfSyncJob(id)) ?? atMs)),
  };
}

/** How many are open, and where: `3 conflicts to settle at main (sync job 11: 2, 15: 1)`. */
export function describeOpen({ count, syncJobs }: OpenConflicts, service: string): string {
  const jobs = syncJobs.map((job) => (syncJobs.length === 1 ? job.id : `${job.id}: ${job.count}`));
  return `${counted(count, "conflict")} to settle at ${service} (sync job ${someNames(jobs, undefined, 3)})`;
}

/** A count that is older says when it was made. */
const freshMs = 3_600_000;

/** The same; of a count that is not fresh also when it was made: `…, counted Tue 06:30 CET`. */
export function describeCounted(open: OpenConflicts, { service, timezone }: Policy, nowMs: number): string {
  const when = nowMs - open.atMs < freshMs ? "" : `, counted ${showNear(open.atMs, timezone, nowMs)}`;
  return `${describeOpen(open, service)}${when}`;
}
