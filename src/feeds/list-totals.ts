// Counts a list during a whole walk: conflict details per sync job, and which approvals exist.
// Counts nothing when a list exceeds its limit. Made once a walk by walk-feed.ts.
import type { ItemFacts, ListName } from "../model/feed.ts";

/** The field of the total. */
export const totalOfAll = "all";

/** The field of one sync job's count. */
export function totalOfSyncJob(syncJobId: string): string {
  return `job ${syncJobId}`;
}

/** The field of one item. */
export function totalOfItem(id: string): string {
  return `item ${id}`;
}

/** Longer lists are not counted: what is gone from them stays unknown. */
const countedMax: Readonly<Partial<Record<ListName, number>>> = { conflictDetails: 20_000, approvals: 1_000 };

/** Lists up to this length are read whole at each walk. */
export const readWholeMax: Readonly<Partial<Record<ListName, number>>> = { approvals: countedMax.approvals ?? 0 };

/** A count in progress. */
export interface RunningTotals {
  /** Adds a page. An item that comes twice counts once. */
  readonly add: (items: readonly ItemFacts[]) => void;
  /** How many pages and distinct items were added. */
  readonly seen: () => { readonly pages: number; readonly items: number };
  /** The counts by field; undefined for a list that was too long. */
  readonly counts: () => ReadonlyMap<string, number> | undefined;
}

/** Starts counting a list; undefined for a list whose removed items do not matter. */
export function beginTotals(list: ListName): RunningTotals | undefined {
  const max = countedMax[list];
  if (max === undefined) return undefined;
  const ids = new Set<string>();
  const fields = new Map<string, number>();
  let pages = 0;
  return {
    add: (items) => {
      pages += 1;
      for (const { id, syncJobId } of items) {
        if (ids.has(id) || ids.size > max) continue;
        ids.add(id);
        const field =
          list === "approvals" ? totalOfItem(id) : syncJobId === undefined ? undefined : totalOfSyncJob(syncJobId);
        if (field !== undefined) fields.set(field, (fields.get(field) ?? 0) + 1);
      }
    },
    seen: () => ({ pages, items: ids.size }),
    counts: () => (ids.size > max ? undefined : new Map([[totalOfAll, ids.size], ...fields])),
  };
}
