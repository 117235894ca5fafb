// The cheap walks: from the end of a list that grows there, from the front of one that grows there, or a look at both ends while
// nobody knows. Each says whether what it saw fits; when it does not, walk.ts reads the list whole.
import { LinkExpired } from "./abstract-list.ts";
import { type ListKnowledge, openPagesMax } from "./knowledge.ts";
import { fits, follow, type Trail } from "./order-trail.ts";
import type { WalkParts } from "./walk-parts.ts";

/** A cheap walk from the front first notes that a whole one is due: should it break off, the pages it took in would hide what is behind them. */
type Parts = WalkParts & { readonly sinceSeq: number; readonly noteWholeDue: () => Promise<void> };

/** What a cheap walk saw. `broken`: why it proves nothing, so that the list must be read whole. */
export interface EndWalk {
  readonly trail: Trail;
  readonly pages: number;
  readonly fresh: number;
  readonly lastPage: string | null;
  readonly openFrom: string | null;
  readonly openPages: number;
  readonly broken?: string;
  /** What it saw is not possible in the order that it relied on. */
  readonly disproved?: true;
}

const nothingSeen: EndWalk = { trail: "empty", pages: 0, fresh: 0, lastPage: null, openFrom: null, openPages: 0 };

/** Reads a list that grows at its end: from the earliest page with an open item, or the last page, to the end. */
export async function walkTail(known: ListKnowledge, parts: Parts): Promise<EndWalk> {
  // Too many to read each time: they are left to the whole walks, and not forgotten.
  const isLeft = known.openPages > openPagesMax;
  const from = isLeft ? known.lastPage : (known.openFrom ?? known.lastPage);
  if (from === null) return { ...nothingSeen, broken: "nobody knows its last page" };
  let seen: EndWalk = { ...nothingSeen, lastPage: known.lastPage };
  try {
    for await (const page of parts.list.pages(from)) {
      // What stands before the first item is known only when that item is: a deletion may have moved new ones off this page.
      const takeIn = seen.pages === 0 ? parts.takeInFrom : parts.takeIn;
      const novelties = await takeIn(page.items, parts.sinceSeq);
      if (novelties === undefined) return { ...seen, broken: "its last page has moved" };
      const isOpen = page.items.some((item) => item.finished === false);
      const openFrom = seen.openFrom ?? (isOpen ? page.url : null);
      seen = {
        ...pass(seen, novelties),
        lastPage: page.items.length > 0 ? page.url : seen.lastPage,
        openFrom,
        openPages: openFrom === null ? 0 : seen.openPages + 1,
      };
    }
  } catch (error) {
    if (!(error instanceof LinkExpired)) throw error;
    return { ...seen, broken: "its last page's link has expired" };
  }
  if (isLeft) seen = { ...seen, openFrom: known.openFrom, openPages: known.openPages + Math.max(seen.pages - 1, 0) };
  return fits("tail", seen.trail)
    ? seen
    : { ...seen, broken: "something new stands before something known", disproved: true };
}

/** Reads a list that grows at its front: up to the first page that ends with something known, and as far as items are open. */
export async function walkHead(known: ListKnowledge, parts: Parts): Promise<EndWalk> {
  const pagesMin = Math.min(known.openPages + 1, openPagesMax);
  let seen = nothingSeen;
  for await (const page of parts.list.pages(undefined)) {
    if (seen.pages === 0) await parts.noteWholeDue();
    const novelties = await parts.takeIn(page.items, parts.sinceSeq);
    const isOpen = page.items.some((item) => item.finished === false);
    seen = pass(seen, novelties);
    if (isOpen) seen = { ...seen, openFrom: page.url, openPages: seen.pages };
    const endsKnown = novelties.length === 0 || novelties.at(-1) === "known";
    if (endsKnown && (known.openPages === 0 || seen.pages >= pagesMin)) break;
  }
  if (known.openPages > openPagesMax) seen = { ...seen, openPages: Math.max(seen.openPages, known.openPages) };
  const { trail } = seen;
  return fits("head", trail)
    ? seen
    : { ...seen, broken: "something new stands behind something known", disproved: true };
}

/** Looks at the first page and from the last page on, and asks for the count. */
export async function walkEnds(known: ListKnowledge, parts: Parts): Promise<EndWalk> {
  const head = await firstPage(parts);
  const tail = await walkTail(known, parts);
  const fresh = head.fresh + tail.fresh;
  const both: EndWalk = { ...tail, pages: head.pages + tail.pages, fresh };
  if (tail.broken !== undefined) return both;
  if (head.fresh > 0 && head.trail !== "new-known") return { ...both, broken: "more is new than its first page shows" };
  if (head.fresh > 0 && tail.fresh > 0) return { ...both, broken: "both of its ends have grown", disproved: true };
  const count = await parts.list.count();
  if (count !== undefined && count !== known.items + fresh)
    return { ...both, broken: "its count says that more has changed" };
  return head.fresh > 0 ? { ...both, trail: head.trail } : both;
}

async function firstPage(parts: Parts): Promise<EndWalk> {
  for await (const page of parts.list.pages(undefined)) {
    await parts.noteWholeDue();
    return pass(nothingSeen, await parts.takeIn(page.items, parts.sinceSeq));
  }
  return nothingSeen;
}

function pass(seen: EndWalk, novelties: Parameters<typeof follow>[1]): EndWalk {
  const fresh = novelties.filter((novelty) => novelty === "new").length;
  return { ...seen, pages: seen.pages + 1, fresh: seen.fresh + fresh, trail: follow(seen.trail, novelties) };
}
