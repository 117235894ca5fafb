// Tells what a walk found: new items (a log line each, and a group for the sinks that ask for them)
// before the FeedStore marks them as published, so that a crash in between repeats items and loses
// none; and what is new of the list as a whole: its order, its cost, its fields, failing mappings.
// Called by walk-feed.ts.
import * as z from "zod";
import type { EventLog } from "../core/event-log.ts";
import { isJsonObject, parseJson } from "../core/json.ts";
import { costlyReasons, type Feed, feedId, type ItemFacts } from "../model/feed.ts";
import type { SeenItem } from "../store/feed-mirror.ts";
import { costlyWalksMin, type FeedStatus, type FeedStore } from "../store/feed-store.ts";
import type { ItemMapper, MappingFailures } from "./mapping.ts";
import type { ListKnowledge } from "./strategy/choose-walk.ts";
import type { WalkReport } from "./strategy/walk.ts";

/** The receiver of new items; `announce` is durable, and drops a group that it had before. */
export interface ItemAnnouncer {
  readonly wants: (feed: Feed) => boolean;
  readonly announce: (feed: Feed, group: readonly SeenItem[]) => Promise<void>;
}

type ItemSource = Pick<FeedStore, "discoveredSince">;

const linesMax = 20;
const windowMs = 60_000;
const feedsMax = 1_000;

/** Limits log lines about items to 20 a minute and feed; counts are never sampled. */
export class ItemSampling {
  readonly #windows = new Map<string, { readonly sinceMs: number; lines: number }>();

  /** Takes one line of a feed's minute; false when none is left. */
  take(feed: Feed, nowMs: number): boolean {
    const id = feedId(feed);
    let window = this.#windows.get(id);
    if (window === undefined || nowMs - window.sinceMs >= windowMs) {
      if (this.#windows.size >= feedsMax) this.#windows.clear();
      window = { sinceMs: nowMs, lines: 0 };
      this.#windows.set(id, window);
    }
    window.lines += 1;
    return window.lines <= linesMax;
  }

  /** Logs an item, unless the feed's minute is full. */
  log(feed: Feed, item: ItemFacts, { nowMs, log }: { readonly nowMs: number; readonly log: EventLog }): void {
    if (!this.take(feed, nowMs)) return;
    const { id, syncJobId, label, finished, succeeded } = item;
    const startedAt = item.startedAtMs === undefined ? undefined : new Date(item.startedAtMs).toISOString();
    log.info("feed.item", { ...feed, id, syncJobId, label, startedAt, finished, succeeded });
  }
}

/** Items that a crashed walk stored and may not have published. */
export async function unpublishedItems(feed: Feed, before: FeedStatus, feeds: ItemSource): Promise<SeenItem[]> {
  const { loggedSeq = before.seq } = before;
  if (before.walks === 0 || loggedSeq >= before.seq) return [];
  return (await feeds.discoveredSince(feed, loggedSeq)).filter(({ firstSeq }) => firstSeq > loggedSeq);
}

/** Announces items that are not published yet, each once. `before`: as the walk began. */
export async function announceNew(
  feed: Feed,
  before: FeedStatus,
  { feeds, announcer }: { readonly feeds: ItemSource; readonly announcer?: ItemAnnouncer },
): Promise<void> {
  // Items of the first walk were there already: not new.
  if (announcer === undefined || before.walks === 0 || !announcer.wants(feed)) return;
  const { seq, loggedSeq = seq } = before;
  const items = (await feeds.discoveredSince(feed, loggedSeq)).filter(({ firstSeq }) => firstSeq > loggedSeq);
  // A crashed walk may have announced its items: the same group again is recognised.
  for (const group of [items.filter(({ firstSeq }) => firstSeq <= seq), items.filter(({ firstSeq }) => firstSeq > seq)])
    if (group.length > 0) await announcer.announce(feed, group);
}

/** Logs a changed order, or a change in storing links. */
export function logOrder(
  feed: Feed,
  known: ListKnowledge,
  { report, log }: { readonly report: WalkReport; readonly log: EventLog },
): void {
  const { order, notKept } = report.known;
  if (notKept !== known.notKept) {
    if (notKept === null) log.info("feed.links-kept", { ...feed });
    else log.warn("feed.links-not-kept", { ...feed, carries: notKept });
  }
  const isLost = report.demoted !== undefined || (order === "scan" && known.order !== "scan");
  if (isLost)
    log.warn("feed.order-lost", { ...feed, order: known.order, why: report.demoted ?? costlyReasons["no-order"] });
  else if (order !== known.order) log.info("feed.order-found", { ...feed, order, readFrom: readFrom(order, notKept) });
}

function readFrom(order: ListKnowledge["order"], notKept: string | null): string {
  if (order === "head") return "front";
  return order === "tail" && notKept === null ? "end" : "whole";
}

/** Logs a list that cost more than needed: the 1st, 2nd, 4th, 8th … time, and another reason. */
export function logCost(
  feed: Feed,
  { costlyWalks = 0, costlyReason }: FeedStatus,
  { report, log }: { readonly report: WalkReport; readonly log: EventLog },
): void {
  const { because, kind } = report;
  const { order, pages } = report.known;
  const why = because === undefined ? undefined : costlyReasons[because];
  if (why !== undefined) {
    const inARow = costlyWalks + 1;
    if (because === costlyReason && !Number.isInteger(Math.log2(inARow))) return;
    log.warn("feed.read-whole", { ...feed, reason: because, why, order, pages, inARow });
  } else if (kind !== "whole" && costlyWalks >= costlyWalksMin)
    log.info("feed.read-in-part", { ...feed, order, after: costlyWalks });
}

/** Logs failing expressions, when an item is new or the failure is another one. */
export function logFailures(
  feed: Feed,
  { mapper, log }: { readonly mapper: ItemMapper; readonly log: EventLog },
  { before, isNews }: { readonly before: MappingFailures; readonly isNews: boolean },
): void {
  const { count, last, item } = mapper.failures();
  if (count === before.count || (!isNews && last === before.last)) return;
  log.warn("feed.mapping-failing", { ...feed, failures: count - before.count, item, last });
}

/** How many changes of a list are told at once. */
const changesMax = 20;

/** Logs once when the service sends other fields: a mapping may not mean the same any more. */
export async function watchShape(
  feed: Feed,
  items: readonly unknown[],
  {
    feeds,
    before,
    log,
  }: { readonly feeds: Pick<FeedStore, "keepShape">; readonly before: FeedStatus; readonly log: EventLog },
): Promise<void> {
  if (items.length === 0) return;
  const { changes, shape } = compareShapes(readShape(before.shape), shapeOf(items), items.length);
  const text = JSON.stringify(shape);
  const shown = changes.slice(0, changesMax);
  const more = changes.length > shown.length ? [`and ${changes.length - shown.length} more`] : [];
  const told = [...shown, ...more].join("; ");
  if (text !== before.shape) await feeds.keepShape(feed, text, told);
  if (told !== "") log.warn("feed.shape-changed", { ...feed, changes: told });
}

const fieldSchema = z.object({
  name: z.string(),
  types: z.array(z.string()),
  /** True when each examined item had it, and there were enough items. */
  always: z.boolean(),
});

const shapeSchema = z.object({ v: z.literal(1), fields: z.array(fieldSchema) });

/** The fields by name, each with its JSON types (without null) and whether it was always there. */
export type ListShape = Readonly<z.infer<typeof shapeSchema>>;

const fieldsMax = 200;
const nameLengthMax = 200;
/** How many items must have or lack a field before that counts. */
const itemsForSure = 20;

/** The shape of these items, by their top-level fields. */
export function shapeOf(items: readonly unknown[]): ListShape {
  const fields = new Map<string, { types: Set<string>; seen: number }>();
  for (const item of items) {
    if (!isJsonObject(item)) continue;
    for (const [name, value] of Object.entries(item)) {
      if (name.startsWith("@") || name.includes("@odata.") || name.length > nameLengthMax) continue;
      if (!fields.has(name) && fields.size >= fieldsMax) continue;
      const field = fields.get(name) ?? { types: new Set<string>(), seen: 0 };
      field.seen += 1;
      if (value !== null) field.types.add(Array.isArray(value) ? "list" : typeof value);
      fields.set(name, field);
    }
  }
  const always = (seen: number) => seen === items.length && items.length >= itemsForSure;
  const rows = [...fields].sort(([a], [b]) => (a < b ? -1 : 1));
  const named = rows.map(([name, { types, seen }]) => ({ name, types: [...types].sort(), always: always(seen) }));
  return { v: 1, fields: named };
}

/** What is new in a shape, and the merged shape. Each change is reported once. */
export function compareShapes(
  known: ListShape | undefined,
  seen: ListShape,
  itemsSeen: number,
): { readonly changes: readonly string[]; readonly shape: ListShape } {
  if (known === undefined) return { changes: [], shape: seen };
  const changes: string[] = [];
  const [before, now] = [byName(known), byName(seen)];
  const fields: z.infer<typeof fieldSchema>[] = [];
  const isEnough = itemsSeen >= itemsForSure;
  for (const [name, was] of before) {
    const is = now.get(name);
    if (is === undefined && was.always && isEnough) changes.push(`${name} is gone`);
    const added = (is?.types ?? []).filter((type) => !was.types.includes(type));
    // A field that was always null shows its type only now: not new.
    if (added.length > 0 && was.types.length > 0)
      changes.push(`${name} was ${was.types.join(" or ")}, now also ${added.join(" and ")}`);
    fields.push({
      name,
      types: [...was.types, ...added].sort(),
      always: was.always && (is !== undefined || !isEnough),
    });
  }
  for (const [name, { types }] of now) {
    if (before.has(name) || fields.length >= fieldsMax) continue;
    if (before.size > 0) changes.push(`${name} is new`);
    fields.push({ name, types, always: false });
  }
  return { changes, shape: { v: 1, fields } };
}

/** A map, since a service may have a field named `constructor`. */
function byName(shape: ListShape): Map<string, z.infer<typeof fieldSchema>> {
  return new Map(shape.fields.map((field) => [field.name, field]));
}

/** Parses a stored shape; one that this version cannot read counts as none. */
export function readShape(text: string | undefined): ListShape | undefined {
  return shapeSchema.safeParse(parseJson(text)).data;
}
