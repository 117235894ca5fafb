// Logs what a walk says of a list as a whole: another order, what it cost, failing mappings, other
// fields. Called by walk-feed.ts at the end of a walk.
import type { EventLog } from "../core/event-log.ts";
import { costlyReasons, type Feed } from "../model/feed.ts";
import { costlyWalksMin, type FeedStatus, type FeedStore } from "../store/feed-store.ts";
import { compareShapes, readShape, shapeOf } from "./list-shape.ts";
import type { ItemMapper, MappingFailures } from "./mapping.ts";
import type { ListKnowledge } from "./strategy/knowledge.ts";
import type { WalkReport } from "./strategy/walk.ts";

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
  const told = changes.slice(0, 20).join("; ");
  if (text !== before.shape) await feeds.keepShape(feed, text, told);
  if (told !== "") log.warn("feed.shape-changed", { ...feed, changes: told });
}
