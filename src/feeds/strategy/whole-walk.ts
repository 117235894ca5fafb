// Reads a list from its first page to its last, and saves after each page where it is: whoever comes after a crash goes on there.
// The only walk that proves anything: the cheap ones rest on what it found out about the order.
import type { Novelty } from "../../store/known-items.ts";
import { LinkExpired, type ListPage } from "./abstract-list.ts";
import type { ListKnowledge, UnderwayWalk } from "./knowledge.ts";
import { follow } from "./order-trail.ts";
import type { WalkParts } from "./walk-parts.ts";

/** How often a walk begins again because its links are not known any more. */
const restartsMax = 3;

/** The walk that began at this instant, not yet a page far. */
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
 * Reads on from where the walk stands to the end of the list; answers the finished walk. The page it stands on is read once more,
 * so that a deletion in between, which moves everything forward, is noticed: then it begins anew.
 * @throws LinkExpired when its links went stale too often; the next walk begins anew.
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

/** Undefined: the page it stands on has moved. */
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

/** What comes twice counts once; but where pages are read once more, what they show again was not counted yet. */
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
