// Open conflicts of policies, as the last whole walk of each list counted them: one read a list,
// none of the service.
import { type Policy, targetsOf } from "../config/policy-set.ts";
import { counted, someNames } from "../core/plain-text.ts";
import { totalOfAll, totalOfSyncJob } from "../feeds/list-totals.ts";
import { feedId } from "../model/feed.ts";
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

/** Reads them. The answer asks for one policy; undefined: not known. `known`: its sync jobs. */
export async function readOpenConflicts(
  policies: readonly Policy[],
  store: Store,
): Promise<(policy: Policy, known: readonly string[]) => OpenConflicts | undefined> {
  const feeds = new FeedStore(store);
  const lists = feedsOf({ policies: policies.filter(({ action }) => action.kind === "run") });
  const totals = new Map<string, ConflictTotals>();
  for (const batch of batchesOf(lists.filter(({ list }) => list === "conflictDetails")))
    for (const [id, found] of await Promise.all(
      batch.map(async (feed) => [feedId(feed), await feeds.allTotals(feed)] as const),
    ))
      if (found !== undefined) totals.set(id, { ...found, areNamed: areNamed(found) });
  return ({ action, service, repository = null }, known) => {
    const found = totals.get(feedId({ service, repository, list: "conflictDetails" }));
    if (found === undefined || action.kind !== "run") return undefined;
    return openOf(targetsOf(action) ?? known, found);
  };
}

/** `areNamed`: each of its conflicts names its sync job. */
interface ConflictTotals extends AllTotals {
  readonly areNamed: boolean;
}

function areNamed({ counts }: AllTotals): boolean {
  const all = counts.get(totalOfAll) ?? 0;
  return [...counts.values()].reduce((sum, count) => sum + count, 0) === 2 * all;
}

function openOf(
  named: readonly string[],
  { atMs, counts, sinceMs, areNamed: isCertain }: ConflictTotals,
): OpenConflicts | undefined {
  const all = named.map((id) => ({ id, count: counts.get(totalOfSyncJob(id)) ?? 0 }));
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
