// Reads a list from first page to last, and saves its position after each page, so that the next
// walk continues after a crash. Only a whole walk proves anything; cheap walks rely on the order
// that it found.
import type { Novelty } from "../../store/known-items.ts";
import { LinkExpired, type ListPage } from "./abstract-list.ts";
import type { WalkParts } from "./contracts.ts";
import type { ListKnowledge, UnderwayWalk } from "./knowledge.ts";
import { follow } from "./order-trail.ts";

/** How often a walk restarts because its links have expired. */
const restartsMax = 3;

/** A walk that began at this instant, before its first page. */
export function freshWalk(startedAtMs: number, sinceSeq: number): UnderwayWalk {
  const nothing = {
    next: null,
    pages: 0,
    items: 0,
    trail: "empty",
    lastPage: null,
    openFrom: null,
    openPages: 0,
  } as const;
  return { ...nothing, startedAtMs, sinceSeq, restarts: 0 };
}

/**
 * Reads on from the saved position to the end; returns the finished walk. The saved page is read
 * again: a deletion would have moved all items forward, and then the walk restarts.
 * @throws LinkExpired when its links expired too often; the next walk restarts.
 */
export async function walkWhole(known: ListKnowledge, begun: UnderwayWalk, parts: WalkParts): Promise<UnderwayWalk> {
  let walk = begun;
  for (;;) {
    try {
      const finished = await readOn(known, walk, parts);
      if (finished !== undefined) return finished;
    } catch (error) {
      if (!(error instanceof LinkExpired)) throw error;
      if (walk.restarts >= restartsMax) {
        await parts.save({ ...known, underway: freshWalk(parts.nowMs, walk.sinceSeq) });
        throw error;
      }
    }
    walk = { ...freshWalk(walk.startedAtMs, walk.sinceSeq), restarts: walk.restarts + 1 };
    await parts.save({ ...known, underway: walk });
  }
}

/** Undefined: the saved page has moved. */
async function readOn(known: ListKnowledge, from: UnderwayWalk, parts: WalkParts): Promise<UnderwayWalk | undefined> {
  let walk = from;
  let isResumed = walk.next !== null && walk.restarts < restartsMax;
  for await (const page of parts.list.pages(walk.next ?? undefined, { readAhead: true })) {
    const takeIn = isResumed ? parts.takeInFrom : parts.takeIn;
    const novelties = await takeIn(page.items, walk.sinceSeq);
    if (novelties === undefined) return undefined;
    if (page.nextLink !== undefined) await parts.save({ ...known, underway: { ...walk, next: page.url } });
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
