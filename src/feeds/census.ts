// Counts a list while it is walked from its first page to its last: for the conflict details how many are each sync job's, for the
// approvals which ones are there. Made once a walk by walk-feed.ts. Never holds more than its limit: rather it counts nothing.
import type { ListName } from "../core/list-name.ts";
import type { ItemFacts } from "../tasks/feed.ts";

/** The field of all items together. */
export const censusTotal = "all";

/** The field of one sync job's items. */
export function censusOfJob(syncJobId: string): string {
  return `job ${syncJobId}`;
}

/** The field of one item. */
export function censusOfItem(id: string): string {
  return `item ${id}`;
}

/** Of a longer list nothing is counted: what is gone from it stays unknown. */
const countedMax: Readonly<Partial<Record<ListName, number>>> = { conflictDetails: 20_000, approvals: 1_000 };

/** The most items that a list may have to be read whole at each walk, although it has an order; undefined: none. */
export const readWholeMax: Readonly<Partial<Record<ListName, number>>> = { approvals: countedMax.approvals ?? 0 };

/** A count that is going on. */
export interface RunningCensus {
  /** Takes a page in. What comes twice counts once. */
  readonly add: (items: readonly ItemFacts[]) => void;
  /** How many pages and different items were seen. */
  readonly seen: () => { readonly pages: number; readonly items: number };
  /** The counts by field; undefined for a list that was too long. */
  readonly counts: () => ReadonlyMap<string, number> | undefined;
}

/** Begins to count a list; undefined for one of which nobody asks what is gone. */
export function beginCensus(list: ListName): RunningCensus | undefined {
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
          list === "approvals" ? censusOfItem(id) : syncJobId === undefined ? undefined : censusOfJob(syncJobId);
        if (field !== undefined) fields.set(field, (fields.get(field) ?? 0) + 1);
      }
    },
    seen: () => ({ pages, items: ids.size }),
    counts: () => (ids.size > max ? undefined : new Map([[censusTotal, ids.size], ...fields])),
  };
}
