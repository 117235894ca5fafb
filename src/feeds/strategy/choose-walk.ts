// Chooses how the next walk reads a list, by what is known of its order and how far a whole
// walk has come. walk.ts stores both in Redis as JSON, page by page: a crash costs one page. Pure.
//
// The only evidence of an undocumented order is the trail: the shape of one walk, front to back.
import * as z from "zod";
import { parseJson } from "../../core/json.ts";
import { credentialIn } from "../../core/link-credential.ts";
import type { WholeReason } from "../../model/feed.ts";
import type { Novelty } from "../../store/known-items.ts";

/** The shape so far: `known-new` grew at its end, `new-known` at its front, `scattered` neither. */
const trails = ["empty", "known", "new", "known-new", "new-known", "scattered"] as const;

/** One of the six shapes. */
export type Trail = (typeof trails)[number];

const trailAfter: Readonly<Record<Trail, Readonly<Record<"known" | "new", Trail>>>> = {
  empty: { known: "known", new: "new" },
  known: { known: "known", new: "known-new" },
  new: { known: "new-known", new: "new" },
  "known-new": { known: "scattered", new: "known-new" },
  "new-known": { known: "new-known", new: "scattered" },
  scattered: { known: "scattered", new: "scattered" },
};

/** The trail after these items. A repeated one counts for nothing: pages shift. */
export function extendTrail(trail: Trail, novelties: readonly Novelty[]): Trail {
  return novelties.reduce<Trail>((shape, novelty) => (novelty === "again" ? shape : trailAfter[shape][novelty]), trail);
}

/** Whether a list that always grows at this end can leave such a trail. */
export function fits(order: "tail" | "head", trail: Trail): boolean {
  return trail !== "scattered" && trail !== (order === "tail" ? "new-known" : "known-new");
}

const linkSchema = z.string().nullable();

const walkSchema = z.object({
  startedAtMs: z.number(),
  /** The newest discovery when the walk began; later ones are its own. */
  sinceSeq: z.int(),
  /** The page to continue from, not counted below; null: before the first. */
  next: linkSchema,
  pages: z.int(),
  items: z.int(),
  trail: z.enum(trails),
  lastPage: linkSchema,
  openFrom: linkSchema,
  openFirst: z.string().nullable(),
  openToEnd: z.int(),
  openToFront: z.int(),
  /** How often it began anew. From 1 on, it also counts items found since `sinceSeq`. */
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
  /** The earliest page with an open item, the id of that item, and the pages from there on. */
  openFrom: linkSchema,
  openFirst: z.string().nullable(),
  openToEnd: z.int(),
  /** The pages from the first one to the latest with an open item. */
  openToFront: z.int(),
  /** The credential in the list's links, because of which none is stored; null: none. */
  notKept: z.string().nullable().default(null),
  /** Why items that are gone cannot be counted (list-totals.ts); null: they can, or need not be. */
  uncounted: z.string().nullable().default(null),
  /** The hash of the mapping that gave all items their facts; null: not noted yet. */
  mappedBy: z.string().nullable().default(null),
  /** A whole walk in progress; also set before a cheap one, which may break off. */
  underway: walkSchema.nullable(),
});

/** A whole walk in progress. */
export type UnderwayWalk = Readonly<z.infer<typeof walkSchema>>;

/** What a walk sees of its pages. */
export type PagesSeen = Omit<UnderwayWalk, "startedAtMs" | "sinceSeq" | "next" | "items" | "restarts">;

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
  openFirst: null,
  openToEnd: 0,
  openToFront: 0,
  notKept: null,
  uncounted: null,
  mappedBy: null,
  underway: null,
};

/** Parses stored knowledge. One that cannot be read counts as none: that costs a whole walk. */
export function readKnowledge(text: string | null | undefined): ListKnowledge {
  return knowledgeSchema.safeParse(parseJson(text)).data ?? nothingKnown;
}

/** The knowledge under this mapping. After another one, the list counts as not read whole yet. */
export function underMapping(known: ListKnowledge, mappedBy: string): ListKnowledge {
  if (known.mappedBy === mappedBy || known.mappedBy === null) return { ...known, mappedBy };
  const { underway } = known;
  const restart = underway && freshWalk(underway.startedAtMs, underway.sinceSeq, Math.max(underway.restarts, 1));
  return { ...known, mappedBy, wholeAtMs: null, underway: restart };
}

/** The walks that do not read the whole list: from its end, from its front, or both ends. */
type CheapKind = "tail" | "head" | "ends";

/** How a list is read. */
export type WalkKind = "whole" | CheapKind;

/** How a list is read, and why where it is read whole. */
export type WalkChoice = { readonly kind: "whole"; readonly because: WholeReason } | { readonly kind: CheapKind };

/** When a known order is audited, and a lost one tried again. `whole`: read it whole, and why. */
export interface StrategyLimits {
  readonly auditEveryMs: number;
  readonly scanForMs: number;
  readonly whole?: WholeReason | undefined;
}

/** An hourly audit finds what an order missed; a lost order is tried again after a day. */
export const defaultLimits: StrategyLimits = { auditEveryMs: 3_600_000, scanForMs: 86_400_000 };

/** How much of a parameter's name is kept for the log. */
const nameMax = 40;
/** A list with this many pages is always read whole: nothing is cheaper. */
const shortListPages = 2;
/** How many walks must support an order, with none against it. */
const evidenceMin = 2;

/** How many pages with open items are read again at each walk; with more, whole walks do. */
export const openPagesMax = 10;
/** With too many open pages, whole walks may take two pages a second on average. */
const msPerPage = 500;

/** Chooses how to read the list now. */
export function chooseWalk(known: ListKnowledge, nowMs: number, limits: StrategyLimits): WalkChoice {
  const because = whyWhole(known, nowMs, limits);
  if (because !== undefined) return { kind: "whole", because };
  return { kind: known.order === "tail" || known.order === "head" ? known.order : "ends" };
}

function whyWhole(known: ListKnowledge, nowMs: number, limits: StrategyLimits): WholeReason | undefined {
  const { underway, wholeAtMs, pages, order, notKept } = known;
  if (underway !== null) return "resumed";
  if (wholeAtMs === null) return "first";
  if (limits.whole !== undefined) return limits.whole;
  if (pages <= shortListPages) return "short";
  if (order === "scan" && nowMs - known.orderSinceMs < limits.scanForMs) return "no-order";
  // Only a walk from the front needs no stored link.
  if (order !== "head" && notKept !== null) return "links-not-kept";
  if (nowMs - wholeAtMs >= limits.auditEveryMs) return "audit";
  return leavesOut(known) && nowMs - wholeAtMs >= pages * msPerPage ? "open-items" : undefined;
}

/** Whether only whole walks read all pages with open items: there are too many of them. */
export function leavesOut({ order, openToFront, openToEnd }: ListKnowledge): boolean {
  return (order === "head" ? openToFront : openToEnd) > openPagesMax;
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

/** What a walk has seen of the pages before its first one. */
export const nothingRead: PagesSeen = {
  trail: "empty",
  pages: 0,
  lastPage: null,
  openFrom: null,
  openFirst: null,
  openToEnd: 0,
  openToFront: 0,
};

/** A walk that began at this instant, before its first page. */
export function freshWalk(startedAtMs: number, sinceSeq: number, restarts = 0): UnderwayWalk {
  return { ...nothingRead, next: null, items: 0, startedAtMs, sinceSeq, restarts };
}

/** The knowledge without links that carry a credential; a walk in progress on one restarts. */
export function withoutCredentials(known: ListKnowledge, listPath: string): ListKnowledge {
  const { lastPage, openFrom, underway } = known;
  const found = credentialOf([lastPage, openFrom], listPath);
  const links = found === undefined ? {} : { lastPage: null, openFrom: null };
  const underwayFound = credentialOf([underway?.next, underway?.lastPage, underway?.openFrom], listPath);
  const restart = underway && freshWalk(underway.startedAtMs, underway.sinceSeq, Math.max(underway.restarts, 1));
  // The finding stays until a link without a credential has been seen.
  const notKept = (found ?? underwayFound)?.slice(0, nameMax) ?? (lastPage === null ? known.notKept : null);
  return { ...known, ...links, notKept, underway: underwayFound === undefined ? underway : restart };
}

function credentialOf(links: readonly (string | null | undefined)[], listPath: string): string | undefined {
  return links
    .map((link) => (link == null ? undefined : credentialIn(link, listPath)))
    .find((found) => found !== undefined);
}
