// Reads a few pages from the front and the end of a list. GET only, bounded: one page in memory at
// a time, at most 5,000 items. Never shows a link's query: it may open the list without a token.
// Called by discover-service.ts.
import type { ListName } from "../../core/list-name.ts";
import type { SyncService } from "../../service/client.ts";
import type { Page } from "../../service/pages.ts";
import { ServiceError } from "../../service/service-error.ts";
import { operationOf } from "../service-lists.ts";

/** How to sample a list. `pages`: from each end. */
export interface SampleParts {
  readonly service: SyncService;
  readonly repository: string | undefined;
  readonly pages: number;
  readonly signal: AbortSignal;
  /** Called for each request with what was asked, and the result. */
  readonly note: (what: string, outcome: string) => void;
}

/** A part of a list, in its order. */
export interface ListSample {
  readonly items: readonly unknown[];
  /** How many items the service counts; undefined when it does not say. */
  readonly count: number | undefined;
  /** Items on the first page, if another one follows. */
  readonly pageSize: number | undefined;
  /** `whole`: all of it; `ends`: front and end; `front`: the end was too far. */
  readonly seen: "whole" | "ends" | "front";
  /** The first page's URL and items, for the probes. */
  readonly first: { readonly url: string; readonly items: readonly unknown[] };
}

/** The most items of one sample; the rest is left out. */
const itemsMax = 5_000;
/** How many pages are walked to reach the end where no offset leads there. */
const pagesToTheEndMax = 30;
/** The time-out of one request of a sample or a probe. */
const requestTimeoutMs = 15_000;

/**
 * Samples a list.
 * @throws ServiceError when its first page cannot be read.
 */
export async function sampleList(list: ListName, parts: SampleParts): Promise<ListSample> {
  const count = await countOf(list, parts);
  const front: unknown[] = [];
  const tail: (readonly unknown[])[] = [];
  let first: Page<unknown> | undefined;
  let isWhole = false;
  let read = 0;
  for await (const page of pagesOf(list, parts, { pagesMax: parts.pages + pagesToTheEndMax })) {
    first ??= page;
    read += 1;
    parts.note(`${list}, page ${read}`, `${page.items.length} items`);
    if (read <= parts.pages) front.push(...page.items);
    else {
      tail.push(page.items);
      if (tail.length > parts.pages) tail.shift();
    }
    isWhole = page.nextLink === undefined && page.linkProblem === undefined;
    if (read === parts.pages && !isWhole && isFar(count, front.length)) break;
    if (read >= parts.pages + pagesToTheEndMax) break;
  }
  const start = { url: first?.url ?? "", items: first?.items ?? [] };
  const pageSize = first?.nextLink === undefined ? undefined : first.items.length;
  const sample = { count, pageSize, first: start };
  const bounded = (items: readonly unknown[]) => items.slice(0, itemsMax);
  if (isWhole) {
    const isGapless = read <= 2 * parts.pages;
    return { ...sample, items: bounded([...front, ...tail.flat()]), seen: isGapless ? "whole" : "ends" };
  }
  const end = await endByOffset(list, parts, { count, url: start.url, pageSize: pageSize ?? 0 });
  const isEnd = end !== undefined && end[0] !== undefined && JSON.stringify(end[0]) !== JSON.stringify(start.items[0]);
  return { ...sample, items: bounded([...front, ...(isEnd ? end : [])]), seen: isEnd ? "ends" : "front" };
}

/** Whether walking to the end would take too many pages. */
function isFar(count: number | undefined, frontItems: number): boolean {
  return count !== undefined && count > frontItems * (1 + pagesToTheEndMax);
}

/** The last pages by `$skip`; undefined when the service does not support it. */
async function endByOffset(
  list: ListName,
  parts: SampleParts,
  { count, url, pageSize }: { readonly count: number | undefined; readonly url: string; readonly pageSize: number },
): Promise<readonly unknown[] | undefined> {
  if (count === undefined || pageSize === 0) return undefined;
  const skip = Math.max(0, count - parts.pages * pageSize);
  const items: unknown[] = [];
  try {
    let read = 0;
    for await (const page of pagesOf(list, parts, {
      from: withOption(url, "$skip", String(skip)),
      pagesMax: parts.pages + 1,
    })) {
      items.push(...page.items);
      read += 1;
      parts.note(`${list}, $skip=${skip}, page ${read}`, `${page.items.length} items`);
      if (read > parts.pages) break;
    }
    return items;
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind === "cancelled") throw error;
    parts.note(`${list}, $skip=${skip}`, `refused (${error.status ?? error.kind})`);
    return undefined;
  }
}

/** A link with one more query option. */
export function withOption(url: string, name: string, value: string): string {
  return `${url}${url.includes("?") ? "&" : "?"}${name}=${encodeURIComponent(value)}`;
}

/** The pages of a list, each requested when needed. */
export function pagesOf(
  list: ListName,
  { service, repository, signal }: Pick<SampleParts, "service" | "repository" | "signal">,
  options: { readonly from?: string; readonly pagesMax: number; readonly pageSizeWish?: number },
): AsyncGenerator<Page<unknown>, void, void> {
  const query = repository === undefined ? {} : { repository };
  return service.pages(operationOf[list], query, { ...options, signal, timeoutMs: requestTimeoutMs });
}

async function countOf(
  list: ListName,
  { service, repository, signal, note }: SampleParts,
): Promise<number | undefined> {
  try {
    const query = repository === undefined ? {} : { repository };
    const count = await service.count(operationOf[list], query, { signal, timeoutMs: requestTimeoutMs });
    note(`${list}, $count`, String(count));
    return count;
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind === "cancelled") throw error;
    note(`${list}, $count`, `refused (${error.status ?? error.kind})`);
    return undefined;
  }
}
