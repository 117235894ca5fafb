// A list of the service, or what a poll has just read of it, as the reading strategies see it. Made once a walk by walk-feed.ts.
import { nextTurn } from "../core/clock.ts";
import type { SyncService } from "../service/client.ts";
import type { Page } from "../service/pages.ts";
import { inRepository } from "../service/request-url.ts";
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
  /** What a poll has read already: then nothing is asked for but the count. */
  readonly given?: readonly GivenPage[] | undefined;
}

/** A page that somebody else has read. */
export interface GivenPage extends Pick<Page<unknown>, "items" | "url"> {
  readonly nextLink?: string;
}

/** The service's list, mapped item by item. Its pages throw what SyncService throws, and LinkExpired. */
export function serviceList(feed: Feed, parts: ServiceListParts): PagedList {
  const { service, reader, signal, onItems, given } = parts;
  const operation = operationOf[feed.list];
  const query = inRepository(feed);
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
  async function* givenPages(from: string | undefined): AsyncGenerator<ListPage, void, void> {
    const first = from === undefined ? 0 : (given ?? []).findIndex(({ url }) => url === from);
    if (first < 0) throw new LinkExpired("a poll has read the list anew, without this page");
    for (const page of (given ?? []).slice(first)) {
      onItems?.(page.items);
      yield toPage({ nextLink: undefined, ...page }, reader);
      // A list of thousands does not hold everything else up.
      await nextTurn();
    }
  }
  return {
    pages: (from, { readAhead = false } = {}) => (given === undefined ? pages(from, readAhead) : givenPages(from)),
    count: () => service.count(operation, query, { signal }).catch(noCount),
  };
}

/** A service that cannot count costs a little certainty, not the walk. */
function noCount(error: unknown): undefined {
  if (!(error instanceof ServiceError) || error.kind === "cancelled") throw error;
  return undefined;
}

function toPage(
  { items, url, nextLink }: Pick<Page<unknown>, "items" | "url" | "nextLink">,
  reader: ItemReader,
): ListPage {
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
