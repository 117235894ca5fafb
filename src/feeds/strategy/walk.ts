// Reads what is new of a list, at the least cost that its order allows, and learns about the order from what it sees.
//
//   undecided: a look at both ends ──two walks agree──▶ tail (from the last page) or head (from the first) ──missed something──▶ scan
//       ▲                                                         │ whole walk each hour: did it miss anything?                   │
//       └──────────────────────────────────────── after a day ────┴───────────────────────────────────────────────────────────────┘
//
// Called by walk-feed.ts, once a walk. Nothing here knows the service or Redis.
import { type EndWalk, walkEnds, walkHead, walkTail } from "./end-walks.ts";
import { chooseWalk, giveUp, type ListKnowledge, learn, type UnderwayWalk, type WalkKind } from "./knowledge.ts";
import { fits, type Trail } from "./order-trail.ts";
import type { WalkParts } from "./walk-parts.ts";
import { freshWalk, walkWhole } from "./whole-walk.ts";

/** What a walk did. `sinceMs`: all that it says of the list was read after that instant, also where it went on from a page. `demoted`: why the order was given up in it; `fallback`: why a cheap walk was followed by a whole one. */
export interface WalkReport {
  readonly kind: WalkKind;
  readonly known: ListKnowledge;
  readonly sinceMs: number;
  readonly fallback?: string;
  readonly demoted?: string;
}

const cheapWalks = { tail: walkTail, head: walkHead, ends: walkEnds } as const;

/**
 * Does one walk. What it found stands in the book, what it learned is saved.
 * @throws whatever the list throws; all that was read before is kept.
 */
export async function walkList(known: ListKnowledge, parts: WalkParts): Promise<WalkReport> {
  const kind = chooseWalk(known, parts.nowMs, parts.limits);
  const begun = known.underway ?? freshWalk(parts.nowMs, await parts.seq());
  if (kind === "whole") return whole(known, begun, parts);
  const noteWholeDue = () => parts.save({ ...known, underway: begun });
  const seen = await cheapWalks[kind](known, { ...parts, sinceSeq: begun.sinceSeq, noteWholeDue });
  if (seen.broken !== undefined) {
    const before = seen.disproved ? giveUp(known, parts.nowMs) : known;
    const report = await whole(before, begun, parts);
    return { ...report, fallback: seen.broken, ...(seen.disproved ? { demoted: seen.broken } : {}) };
  }
  const learned = learn(settle(known, seen, kind), seen.trail, parts.nowMs, parts.limits);
  await parts.save(learned);
  return { kind, known: learned, sinceMs: parts.nowMs };
}

function settle(known: ListKnowledge, seen: EndWalk, kind: WalkKind): ListKnowledge {
  return {
    ...known,
    items: known.items + seen.fresh,
    lastPage: kind === "head" ? known.lastPage : seen.lastPage,
    openFrom: seen.openFrom,
    openPages: seen.openPages,
    underway: null,
  };
}

async function whole(before: ListKnowledge, begun: UnderwayWalk, parts: WalkParts): Promise<WalkReport> {
  const walk = await walkWhole(before, begun, parts);
  const { startedAtMs, pages, items, lastPage, openFrom, openPages, trail } = walk;
  const read = { ...before, wholeAtMs: startedAtMs, pages, items, lastPage, openFrom, openPages, underway: null };
  const missed = whatWasMissed(before, trail);
  const known = missed === undefined ? learn(read, trail, parts.nowMs, parts.limits) : giveUp(read, parts.nowMs);
  await parts.save(known);
  // The pages before the one that it went on from may have changed since they were read.
  const sinceMs = begun.next === null ? parts.nowMs : begun.startedAtMs;
  return { kind: "whole", known, sinceMs, ...(missed === undefined ? {} : { demoted: missed }) };
}

/** What a whole walk says about the order that had been relied on. */
function whatWasMissed({ order }: ListKnowledge, trail: Trail): string | undefined {
  if ((order !== "tail" && order !== "head") || fits(order, trail)) return undefined;
  return `it was read from its ${order === "tail" ? "end" : "front"}, but something new stood elsewhere`;
}
