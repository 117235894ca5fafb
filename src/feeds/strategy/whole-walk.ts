// Reads a list from first page to last, and saves its position after each page, so that the next
// walk continues after a crash. Only a whole walk proves anything about a list.
import type { Novelty } from "../../store/known-items.ts";
import { type ItemStore, LinkExpired, type ListPage, type PagedList } from "./abstract-list.ts";
import { follow, freshWalk, type ListKnowledge, type StrategyLimits, type UnderwayWalk } from "./knowledge.ts";

/** What a walk of a list works with. `save` stores the knowledge for the next walk. */
export interface ListWalk extends ItemStore {
  readonly list: PagedList;
  readonly nowMs: number;
  readonly limits: StrategyLimits;
  save(known: ListKnowledge): Promise<void>;
}

/** How often a walk restarts because its links have expired. */
const restartsMax = 3;

/**
 * Reads on from the saved position to the end. The saved page is read again: where a deletion has
 * moved its items, the walk restarts.
 * @throws LinkExpired when its links expired too often; the next walk restarts.
 */
export async function walkWhole(known: ListKnowledge, begun: UnderwayWalk, tools: ListWalk): Promise<UnderwayWalk> {
  let walk = begun;
  for (;;) {
    try {
      const finished = await readOn(known, walk, tools);
      if (finished !== undefined) return finished;
    } catch (error) {
      if (!(error instanceof LinkExpired)) throw error;
      if (walk.restarts >= restartsMax) {
        await tools.save({ ...known, underway: freshWalk(tools.nowMs, walk.sinceSeq) });
        throw error;
      }
    }
    walk = freshWalk(walk.startedAtMs, walk.sinceSeq, walk.restarts + 1);
    await tools.save({ ...known, underway: walk });
  }
}

/** Undefined: the saved page has moved. */
async function readOn(known: ListKnowledge, from: UnderwayWalk, tools: ListWalk): Promise<UnderwayWalk | undefined> {
  let walk = from;
  let isResumed = walk.next !== null && walk.restarts < restartsMax;
  for await (const page of tools.list.pages(walk.next ?? undefined, { readAhead: true })) {
    const takeIn = isResumed ? tools.takeInFrom : tools.takeIn;
    const novelties = await takeIn(page.items, walk.sinceSeq);
    if (novelties === undefined) return undefined;
    if (page.nextLink !== undefined) await tools.save({ ...known, underway: { ...walk, next: page.url } });
    walk = { ...pass(walk, page, novelties), items: walk.items + countOf(novelties, isResumed || walk.restarts > 0) };
    isResumed = false;
  }
  return walk;
}

/** Counts distinct items. On a page that is read again, its items were not counted yet. */
function countOf(novelties: readonly Novelty[], isReread: boolean): number {
  return isReread ? novelties.length : novelties.filter((novelty) => novelty !== "again").length;
}

function pass(walk: UnderwayWalk, page: ListPage, novelties: readonly Novelty[]): UnderwayWalk {
  const isOpen = page.items.some((item) => item.finished === false);
  const openFrom = walk.openFrom ?? (isOpen ? page.url : null);
  return {
    ...walk,
    pages: walk.pages + 1,
    trail: follow(walk.trail, novelties),
    lastPage: page.items.length > 0 ? page.url : walk.lastPage,
    openFrom,
    openPages: openFrom === null ? 0 : walk.openPages + 1,
  };
}
