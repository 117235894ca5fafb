// A list of the service, and what Redis knows of it, as the reading strategies see them. Made once a walk by walk-feed.ts.
import { nextTurn } from "../core/clock.ts";
import type { SyncService } from "../service/client.ts";
import type { Page } from "../service/pages.ts";
import { ServiceError } from "../service/service-error.ts";
import type { Feed, ItemFacts } from "../tasks/feed.ts";
import type { ItemReader } from "./mapping.ts";
import { operationOf } from "./service-lists.ts";
import { LinkExpired, type ListPage, type PagedList } from "./strategy/abstract-list.ts";

/** The most items and pages of one walk; a longer list is a failure that says so. */
const walkItemsMax = 2_000_000;
const walkPagesMax = 100_000;

/** What a service's list is read with. */
export interface ServiceListParts {
  readonly service: SyncService;
  readonly reader: ItemReader;
  readonly signal: AbortSignal;
  /** Told of each page's items as the service sent them. */
  readonly onItems?: (items: readonly unknown[]) => void;
}

/** The service's list, mapped item by item. Its pages throw what SyncService throws, and LinkExpired. */
export function serviceList(feed: Feed, { service, reader, signal, onItems }: ServiceListParts): PagedList {
  const operation = operationOf[feed.list];
  const query = feed.repository === null ? {} : { repository: feed.repository };
  const limits = { signal, itemsMax: walkItemsMax, pagesMax: walkPagesMax };
  async function* pages(from: string | undefined, readAhead: boolean): AsyncGenerator<ListPage, void, void> {
    const asked = service.pages(operation, query, { ...limits, from });
    try {
      // The next request is on its way before this page is mapped: the service's time and ours overlap.
      for await (const page of readAhead ? oneAhead(asked) : asked) {
        onItems?.(page.items);
        yield toPage(page, reader);
      }
    } catch (error) {
      if (error instanceof ServiceError && error.reason === "expired")
        throw new LinkExpired(error.message, { cause: error });
      throw error;
    }
  }
  return {
    pages: (from, { readAhead = false } = {}) => pages(from, readAhead),
    count: () => service.count(operation, query, { signal }).catch(noCount),
  };
}

/** A service that cannot count costs a little certainty, not the walk. */
function noCount(error: unknown): undefined {
  if (!(error instanceof ServiceError) || error.kind === "cancelled") throw error;
  return undefined;
}

function toPage({ items, url, nextLink }: Page<unknown>, reader: ItemReader): ListPage {
  return { items: items.map((item): ItemFacts => reader.read(item)), url, nextLink };
}

/** Asks for the next page while the present one is worked on. */
async function* oneAhead<P>(pages: AsyncGenerator<P, void, void>): AsyncGenerator<P, void, void> {
  let coming = pages.next();
  try {
    for (;;) {
      const { done, value } = await coming;
      if (done === true) return;
      coming = pages.next();
      // It is awaited in the next round; until then a failure of it is not nobody's.
      coming.catch(() => {});
      // Its request leaves in the next turns of the event loop; the work on this page would hold it up.
      await nextTurn();
      yield value;
    }
  } finally {
    await pages.return();
  }
}
