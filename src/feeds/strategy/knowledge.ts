// What is known of a list's order, and how far a long walk has come: all that the next walk needs, kept in Redis as JSON.
// Pure. Read and written by walk.ts, page by page, so that a crash costs one page.
import * as z from "zod";
import { type Trail, trailShapes } from "./order-trail.ts";

const linkSchema = z.string().nullable();

const walkSchema = z.object({
  startedAtMs: z.number(),
  /** The newest discovery when it began: what was found later is found by it. */
  sinceSeq: z.int(),
  /** The page it stands on, which is read once more; null: before the first. What is counted below is from before this page. */
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
  /** Since when the order stands. */
  orderSinceMs: z.number(),
  /** How many walks spoke for growth at the end, and at the front. */
  forTail: z.int(),
  forHead: z.int(),
  /** Of the last whole walk: when it began, its pages, and the items there were by the end of the latest walk. */
  wholeAtMs: z.number().nullable(),
  pages: z.int(),
  items: z.int(),
  /** The last page with items on it. */
  lastPage: linkSchema,
  /** The earliest page with an item that is not final yet, and how many pages lie from there to the end (`tail`) or the front (`head`). */
  openFrom: linkSchema,
  openPages: z.int(),
  /** A whole walk that is not over yet; also what follows when a cheap one breaks off, since pages may have been taken in by it. */
  underway: walkSchema.nullable(),
});

/** A whole walk that is not over yet. */
export type UnderwayWalk = Readonly<z.infer<typeof walkSchema>>;

/** What is known of a list's order (version 1). */
export type ListKnowledge = Readonly<z.infer<typeof knowledgeSchema>>;

/** A list that nobody has read yet. */
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
  underway: null,
};

/** Reads it from Redis; what this version cannot read counts as nothing, which costs a whole walk and no item. */
export function readKnowledge(text: string | null | undefined): ListKnowledge {
  if (text === null || text === undefined) return nothingKnown;
  try {
    return knowledgeSchema.safeParse(JSON.parse(text)).data ?? nothingKnown;
  } catch {
    return nothingKnown;
  }
}

/** How a list is read this time: from its first page to its last, from its end, from its front, or a look at both ends. */
export type WalkKind = "whole" | "tail" | "head" | "ends";

/** When a list is read whole although it has an order, and when an order is given another chance. */
export interface StrategyLimits {
  readonly auditEveryMs: number;
  readonly scanForMs: number;
}

/** An order that missed something is found out within an hour; one that was given up is tried again after a day. */
export const defaultLimits: StrategyLimits = { auditEveryMs: 3_600_000, scanForMs: 86_400_000 };

/** A list of so few pages is always read whole: nothing is cheaper. */
const shortListPages = 2;
/** So many walks must speak for an order, and none against it. */
const evidenceMin = 2;

/** Pages that are read again at each walk for items that are not final; where there are more, whole walks come more often. */
export const openPagesMax = 10;
/** With so many open pages a whole walk may take two pages a second, on average: as many as open pages cost at the fastest pace. */
const msPerPage = 500;

/** How to read the list now. */
export function chooseWalk(known: ListKnowledge, nowMs: number, limits: StrategyLimits): WalkKind {
  if (known.underway !== null || known.wholeAtMs === null) return "whole";
  const wholeEveryMs = known.openPages > openPagesMax ? known.pages * msPerPage : limits.auditEveryMs;
  if (known.pages <= shortListPages || nowMs - known.wholeAtMs >= Math.min(wholeEveryMs, limits.auditEveryMs))
    return "whole";
  if (known.order === "scan") return nowMs - known.orderSinceMs >= limits.scanForMs ? "ends" : "whole";
  return known.order === "undecided" ? "ends" : known.order;
}

/** Counts a walk's trail as evidence, and decides an order when there is enough. */
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

/** Gives an order up: from now on the list is read whole, for a while. */
export function giveUp(known: ListKnowledge, nowMs: number): ListKnowledge {
  return { ...known, order: "scan", orderSinceMs: nowMs, forTail: 0, forHead: 0 };
}
