// A list as the walking strategies see it: pages in the service's order, and a store of seen items.
// walk-feed.ts puts the service and Redis behind it, tests a list in memory. Knows nothing of HTTP.

import type { ItemFacts } from "../../model/feed.ts";
import type { FeedPage } from "../../store/feed-store.ts";
import type { Novelty } from "../../store/known-items.ts";

/** One page. `url` reads it again; no `nextLink`: the last page. */
export interface ListPage {
  readonly items: readonly ItemFacts[];
  readonly url: string;
  readonly nextLink: string | undefined;
}

/** A list of the service, read page by page. */
export interface PagedList {
  /** Pages from this link on, or from the beginning. Throws LinkExpired for an unknown link. */
  pages(from: string | undefined, options?: { readonly readAhead?: boolean }): AsyncIterable<ListPage>;
  /** How many items the service counts; undefined when it does not say. */
  count(): Promise<number | undefined>;
}

/** The service does not know this link any more: begin again from the first page. */
export class LinkExpired extends Error {
  override readonly name = "LinkExpired";
}

/** The store of one list's seen items. */
export interface ItemStore {
  /** The sequence of the newest discovery. */
  seq(): Promise<number>;
  /** Stores a page whole, once; undefined: it must know the first item, and does not. */
  readonly takeIn: (page: FeedPage) => Promise<readonly Novelty[] | undefined>;
}
