// A list of the service as the walking strategies see it; its pages may come from a poll. Made once
// a walk by walk-feed.ts.
import { nextTurn } from "../core/clock.ts";
import type { Feed, ItemFacts, ListName } from "../model/feed.ts";
import type { SyncService } from "../service/client.ts";
import type { ListOperation } from "../service/operations.ts";
import type { Page } from "../service/pages.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import type { ItemMapper } from "./mapping.ts";
import { LinkExpired, type ListPage, type PagedList } from "./strategy/walk.ts";

/** The operation that reads each list. Source: service-interface §4.1 */
export const operationOf: Readonly<Record<ListName, ListOperation>> = {
  activities: "GetActivities",
  conflictDetails: "GetConflictDetails",
  approvals: "GetApprovals",
  triggers: "GetTriggers",
  authActivities: "GetAuthActivities",
  masks: "GetJobMasks",
};

/** The most items and pages of one walk; a longer list is a failure that says so. */
const walkItemsMax = 2_000_000;
const walkPagesMax = 100_000;

/** How a service's list is read. */
export interface ServiceListOptions {
  readonly service: SyncService;
  readonly mapper: ItemMapper;
  readonly signal: AbortSignal;
  /** Called with each page's items as the service sent them. */
  readonly onItems?: (items: readonly unknown[]) => void;
  /** Pages that a poll has just read: then only the count is requested. */
  readonly given?: readonly GivenPage[] | undefined;
  /** Whether the last walk failed: then a stored link may be dead. */
  readonly isFailing?: boolean;
}

/** A page that a poll has read. */
export interface GivenPage extends Pick<Page<unknown>, "items" | "url"> {
  readonly nextLink?: string;
}

/** The service's list, mapped; its pages throw what SyncService throws, and LinkExpired. */
export function serviceList(feed: Feed, options: ServiceListOptions): PagedList {
  const { service, mapper, signal, onItems, given, isFailing = false } = options;
  const operation = operationOf[feed.list];
  const query = inRepository(feed);
  const limits = { signal, itemsMax: walkItemsMax, pagesMax: walkPagesMax };
  async function* pages(from: string | undefined, readAhead: boolean): AsyncGenerator<ListPage, void, void> {
    const isLookedAt = from !== undefined && isFailing;
    // Before the link: its failure may deny all requests of the list for a while.
    const failure = isLookedAt ? await failureOfFirstPage() : undefined;
    const asked = service.pages(operation, query, { ...limits, from });
    let isBegun = false;
    try {
      // Requests the next page before this one is mapped, so that the two overlap.
      for await (const page of readAhead ? oneAhead(asked) : asked) {
        isBegun = true;
        onItems?.(page.items);
        yield mapPage(page, mapper);
      }
    } catch (error) {
      // A stored link that must not be followed any more counts as expired: the service has moved.
      const isAtLink = from !== undefined && !isBegun && error instanceof ServiceError;
      const isRefused =
        isAtLink && isRefusal(error) && (isLookedAt ? failure : await failureOfFirstPage()) === undefined;
      const isOutdated = isRefused || (isAtLink && error.kind === "paging");
      if (isOutdated || (error instanceof ServiceError && error.reason === "expired"))
        throw new LinkExpired(error.message, { cause: error });
      // That the limiter denies the link then says less than why.
      throw isAtLink && error.deniedBy !== undefined && failure !== undefined ? failure : error;
    }
  }
  /** A service may answer an old link with any error, for ever: then the first page can be read. */
  async function failureOfFirstPage(): Promise<ServiceError | undefined> {
    try {
      for await (const _ of service.pages(operation, query, { signal, pagesMax: 1 })) break;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return error;
    }
    return undefined;
  }
  async function* givenPages(from: string | undefined): AsyncGenerator<ListPage, void, void> {
    const first = from === undefined ? 0 : (given ?? []).findIndex(({ url }) => url === from);
    if (first < 0) throw new LinkExpired("a poll has read the list anew, without this page");
    for (const page of (given ?? []).slice(first)) {
      onItems?.(page.items);
      yield mapPage({ nextLink: undefined, ...page }, mapper);
      // Mapping a list of thousands must not block other work.
      await nextTurn();
    }
  }
  return {
    pages: (from, { readAhead = false } = {}) => (given === undefined ? pages(from, readAhead) : givenPages(from)),
    count: () => service.count(operation, query, { signal }).catch(noCount),
  };
}

/** Whether an answer may refuse this page, rather than all requests. */
function isRefusal({ kind }: ServiceError): boolean {
  return ["server", "contract", "unauthorized", "forbidden", "undocumented"].includes(kind);
}

/** A count that cannot be read ends no walk; who needs it reads the whole list. */
export function noCount(error: unknown): undefined {
  if (!(error instanceof ServiceError) || error.kind === "cancelled") throw error;
  return undefined;
}

function mapPage(
  { items, url, nextLink }: Pick<Page<unknown>, "items" | "url" | "nextLink">,
  mapper: ItemMapper,
): ListPage {
  return { items: items.map((item): ItemFacts => mapper.read(item)), url, nextLink };
}

/** Requests the next page while the current one is processed. */
async function* oneAhead<P>(pages: AsyncGenerator<P, void, void>): AsyncGenerator<P, void, void> {
  let coming = pages.next();
  try {
    for (;;) {
      const { done, value } = await coming;
      if (done === true) return;
      coming = pages.next();
      // It is awaited in the next round; until then its failure must not be an unhandled rejection.
      coming.catch(() => {});
      // The request is sent in the next turns of the event loop; this page would delay it.
      await nextTurn();
      yield value;
    }
  } finally {
    await pages.return();
  }
}
