// Finds the new items of a list at the least cost that its order allows, and learns the order
// meanwhile.
//
//   undecided: read both ends ──two walks agree──▶ tail (from the last page) or head (from the first) ──missed something──▶ scan
//       ▲                                                         │ whole walk each hour: did it miss anything?                   │
//       └──────────────────────────────────────── after a day ────┴───────────────────────────────────────────────────────────────┘
//
// Called by walk-feed.ts once a walk. Knows neither the service nor Redis.
import { costlyReasons, type ItemFacts, type WholeReason } from "../../model/feed.ts";
import type { FeedPage } from "../../store/feed-store.ts";
import type { Novelty } from "../../store/known-items.ts";
import {
  chooseWalk,
  extendTrail,
  fits,
  freshWalk,
  giveUp,
  type ListKnowledge,
  learn,
  leavesOut,
  nothingRead,
  openPagesMax,
  type PagesSeen,
  type StrategyLimits,
  type Trail,
  type UnderwayWalk,
  type WalkKind,
} from "./choose-walk.ts";

/** What a walk of a list works with. `save` stores the knowledge for the next walk. */
export interface WalkTools extends ItemStore {
  readonly list: PagedList;
  readonly nowMs: number;
  readonly limits: StrategyLimits;
  save(known: ListKnowledge): Promise<void>;
}

/** How often a walk restarts because its links have expired. */
const restartsMax = 3;

/** The longest deadline that a policy can give a run, and a day for the walk after it. */
const openForMs = 8 * 86_400_000;

const nothingSeen: CheapResult = { ...nothingRead, fresh: 0 };

/** What a walk did. `sinceMs`: its reads are later; `demoted`: why the order was given up. */
export interface WalkReport {
  readonly kind: WalkKind;
  readonly known: ListKnowledge;
  readonly sinceMs: number;
  readonly because?: WholeReason;
  readonly demoted?: string;
}

const cheapWalks = { tail: walkTail, head: walkHead, ends: walkEnds } as const;

/**
 * Does one walk: stores the items it finds, and saves what it learns.
 * @throws the list's errors; everything read before is kept.
 */
export async function walkList(known: ListKnowledge, tools: WalkTools): Promise<WalkReport> {
  const choice = chooseWalk(known, tools.nowMs, tools.limits);
  const begun = known.underway ?? freshWalk(tools.nowMs, await tools.seq());
  if (choice.kind === "whole") return { because: choice.because, ...(await finishWhole(known, begun, tools)) };
  const { kind } = choice;
  // Saved before a walk from the front: if it breaks off, the next walk reads the whole list.
  const noteWholeDue = () => tools.save({ ...known, underway: { ...begun, restarts: 1 } });
  const found = new Set<string>();
  const noting = withNovelties(tools, (novelty, id) => {
    if (novelty === "new") found.add(id);
    return novelty;
  });
  const seen = await cheapWalks[kind](known, { ...noting, sinceSeq: begun.sinceSeq, noteWholeDue });
  if (seen.broken !== undefined) {
    const before = seen.disproved ? giveUp(known, tools.nowMs) : known;
    // Items that the cheap walk found count as new in the whole walk, too.
    const counting = withNovelties(tools, (novelty, id) => (novelty === "again" && found.delete(id) ? "new" : novelty));
    const report = await finishWhole(before, begun, counting);
    return { ...report, because: seen.broken, ...(seen.disproved ? { demoted: costlyReasons[seen.broken] } : {}) };
  }
  const learned = learn(noteWalk(known, seen, kind), seen.trail, tools.nowMs, tools.limits);
  await tools.save(learned);
  return { kind, known: learned, sinceMs: tools.nowMs };
}

/** The same tools; `see` says how each item's novelty counts. */
function withNovelties(tools: WalkTools, see: (novelty: Novelty, id: string) => Novelty): WalkTools {
  const takeIn: ItemStore["takeIn"] = async (page, checkpoint) =>
    (await tools.takeIn(page, checkpoint))?.map((novelty, index) => see(novelty, page.items[index]?.id ?? ""));
  return { ...tools, takeIn };
}

function noteWalk(known: ListKnowledge, seen: CheapResult, kind: WalkKind): ListKnowledge {
  const lastPage = kind === "head" ? known.lastPage : seen.lastPage;
  return { ...known, items: known.items + seen.fresh, lastPage, ...openOf(seen), underway: null };
}

function openOf({ openFrom, openFirst, openToEnd, openToFront }: Omit<PagesSeen, "trail">) {
  return { openFrom, openFirst, openToEnd, openToFront };
}

/** `isExpired`: it began anew since a link of it had expired. */
type FinishedWalk = UnderwayWalk & { readonly isExpired: boolean };

async function finishWhole(before: ListKnowledge, begun: UnderwayWalk, tools: WalkTools): Promise<WalkReport> {
  const walk = await walkWhole(before, begun, tools);
  const { startedAtMs, pages, items, lastPage, trail, isExpired } = walk;
  const read = { ...before, wholeAtMs: startedAtMs, pages, items, lastPage, ...openOf(walk), underway: null };
  const missed = whatWasMissed(before, trail);
  const known = missed === undefined ? learn(read, trail, tools.nowMs, tools.limits) : giveUp(read, tools.nowMs);
  await tools.save(known);
  // Pages before the one that the walk continued from may have changed since. A poll's pages, which
  // can end it, may be older than its own.
  const sinceMs = begun.next === null ? tools.nowMs : Math.min(begun.startedAtMs, tools.nowMs);
  // Where a poll's pages lack the saved one, the service did not forget it.
  const expired = isExpired && tools.limits.whole !== "polled" ? { because: "link-expired" as const } : {};
  return { kind: "whole", known, sinceMs, ...expired, ...(missed === undefined ? {} : { demoted: missed }) };
}

/** Why a whole walk disproves the order in use. */
function whatWasMissed({ order }: ListKnowledge, trail: Trail): string | undefined {
  if ((order !== "tail" && order !== "head") || fits(order, trail)) return undefined;
  return `it was read from its ${order === "tail" ? "end" : "front"}, but something new stood elsewhere`;
}

/** What a cheap walk works with. */
type CheapWalkTools = WalkTools & { readonly sinceSeq: number; readonly noteWholeDue: () => Promise<void> };

/** The result of a cheap walk. `broken`: why it proves nothing: the list must be read whole. */
interface CheapResult extends PagesSeen {
  readonly fresh: number;
  readonly broken?: WholeReason;
  /** The result contradicts the order in use. */
  readonly disproved?: true;
}

/** Reads a list that grows at its end: from the earliest open page, or the last one, on. */
async function walkTail(known: ListKnowledge, tools: CheapWalkTools): Promise<CheapResult> {
  // Too many to read each time: whole walks read them.
  const skipsOpenPages = leavesOut(known);
  const from = skipsOpenPages ? known.lastPage : (known.openFrom ?? known.lastPage);
  if (from === null) return { ...nothingSeen, broken: "last-page-unknown" };
  let seen: CheapResult = { ...nothingSeen, lastPage: known.lastPage };
  let isOpenFound = skipsOpenPages || known.openFirst === null;
  try {
    for await (const page of tools.list.pages(from)) {
      // The page continues known items only if its first item is known: a deletion may have moved
      // new items before this page.
      const mustKnowFirst = seen.pages === 0;
      const novelties = await tools.takeIn({ items: page.items, sinceSeq: tools.sinceSeq, mustKnowFirst });
      if (novelties === undefined) return { ...seen, broken: "last-page-moved" };
      isOpenFound ||= page.items.some(({ id }) => id === known.openFirst);
      seen = { ...passPage(seen, page, { novelties, nowMs: tools.nowMs }), fresh: seen.fresh + countNew(novelties) };
    }
  } catch (error) {
    if (!(error instanceof LinkExpired)) throw error;
    return { ...seen, broken: "link-expired" };
  }
  if (!fits("tail", seen.trail)) return { ...seen, broken: "order-lost", disproved: true };
  // A deletion may have moved it before the pages that were read.
  if (!isOpenFound) return { ...seen, broken: "open-item-moved" };
  if (!skipsOpenPages) return seen;
  return { ...seen, ...openOf(known), openToEnd: known.openToEnd + Math.max(seen.pages - 1, 0) };
}

/** Reads a list that grows at its front: up to a page that ends known, as far as items are open. */
async function walkHead(known: ListKnowledge, tools: CheapWalkTools): Promise<CheapResult> {
  const pagesMin = Math.min(known.openToFront + 1, openPagesMax);
  let seen = nothingSeen;
  // The pages of nothing but news push the open items back.
  let knownPages = 0;
  for await (const page of tools.list.pages(undefined)) {
    if (seen.pages === 0) await tools.noteWholeDue();
    const novelties = await takePage(page, tools);
    seen = pass(seen, page, { novelties, nowMs: tools.nowMs });
    if (novelties.at(-1) !== "known") continue;
    knownPages += 1;
    if (known.openToFront === 0 || knownPages >= pagesMin) break;
  }
  if (leavesOut(known)) seen = { ...seen, openToFront: Math.max(seen.openToFront, known.openToFront) };
  return fits("head", seen.trail) ? seen : { ...seen, broken: "order-lost", disproved: true };
}

/** Reads the first page and from the last page on, and requests the count. */
async function walkEnds(known: ListKnowledge, tools: CheapWalkTools): Promise<CheapResult> {
  const head = await firstPage(tools);
  const tail = await walkTail(known, tools);
  const fresh = head.fresh + tail.fresh;
  // From the front, an open item may stand as far back as the end.
  const openToFront = tail.openFrom === null ? head.openToFront : known.pages + tail.pages;
  const both: CheapResult = { ...tail, pages: head.pages + tail.pages, fresh, openToFront };
  if (tail.broken !== undefined) return both;
  if (head.fresh > 0 && head.trail !== "new-known") return { ...both, broken: "first-page-new" };
  if (head.fresh > 0 && tail.fresh > 0) return { ...both, broken: "both-ends-grew", disproved: true };
  const count = await tools.list.count();
  if (count === undefined) return { ...both, broken: "count-unreadable" };
  if (count !== known.items + fresh) return { ...both, broken: "count-differs" };
  return head.fresh > 0 ? { ...both, trail: head.trail } : both;
}

/** Reads up to the first page with items. */
async function firstPage(tools: CheapWalkTools): Promise<CheapResult> {
  let seen = nothingSeen;
  for await (const page of tools.list.pages(undefined)) {
    if (seen.pages === 0) await tools.noteWholeDue();
    seen = pass(seen, page, { novelties: await takePage(page, tools), nowMs: tools.nowMs });
    if (page.items.length > 0) break;
  }
  return seen;
}

async function takePage({ items }: ListPage, { takeIn, sinceSeq }: CheapWalkTools): Promise<readonly Novelty[]> {
  return (await takeIn({ items, sinceSeq })) ?? [];
}

/** What the store said of a page's items, and when the walk began. */
interface PageTaken {
  readonly novelties: readonly Novelty[];
  readonly nowMs: number;
}

/** What is seen after one more page from the front. */
function pass(seen: CheapResult, page: ListPage, { novelties, nowMs }: PageTaken): CheapResult {
  const pages = seen.pages + 1;
  const openToFront = page.items.some(isOpenAt(nowMs)) ? pages : seen.openToFront;
  const fresh = seen.fresh + countNew(novelties);
  return { ...seen, pages, fresh, openToFront, trail: extendTrail(seen.trail, novelties) };
}

/**
 * What is not finished, or may not be: its end may make it readable. Only as long as a run of that
 * time may wait for it: one that is stuck for ever would have the list read whole for ever. An item
 * without an id is not looked for again: a change makes it another one.
 */
function isOpenAt(nowMs: number): (item: ItemFacts) => boolean {
  return ({ id, fingerprint, finished, unread, startedAtMs = nowMs }) => {
    const mayEnd = finished === false || unread?.includes("finished") === true;
    return mayEnd && startedAtMs > nowMs - openForMs && id !== `#${fingerprint}`;
  };
}

function countNew(novelties: readonly Novelty[]): number {
  return novelties.filter((novelty) => novelty === "new").length;
}

/**
 * Reads on from the saved position to the end. The saved page is read again: where a deletion has
 * moved its items, the walk restarts.
 * @throws LinkExpired when its links expired too often; the next walk restarts.
 */
async function walkWhole(known: ListKnowledge, begun: UnderwayWalk, tools: WalkTools): Promise<FinishedWalk> {
  let walk = begun;
  let isExpired = false;
  for (;;) {
    try {
      const finished = await readOn(known, walk, tools);
      if (finished !== undefined) return { ...finished, isExpired };
    } catch (error) {
      if (!(error instanceof LinkExpired)) throw error;
      if (walk.restarts >= restartsMax) {
        await tools.save({ ...known, underway: freshWalk(tools.nowMs, walk.sinceSeq, 1) });
        throw error;
      }
      isExpired = true;
    }
    walk = freshWalk(walk.startedAtMs, walk.sinceSeq, walk.restarts + 1);
    await tools.save({ ...known, underway: walk });
  }
}

/** Undefined: the saved page has moved. */
async function readOn(known: ListKnowledge, from: UnderwayWalk, tools: WalkTools): Promise<UnderwayWalk | undefined> {
  let walk = from;
  let mustKnowFirst = walk.next !== null && walk.restarts < restartsMax;
  for await (const page of tools.list.pages(walk.next ?? undefined, { readAhead: true })) {
    const isLast = page.nextLink === undefined;
    const checkpoint = isLast ? undefined : { ...known, underway: { ...walk, next: page.url } };
    const novelties = await tools.takeIn({ items: page.items, sinceSeq: walk.sinceSeq, mustKnowFirst }, checkpoint);
    if (novelties === undefined) return undefined;
    walk = {
      ...passPage(walk, page, { novelties, nowMs: tools.nowMs }),
      items: walk.items + countOf(novelties, mustKnowFirst || walk.restarts > 0),
    };
    mustKnowFirst = false;
  }
  return walk;
}

/** Counts distinct items. On a page that is read again, its items were not counted yet. */
function countOf(novelties: readonly Novelty[], isReread: boolean): number {
  return isReread ? novelties.length : novelties.filter((novelty) => novelty !== "again").length;
}

/** What is seen after one more page, on the way to the end. */
function passPage<Seen extends PagesSeen>(seen: Seen, page: ListPage, { novelties, nowMs }: PageTaken): Seen {
  const open = page.items.find(isOpenAt(nowMs));
  const isFirstOpen = open !== undefined && seen.openFrom === null;
  const { openFrom, openFirst } = isFirstOpen ? { openFrom: page.url, openFirst: open.id } : seen;
  const pages = seen.pages + 1;
  return {
    ...seen,
    pages,
    trail: extendTrail(seen.trail, novelties),
    lastPage: page.items.length > 0 ? page.url : seen.lastPage,
    openFrom,
    openFirst,
    openToEnd: openFrom === null ? 0 : seen.openToEnd + 1,
    openToFront: open === undefined ? seen.openToFront : pages,
  };
}

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
  /**
   * Stores a page whole, once, and the checkpoint with it; undefined: it must know the first item,
   * and does not.
   */
  readonly takeIn: (page: FeedPage, checkpoint?: ListKnowledge) => Promise<readonly Novelty[] | undefined>;
}
