// Walks the pages of a list lazily, one page in memory at a time, within limits. Never restarts a
// walk by itself, never follows a link that next-link.ts refuses.
import type { Clock } from "../core/clock.ts";
import { hashText } from "../core/stable-hash.ts";
import type { RawPage } from "./answer.ts";
import { resolveNextLink } from "./next-link.ts";
import type { ListOperation } from "./operations.ts";
import { type PagingReason, ServiceError } from "./service-error.ts";

/** One page of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** The URL that this page was read from; pass it as `from` to read the page again. */
  readonly url: string;
  /** The URL of the next page on the configured origin; undefined on the last page. */
  readonly nextLink: string | undefined;
  /** Why the page's link must not be followed; the items are used. */
  readonly linkProblem: ServiceError | undefined;
  /** Counts from 1 in this walk. */
  readonly pageNumber: number;
}

/** How many empty pages in a row are followed. */
const emptyPagesMax = 100;
/** How often the same page may come. */
const samePageMax = 2;

/** Limits of a walk. */
export interface WalkOptions {
  /** Start at a `nextLink` or `url` of an earlier page instead of the first page. */
  readonly from?: string | undefined;
  /** Default 10,000. */
  readonly pagesMax?: number | undefined;
  /** A page that would pass this limit is not yielded. Default: no limit. */
  readonly itemsMax?: number | undefined;
  /** The limit of the whole walk in milliseconds, with the caller's use of pages. Default: none. */
  readonly deadlineMs?: number | undefined;
  /** For each request. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The first page, too, continues an earlier request. */
  readonly isFollowUp?: boolean | undefined;
}

/** What a walk needs from the client. */
export interface Walk<Item> {
  readonly operation: ListOperation;
  /** The list on the configured origin, with the query of its first page. */
  readonly firstUrl: URL;
  readonly basePath: string;
  /** True with `select`: then two pages may be equal. */
  readonly isShortened: boolean;
  readonly clock: Clock;
  /** Called once for each link that named another origin, or lacked the base path. */
  readonly onRebased: () => void;
  /** Called once for each link that is not followed. */
  readonly onRefused: (reason: PagingReason) => void;
  readonly fetch: (url: URL, signal: AbortSignal | undefined) => Promise<RawPage<Item>>;
}

/** Turns a raw page into a page with its link resolved and pinned. */
export function toPage<Item>(walk: Walk<Item>, raw: RawPage<Item>, at: { url: URL; pageNumber: number }): Page<Item> {
  const page = { items: raw.items, url: at.url.href, pageNumber: at.pageNumber };
  if (raw.link === undefined) return { ...page, nextLink: undefined, linkProblem: undefined };
  const next = resolve(walk, { link: raw.link, contextUrl: raw.contextUrl, requestUrl: at.url });
  if (next instanceof ServiceError) return { ...page, nextLink: undefined, linkProblem: next };
  return { ...page, nextLink: next.href, linkProblem: undefined };
}

/**
 * Yields page after page until there is no link.
 * @throws ServiceError of kind `paging`, or of any kind of a request. After the reason `expired`
 * the caller may start again from the first page.
 */
export async function* walkPages<Item>(walk: Walk<Item>, options: WalkOptions): AsyncGenerator<Page<Item>, void, void> {
  const guard = new Guard(walk, options);
  try {
    let url: URL | undefined = startOf(walk, options);
    for (let pageNumber = 1; url !== undefined; pageNumber += 1) {
      guard.beforePage(url, pageNumber);
      const raw: RawPage<Item> = await guard.fetch(url, pageNumber);
      guard.afterPage(raw.items);
      const page: Page<Item> = toPage(walk, raw, { url, pageNumber });
      yield page;
      if (page.linkProblem !== undefined) throw page.linkProblem;
      url = page.nextLink === undefined ? undefined : new URL(page.nextLink);
    }
  } finally {
    guard.end();
  }
}

function startOf<Item>(walk: Walk<Item>, options: WalkOptions): URL {
  if (options.from === undefined) return walk.firstUrl;
  const start = resolve(walk, { link: options.from, contextUrl: undefined, requestUrl: walk.firstUrl });
  if (start instanceof ServiceError) throw start;
  return start;
}

function resolve<Item>(
  walk: Walk<Item>,
  found: { link: string; contextUrl: string | undefined; requestUrl: URL },
): URL | ServiceError {
  const collectionUrl = new URL(walk.firstUrl.pathname, walk.firstUrl.origin);
  const resolved = resolveNextLink({ ...found, collectionUrl, basePath: walk.basePath });
  if ("refused" in resolved) {
    walk.onRefused(resolved.refused);
    return pagingError(walk, resolved.refused, `${resolved.why}; it was not followed`);
  }
  if (resolved.rebased) walk.onRebased();
  return resolved.url;
}

function pagingError<Item>(walk: Walk<Item>, reason: PagingReason, problem: string, cause?: ServiceError) {
  const { status, documented, answer, correlationId, sent = "no" } = cause ?? {};
  const { operation, firstUrl } = walk;
  const call = { operation, method: "GET", path: firstUrl.pathname, sent } as const;
  return new ServiceError({ kind: "paging", ...call, problem, reason, status, documented, answer, correlationId });
}

/** Enforces the limits of one walk. */
class Guard<Item> {
  readonly #walk: Walk<Item>;
  readonly #options: WalkOptions;
  readonly #seenLinks = new Set<string>();
  readonly #seenEnds = new Set<string>();
  readonly #seenPages = new Map<string, number>();
  readonly #deadline = new AbortController();
  readonly #ended = new AbortController();
  #items = 0;
  #emptyPages = 0;

  constructor(walk: Walk<Item>, options: WalkOptions) {
    this.#walk = walk;
    this.#options = options;
    if (options.deadlineMs === undefined) return;
    void walk.clock.sleep(options.deadlineMs, this.#ended.signal).then(() => this.#deadline.abort());
  }

  beforePage(url: URL, pageNumber: number): void {
    const { pagesMax = 10_000 } = this.#options;
    if (this.#deadline.signal.aborted) throw this.#late();
    if (pageNumber > pagesMax) throw this.#error("pages-max", `the list goes on after ${pagesMax} pages`);
    const key = hashText(url.href, 32);
    if (this.#seenLinks.has(key))
      throw this.#error("repeated-link", `page ${pageNumber} was already read: the links loop`);
    this.#seenLinks.add(key);
  }

  async fetch(url: URL, pageNumber: number): Promise<RawPage<Item>> {
    const { signal, from } = this.#options;
    const stop = AbortSignal.any([this.#deadline.signal, ...(signal === undefined ? [] : [signal])]);
    try {
      return await this.#walk.fetch(url, stop);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (error.kind === "cancelled" && this.#deadline.signal.aborted && signal?.aborted !== true) throw this.#late();
      const isLink = pageNumber > 1 || from !== undefined;
      if (!isLink || ![400, 404, 410].includes(error.status ?? 0)) throw error;
      const problem = `the link to page ${pageNumber} is no longer good (status ${error.status}): start again from the first page`;
      throw pagingError(this.#walk, "expired", problem, error);
    }
  }

  afterPage(items: readonly Item[]): void {
    const { itemsMax } = this.#options;
    this.#items += items.length;
    if (itemsMax !== undefined && this.#items > itemsMax) {
      throw this.#error("items-max", `the list holds more than ${itemsMax} items`);
    }
    this.#emptyPages = items.length === 0 ? this.#emptyPages + 1 : 0;
    if (this.#emptyPages > emptyPagesMax) {
      throw this.#error("empty-pages-max", `more than ${emptyPagesMax} empty pages in a row`);
    }
    if (items.length === 0 || this.#walk.isShortened) return;
    // Pages with other ends differ: the whole page is hashed only when its ends came before.
    const ends = hashText(JSON.stringify([items.length, items[0], items.at(-1)]), 32);
    if (!this.#seenEnds.has(ends)) {
      this.#seenEnds.add(ends);
      return;
    }
    const key = hashText(JSON.stringify(items), 32);
    const times = (this.#seenPages.get(key) ?? 1) + 1;
    if (times > samePageMax) {
      throw this.#error("repeated-items", `the same page came ${times} times under different links: the links loop`);
    }
    this.#seenPages.set(key, times);
  }

  end(): void {
    this.#ended.abort();
  }

  #late(): ServiceError {
    return this.#error("deadline", `the walk took longer than ${this.#options.deadlineMs} ms`);
  }

  #error(reason: PagingReason, problem: string): ServiceError {
    return pagingError(this.#walk, reason, problem);
  }
}
