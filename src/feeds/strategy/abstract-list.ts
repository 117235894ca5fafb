// A list as the reading strategies see it: pages in the service's order, and a book that knows what was seen before.
// The seam of this folder: walk-feed.ts puts the service and Redis behind it, tests a list in memory. Knows nothing of HTTP.

import type { Novelty } from "../../store/known-items.ts";
import type { ItemFacts } from "../../tasks/feed.ts";

/** One page. `url` can be handed back to begin there again; no `nextLink`: the last page. */
export interface ListPage {
  readonly items: readonly ItemFacts[];
  readonly url: string;
  readonly nextLink: string | undefined;
}

/** A list of the service, read page by page. */
export interface PagedList {
  /**
   * Pages from this link on, or from the beginning; with `readAhead` the next one is asked for while one is worked on. Throws
   * LinkExpired when the service does not know the link any more.
   */
  pages(from: string | undefined, options?: { readonly readAhead?: boolean }): AsyncIterable<ListPage>;
  /** How many items the service says there are; undefined when it does not say. */
  count(): Promise<number | undefined>;
}

/** The service does not know this link any more: begin again from the first page. */
export class LinkExpired extends Error {
  override readonly name = "LinkExpired";
}

/** What remembers the items of one list. */
export interface ItemBook {
  /** The number of the newest discovery. */
  seq(): Promise<number>;
  /** Takes a page in, whole or not at all, and says for each item whether it was known when the number stood at `sinceSeq`. A second time changes nothing. */
  takeIn(items: readonly ItemFacts[], sinceSeq: number): Promise<readonly Novelty[]>;
  /** The same for a page that walking goes on from: when its first item is not known, or it has none, takes nothing in and answers undefined. */
  takeInFrom(items: readonly ItemFacts[], sinceSeq: number): Promise<readonly Novelty[] | undefined>;
}
