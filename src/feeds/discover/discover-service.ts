// Samples the lists of a service and proposes a mapping. Every request is a GET; each list costs a
// few pages, one in memory at a time. Never shows a link's query: it may open the list without a
// token. Called by cli/discover.ts.
import type { ListName } from "../../model/feed.ts";
import type { SyncService } from "../../service/client.ts";
import type { Page } from "../../service/pages.ts";
import { ServiceError } from "../../service/service-error.ts";
import { operationOf } from "../service-list.ts";
import { type ListProposal, proposeMapping } from "./propose.ts";

/** How to sample a list. `pages`: from each end. */
interface SampleOptions {
  readonly service: SyncService;
  readonly repository: string | undefined;
  readonly pages: number;
  readonly signal: AbortSignal;
  /** Called for each request with what was asked, and the result. */
  readonly note: (what: string, outcome: string) => void;
}

/** A part of a list, in its order. */
interface ListSample {
  readonly items: readonly unknown[];
  /** How many items the service counts; undefined when it does not say. */
  readonly count: number | undefined;
  /** Items on the first page, if another one follows. */
  readonly pageSize: number | undefined;
  /** `whole`: all of it; `ends`: front and end; `front`: the end was too far. */
  readonly seen: "whole" | "ends" | "front";
}

/** What was found about one list. */
export interface DiscoveredList {
  readonly list: ListName;
  readonly sample: Omit<ListSample, "items"> & { readonly items: number };
  readonly proposal: ListProposal;
}

/** A list that could not be read. */
export interface UnreadableList {
  readonly list: ListName;
  readonly error: ServiceError;
}

/** How to examine the service. `syncJobIds`: sync jobs that the policies name. */
export interface DiscoverOptions extends SampleOptions {
  readonly lists: readonly ListName[];
  readonly syncJobIds: readonly string[];
}

/** The most items of one sample; the rest is left out. */
const itemsMax = 5_000;
/** How many pages are walked to reach the end where no offset leads there. */
const pagesToTheEndMax = 30;
/** The time-out of one request of a sample. */
const requestTimeoutMs = 15_000;

/** Examines the lists one after another; an unreadable list does not stop the others. */
export async function discoverService(options: DiscoverOptions): Promise<{
  readonly found: readonly DiscoveredList[];
  readonly unreadable: readonly UnreadableList[];
  readonly syncJobIds: number;
}> {
  const syncJobIds = new Set([...options.syncJobIds, ...(await idsFromMasks(options))]);
  const samples: { readonly list: ListName; readonly sample: ListSample }[] = [];
  const unreadable: UnreadableList[] = [];
  for (const list of options.lists) {
    try {
      samples.push({ list, sample: await sampleList(list, options) });
    } catch (error) {
      if (!(error instanceof ServiceError) || error.kind === "cancelled") throw error;
      unreadable.push({ list, error });
    }
  }
  // The longest sample shows best which field holds the sync job's id; the other lists probably use
  // the same name.
  const joinElsewhere = samples
    .toSorted((a, b) => b.sample.items.length - a.sample.items.length)
    .map(({ list, sample }) => proposeMapping(list, sample.items, { syncJobIds, joinElsewhere: undefined }).join)
    .find((join) => join !== undefined);
  const found = samples.map(({ list, sample: { items, ...sample } }) => ({
    list,
    sample: { ...sample, items: items.length },
    proposal: proposeMapping(list, items, { syncJobIds, joinElsewhere }),
  }));
  return { found, unreadable, syncJobIds: syncJobIds.size };
}

/**
 * Samples a list.
 * @throws ServiceError when its first page cannot be read.
 */
async function sampleList(list: ListName, options: SampleOptions): Promise<ListSample> {
  const { pages } = options;
  const count = await countOf(list, options);
  const front: (readonly unknown[])[] = [];
  const tail: (readonly unknown[])[] = [];
  let first: Page<unknown> | undefined;
  let isWhole = false;
  let read = 0;
  try {
    for await (const page of pagesOf(list, options, { what: "page", pagesMax: pages + pagesToTheEndMax })) {
      first ??= page;
      read += 1;
      if (read <= pages) front.push(page.items);
      else tail.push(page.items);
      if (tail.length > pages) tail.shift();
      isWhole = page.nextLink === undefined && page.linkProblem === undefined;
      // Walking to the end would take too many pages.
      if (read === pages && !isWhole && count !== undefined && count > front.flat().length * (1 + pagesToTheEndMax))
        break;
    }
  } catch (error) {
    // What was read is shown; the refusal has been noted.
    if (first === undefined || !(error instanceof ServiceError) || error.kind === "cancelled") throw error;
    isWhole = false;
  }
  const pageSize = first?.nextLink === undefined ? undefined : first.items.length;
  if (isWhole) {
    const items = joined([...front, ...tail]).slice(0, itemsMax);
    return { count, pageSize, items, seen: read <= 2 * pages ? "whole" : "ends" };
  }
  const skip = Math.max(0, (count ?? 0) - pages * (pageSize ?? 0));
  const end = skip === 0 || first === undefined ? [] : await readFrom(list, { ...options, url: first.url, skip });
  // A service that ignores the offset answers with its first page.
  const isEnd = end.length > 0 && JSON.stringify(end[0]) !== JSON.stringify(front.flat()[0]);
  const items = joined([...front, ...(isEnd ? [end] : [])]).slice(0, itemsMax);
  return { count, pageSize, items, seen: isEnd ? "ends" : "front" };
}

/** The items of pages. Where a list grows at its front, a page begins as the last one ended. */
function joined(pages: readonly (readonly unknown[])[]): readonly unknown[] {
  const items: unknown[] = [];
  const texts: string[] = [];
  for (const page of pages) {
    const more = page.map((item) => JSON.stringify(item));
    let again = Math.min(texts.length, more.length);
    while (!texts.slice(texts.length - again).every((text, index) => text === more[index])) again -= 1;
    items.push(...page.slice(again));
    texts.push(...more.slice(again));
  }
  return items;
}

/** The ids of sync jobs that masks carry: there is no list of them. Source: service-interface §2 */
async function idsFromMasks(options: SampleOptions): Promise<string[]> {
  const ids: string[] = [];
  for await (const { items } of orNone(pagesOf("masks", options, { what: "page", pagesMax: options.pages }))) {
    for (const item of items) {
      const id = typeof item === "object" && item !== null ? Reflect.get(item, "syncJobId") : undefined;
      if (typeof id === "number" || typeof id === "string") ids.push(String(id));
    }
  }
  return ids;
}

/** The last pages by `$skip`; none when the service refuses it. */
async function readFrom(
  list: ListName,
  { url, skip, ...options }: SampleOptions & { readonly url: string; readonly skip: number },
): Promise<readonly unknown[]> {
  const from = `${url}${url.includes("?") ? "&" : "?"}$skip=${skip}`;
  const read: (readonly unknown[])[] = [];
  const pages = pagesOf(list, options, { what: `$skip=${skip}, page`, from, pagesMax: options.pages });
  for await (const { items } of orNone(pages)) read.push(items);
  return joined(read);
}

interface PagesAsked {
  readonly what: string;
  readonly from?: string;
  readonly pagesMax: number;
}

/** At most so many pages of a list, each requested when needed and noted. */
async function* pagesOf(
  list: ListName,
  { service, repository, signal, note }: SampleOptions,
  { what, pagesMax, ...from }: PagesAsked,
): AsyncGenerator<Page<unknown>, void, void> {
  const asked = { ...from, signal, timeoutMs: requestTimeoutMs };
  let read = 0;
  try {
    for await (const page of service.pages(operationOf[list], repository === undefined ? {} : { repository }, asked)) {
      read += 1;
      note(`${list}, ${what} ${read}`, `${page.items.length} items`);
      yield page;
      if (read >= pagesMax) return;
    }
  } catch (error) {
    if (error instanceof ServiceError) note(`${list}, ${what} ${read + 1}`, refusal(error));
    throw error;
  }
}

/** The pages up to the first one that the service refuses. */
async function* orNone(pages: AsyncGenerator<Page<unknown>, void, void>): AsyncGenerator<Page<unknown>, void, void> {
  try {
    yield* pages;
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind === "cancelled") throw error;
  }
}

async function countOf(
  list: ListName,
  { service, repository, signal, note }: SampleOptions,
): Promise<number | undefined> {
  try {
    const query = repository === undefined ? {} : { repository };
    const count = await service.count(operationOf[list], query, { signal, timeoutMs: requestTimeoutMs });
    note(`${list}, $count`, String(count));
    return count;
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind === "cancelled") throw error;
    note(`${list}, $count`, refusal(error));
    return undefined;
  }
}

function refusal({ status, kind }: ServiceError): string {
  return `refused (${status ?? kind})`;
}
