// What is known of a list's order, and the progress of a whole walk: all that the next walk needs,
// stored in Redis as JSON. walk.ts saves it page by page, so that a crash costs one page. Pure.
import * as z from "zod";
import type { WholeReason } from "../../model/feed.ts";
import { type Trail, trailShapes } from "./order-trail.ts";

const linkSchema = z.string().nullable();

const walkSchema = z.object({
  startedAtMs: z.number(),
  /** The newest discovery when the walk began; later ones are its own. */
  sinceSeq: z.int(),
  /**
   * The page to continue from, which is read again; null: before the first. The counts below do not
   * include it.
   */
  next: linkSchema,
  pages: z.int(),
  items: z.int(),
  trail: z.enum(trailShapes),
  lastPage: linkSchema,
  openFrom: linkSchema,
  openPages: z.int(),
  restarts: z.int(),
});

const knowledgeSchema = z.object({
  v: z.literal(1),
  order: z.enum(["undecided", "tail", "head", "scan"]),
  /** Since when the order is known. */
  orderSinceMs: z.number(),
  /** How many walks showed growth at the end, and at the front. */
  forTail: z.int(),
  forHead: z.int(),
  /** The last whole walk: its start, its pages, and the items known after the latest walk. */
  wholeAtMs: z.number().nullable(),
  pages: z.int(),
  items: z.int(),
  /** The last page with items. */
  lastPage: linkSchema,
  /**
   * The earliest page with an item that is not final, and the number of pages from there to the end
   * (`tail`) or the front (`head`).
   */
  openFrom: linkSchema,
  openPages: z.int(),
  /**
   * The credential in the list's links (core/link-credential.ts), because of which none is stored;
   * null: links are stored.
   */
  notKept: z.string().nullable().default(null),
  /**
   * Why items that are gone from the list cannot be counted (feeds/list-totals.ts); null: they can,
   * or need not be.
   */
  uncounted: z.string().nullable().default(null),
  /**
   * A whole walk in progress. Also set before a cheap walk, which may break off after it has stored
   * pages.
   */
  underway: walkSchema.nullable(),
});

/** A whole walk in progress. */
export type UnderwayWalk = Readonly<z.infer<typeof walkSchema>>;

/** What is known of a list's order (version 1). */
export type ListKnowledge = Readonly<z.infer<typeof knowledgeSchema>>;

/** A list that was never read. */
const nothingKnown: ListKnowledge = {
  v: 1,
  order: "undecided",
  orderSinceMs: 0,
  forTail: 0,
  forHead: 0,
  wholeAtMs: null,
  pages: 0,
  items: 0,
  lastPage: null,
  openFrom: null,
  openPages: 0,
  notKept: null,
  uncounted: null,
  underway: null,
};

/**
 * Parses stored knowledge. One that this version cannot read counts as none: that costs a whole
 * walk and no item.
 */
export function readKnowledge(text: string | null | undefined): ListKnowledge {
  if (text === null || text === undefined) return nothingKnown;
  try {
    return knowledgeSchema.safeParse(JSON.parse(text)).data ?? nothingKnown;
  } catch {
    return nothingKnown;
  }
}

/** How a list is read: all of it, from its end, from its front, or both ends. */
export type WalkKind = "whole" | "tail" | "head" | "ends";

/** How a list is read, and why where it is read whole. */
export type WalkChoice = { readonly kind: "whole"; readonly because: WholeReason } | { readonly kind: CheapKind };

/** The kinds that do not read the whole list. */
type CheapKind = Exclude<WalkKind, "whole">;

/**
 * When a list with a known order is read whole, and when a lost order is tried again. `whole`: read
 * it whole this time, and why.
 */
export interface StrategyLimits {
  readonly auditEveryMs: number;
  readonly scanForMs: number;
  readonly whole?: WholeReason | undefined;
}

/** An hourly audit finds what an order missed; a lost order is tried again after a day. */
export const defaultLimits: StrategyLimits = { auditEveryMs: 3_600_000, scanForMs: 86_400_000 };

/** A list with this many pages is always read whole: nothing is cheaper. */
const shortListPages = 2;
/** How many walks must support an order, with none against it. */
const evidenceMin = 2;

/**
 * How many pages are read again at each walk for items that are not final. With more of them, whole
 * walks come more often.
 */
export const openPagesMax = 10;
/**
 * With too many open pages, whole walks may take two pages a second on average: the cost of the
 * open pages at the fastest pace.
 */
const msPerPage = 500;

/** Chooses how to read the list now. */
export function chooseWalk(known: ListKnowledge, nowMs: number, limits: StrategyLimits): WalkChoice {
  const because = whyWhole(known, nowMs, limits);
  if (because !== undefined) return { kind: "whole", because };
  return { kind: known.order === "tail" || known.order === "head" ? known.order : "ends" };
}

function whyWhole(known: ListKnowledge, nowMs: number, limits: StrategyLimits): WholeReason | undefined {
  const { underway, wholeAtMs, pages, order, openPages, notKept } = known;
  if (underway !== null) return "resumed";
  if (wholeAtMs === null) return "first";
  if (limits.whole !== undefined) return limits.whole;
  if (pages <= shortListPages) return "short";
  if (order === "scan" && nowMs - known.orderSinceMs < limits.scanForMs) return "no-order";
  // Only a walk from the front needs no stored link.
  if (order !== "head" && notKept !== null) return "links-not-kept";
  if (nowMs - wholeAtMs >= limits.auditEveryMs) return "audit";
  return openPages > openPagesMax && nowMs - wholeAtMs >= pages * msPerPage ? "open-items" : undefined;
}

/** Counts a walk's trail as evidence, and decides on an order when there is enough. */
export function learn(known: ListKnowledge, trail: Trail, nowMs: number, limits: StrategyLimits): ListKnowledge {
  if (trail === "scattered") return giveUp(known, nowMs);
  if (known.order === "scan" && nowMs - known.orderSinceMs < limits.scanForMs) return known;
  const forTail = known.forTail + (trail === "known-new" ? 1 : 0);
  const forHead = known.forHead + (trail === "new-known" ? 1 : 0);
  if (forTail > 0 && forHead > 0) return giveUp(known, nowMs);
  const counted = { ...known, forTail, forHead };
  if (known.order === "tail" || known.order === "head") return counted;
  const order = forTail >= evidenceMin ? "tail" : forHead >= evidenceMin ? "head" : "undecided";
  return order === known.order ? counted : { ...counted, order, orderSinceMs: nowMs };
}

/** Gives an order up: the list is read whole for a while. */
export function giveUp(known: ListKnowledge, nowMs: number): ListKnowledge {
  return { ...known, order: "scan", orderSinceMs: nowMs, forTail: 0, forHead: 0 };
}
