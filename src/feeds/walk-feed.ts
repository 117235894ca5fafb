// The reader of a feed: reads what is new of one list (strategy/), writes it into the feed book, and sleeps until the next
// walk while anybody waits. What a poll has just read whole is walked instead of the service, also when nobody waits. There is one per feed, since the walk has one name in the queue. It never decides what
// a run's outcome is.
import type { EventLog } from "../core/event-log.ts";
import { firstLine } from "../core/expression.ts";
import type { Hold } from "../core/gate.ts";
import type { SyncService } from "../service/client.ts";
import { ServiceError } from "../service/service-error.ts";
import type { EndedWalk, FeedPage, FeedStatus } from "../store/feed-book.ts";
import type { Novelty } from "../store/known-items.ts";
import type { SeenItem } from "../store/seen-item.ts";
import type { Feed, FeedWalk, ItemFacts } from "../tasks/feed.ts";
import { done, snooze, type Verdict } from "../tasks/verdict.ts";
import { announceNew, type ItemAnnouncer } from "./announce-items.ts";
import { beginCensus, type RunningCensus, readWholeMax } from "./census.ts";
import { ItemSampling } from "./item-sampling.ts";
import { withoutCredentials } from "./kept-links.ts";
import { compareShapes, readShape, shapeOf } from "./list-shape.ts";
import type { ItemReader, MappingFailures } from "./mapping.ts";
import { type FeedPace, walkGapMs, walkPaceMs } from "./pace.ts";
import { type GivenPage, serviceList } from "./service-list.ts";
import { LinkExpired, type PagedList } from "./strategy/abstract-list.ts";
import { defaultLimits, type ListKnowledge, readKnowledge, type StrategyLimits } from "./strategy/knowledge.ts";
import { walkList } from "./strategy/walk.ts";

/** What the reader needs of the feed book (store/feed-book.ts). */
interface ReaderBook {
  takeIn(feed: Feed, status: FeedStatus, page: FeedPage): Promise<readonly Novelty[] | undefined>;
  keepKnowledge(feed: Feed, knowledge: string): Promise<void>;
  keepShape(feed: Feed, shape: string): Promise<void>;
  walked(feed: Feed, walk: EndedWalk): Promise<void>;
  failed(feed: Feed, failure: string): Promise<void>;
  /** Notes that whatever was discovered so far has been logged. */
  told(feed: Feed): Promise<void>;
  discoveredSince(feed: Feed, seq: number): Promise<readonly SeenItem[]>;
  status(feed: Feed): Promise<FeedStatus>;
  waiting(feed: Feed, nowMs: number): Promise<number>;
}

/** What the reader works with. `service` and `itemReader` answer undefined for a service that is no longer configured. */
export interface WalkParts {
  readonly book: ReaderBook;
  readonly nowMs: () => Promise<number>;
  readonly service: (name: string) => SyncService | undefined;
  /** What holds everything to a service back right now. */
  readonly held: (service: string) => Promise<Hold | undefined>;
  readonly itemReader: (feed: Feed) => ItemReader | undefined;
  readonly pace: FeedPace;
  /** When lists are read whole all the same; the defaults unless set. */
  readonly limits?: StrategyLimits;
  /** How many items are logged; unless set, each walk may log as many as one feed in a minute. */
  readonly sampling?: ItemSampling;
  /** What polls have read of a list; nothing unless set. */
  readonly readings?: { newerThan(feed: Feed, atMs: number): Promise<GivenReading | undefined> };
  /** Who wants new items beside the log; nobody unless set. */
  readonly announcer?: ItemAnnouncer;
  /** Whether starts wait for their turn at the service; none does unless set. */
  readonly startsWait?: (service: string) => Promise<boolean>;
  readonly log: EventLog;
}

interface GivenReading {
  readonly beganAtMs: number;
  readonly pages: readonly GivenPage[] | undefined;
}

/** So many of its periods an audit may be late. */
const auditPeriodsMax = 4;

/** So many items of the last page are looked at for their shape. */
const shapeItemsMax = 100;

/** Does one walk of a feed, if it is time and anybody waits, and says when to call again. */
export async function walkFeed(walk: FeedWalk, parts: WalkParts, signal: AbortSignal): Promise<Verdict> {
  const feed: Feed = { service: walk.service, repository: walk.repository, list: walk.list };
  const service = parts.service(feed.service);
  const reader = parts.itemReader(feed);
  const nowMs = await parts.nowMs();
  if (service === undefined || reader === undefined) return done;
  const before = await parts.book.status(feed);
  const given = await parts.readings?.newerThan(feed, before.walkEndedAtMs ?? 0);
  const isAwaited = (await parts.book.waiting(feed, nowMs)) > 0;
  if (given === undefined && !isAwaited) return done;
  const lastWalkMs = before.walkTookMs ?? (before.walkEndedAtMs ?? 0) - (before.walkStartedAtMs ?? 0);
  // After a failure whoever is in a hurry waits, too: a list that cannot be read is no better a moment later.
  const earliestMs = Math.max(
    (before.walkEndedAtMs ?? 0) + walkGapMs(parts.pace, lastWalkMs),
    (before.failedAtMs ?? 0) + parts.pace.fastestMs,
  );
  if (given === undefined && nowMs < earliestMs) return snooze(earliestMs);
  const hold = given === undefined ? await parts.held(feed.service) : undefined;
  if (hold !== undefined && hold.waitMs > 0) return snooze(nowMs + hold.waitMs);
  try {
    const startedAtMs = given?.beganAtMs ?? nowMs;
    await readList(feed, { ...parts, service, reader, before, startedAtMs, given: given?.pages }, signal);
  } catch (error) {
    // A poll has read the list anew since a walk broke off: that one begins anew, too.
    if (given !== undefined && error instanceof LinkExpired) return snooze(nowMs);
    const failure = error instanceof LinkExpired ? error.cause : error;
    if (!(failure instanceof ServiceError)) throw error;
    await announceNew(feed, before, parts);
    // Nothing is wrong with the list: it is read on from where it stopped.
    if (failure.kind === "throttled" || failure.kind === "cancelled" || signal.aborted) await parts.book.told(feed);
    if (failure.kind === "throttled")
      return snooze((await parts.nowMs()) + (failure.retryAfterMs ?? parts.pace.fastestMs));
    if (failure.kind === "cancelled" || signal.aborted) return snooze(nowMs);
    await parts.book.failed(feed, `${failure.kind}: ${firstLine(failure)}`);
    parts.log.warn("feed.unreadable", { ...feed, kind: failure.kind, message: firstLine(failure) });
    return snooze(nowMs + Math.max(parts.pace.fastestMs, failure.retryAfterMs ?? 0));
  }
  if (!isAwaited) return done;
  const after = await parts.book.status(feed);
  const endedAtMs = after.walkEndedAtMs ?? nowMs;
  const quietForMs = endedAtMs - Math.max(after.grewAtMs ?? 0, after.wantedAtMs ?? 0);
  return snooze(endedAtMs + walkPaceMs(parts.pace, quietForMs, endedAtMs - nowMs));
}

interface Reading extends Omit<WalkParts, "service" | "itemReader"> {
  readonly service: SyncService;
  readonly reader: ItemReader;
  readonly before: FeedStatus;
  readonly startedAtMs: number;
  readonly given?: readonly GivenPage[] | undefined;
}

async function readList(feed: Feed, reading: Reading, signal: AbortSignal): Promise<void> {
  const { reader, before, startedAtMs, book, log } = reading;
  const isFirst = before.walks === 0;
  const tellItem = createItemTeller(feed, reading);
  const untold = await untoldItems(feed, reading);
  untold.forEach(tellItem);
  let fresh = untold.length;
  const census = beginCensus(feed.list);
  const failedBefore = reader.failures();
  const takeIn = async (items: readonly ItemFacts[], sinceSeq: number, mustKnowFirst: boolean) => {
    const novelties = await book.takeIn(feed, before, { items, sinceSeq, mustKnowFirst });
    if (novelties !== undefined) census?.add(items);
    const found = items.filter((_, index) => novelties?.[index] === "new");
    fresh += found.length;
    // What a list holds when it is first read is no news.
    if (!isFirst) found.forEach(tellItem);
    return novelties;
  };
  // Other versions kept links that open the list, or stand for such a one (store/shared-readings.ts): nobody can go on there.
  const known = withoutCredentials(readKnowledge(before.knowledge));
  let lastItems: readonly unknown[] = [];
  const onItems = (items: readonly unknown[]) => {
    if (items.length > 0) lastItems = items;
  };
  const list = serviceList(feed, { ...reading, signal, onItems });
  const report = await walkList(known, {
    list,
    seq: async () => before.seq,
    takeIn: async (items, sinceSeq) => (await takeIn(items, sinceSeq, false)) ?? [],
    takeInFrom: (items, sinceSeq) => takeIn(items, sinceSeq, true),
    save: (knowledge) => book.keepKnowledge(feed, JSON.stringify(withoutCredentials(knowledge))),
    nowMs: startedAtMs,
    limits: await limitsFor(feed, known, reading),
  });
  await watchShape(feed, reading, lastItems.slice(-shapeItemsMax));
  const whole = report.kind === "whole";
  // A walk that went on where another one stopped has not seen the pages before.
  const sawAll = whole && (known.underway === null || known.underway.next === null);
  const counted = sawAll && census !== undefined ? await countOf(census, list) : undefined;
  await announceNew(feed, before, reading);
  await book.walked(feed, { startedAtMs, sinceMs: report.sinceMs, count: report.known.items, whole, census: counted });
  if (fresh > 0)
    log.info("feed.walked", { ...feed, count: report.known.items, fresh, first: isFirst, how: report.kind });
  if (report.demoted !== undefined) log.warn("feed.order-lost", { ...feed, order: known.order, why: report.demoted });
  else if (report.known.order !== known.order) log.info("feed.order-found", { ...feed, order: report.known.order });
  tellFailures(feed, reading, { before: failedBefore, isNews: fresh > 0 });
}

/** An expression that fails on an item leaves that fact unknown and stops nothing. Told when there is something new, or another failure than before. */
function tellFailures(
  feed: Feed,
  { reader, log }: Reading,
  { before, isNews }: { readonly before: MappingFailures; readonly isNews: boolean },
): void {
  const { count, last, item } = reader.failures();
  if (count === before.count || (!isNews && last === before.last)) return;
  log.warn("feed.mapping-failing", { ...feed, failures: count - before.count, item, last });
}

/** Whether somebody must know what is not in the list, and no walk of all of it has begun since. */
function isWholeWanted({ before: { wholeWantedAtMs = Number.NaN, wholeSinceMs = 0 }, startedAtMs }: Reading): boolean {
  return startedAtMs >= wholeWantedAtMs && wholeSinceMs < wholeWantedAtMs;
}

/**
 * Some lists are short, and what is gone from them matters: they are read whole at each walk. So is what is there already. The audit of a
 * list that is read from one end gives way to starts that wait for the service, for some of its periods.
 */
async function limitsFor(feed: Feed, known: ListKnowledge, reading: Reading): Promise<StrategyLimits> {
  const { limits = defaultLimits, given, startsWait, startedAtMs } = reading;
  const isShort = known.items <= (readWholeMax[feed.list] ?? -1);
  if (given !== undefined || isShort || isWholeWanted(reading)) return { ...limits, auditEveryMs: 0 };
  const isAudit = (known.order === "tail" || known.order === "head") && known.underway === null;
  const isDue = startedAtMs - (known.wholeAtMs ?? 0) >= limits.auditEveryMs;
  if (!isAudit || !isDue || !(await startsWait?.(feed.service))) return limits;
  return { ...limits, auditEveryMs: auditPeriodsMax * limits.auditEveryMs };
}

/** The census of a whole walk. Pages may shift while a list changes: over several of them the service's own count must agree. */
async function countOf(census: RunningCensus, list: PagedList): Promise<ReadonlyMap<string, number> | undefined> {
  const { pages, items } = census.seen();
  const counts = census.counts();
  if (counts === undefined || pages <= 1) return counts;
  return (await list.count()) === items ? counts : undefined;
}

/** Writes a line about an item, unless the feed's minute is full; then its number is counted all the same. */
function createItemTeller(feed: Feed, { sampling = new ItemSampling(), startedAtMs, log }: Reading) {
  return ({ id, syncJobId, label, startedAtMs: beganMs, finished, succeeded }: ItemFacts): void => {
    if (!sampling.take(feed, startedAtMs)) return;
    const startedAt = beganMs === undefined ? undefined : new Date(beganMs).toISOString();
    log.info("feed.item", { ...feed, id, syncJobId, label, startedAt, finished, succeeded });
  };
}

/** What a reader that died had taken in and perhaps not logged. */
async function untoldItems(feed: Feed, { before, book }: Reading): Promise<readonly SeenItem[]> {
  const { toldSeq = before.seq } = before;
  if (before.walks === 0 || toldSeq >= before.seq) return [];
  // A replica of an older version, which notes nothing, has read the feed since: it logged what it found.
  if (before.takenSeq !== before.seq) {
    await book.told(feed);
    return [];
  }
  return (await book.discoveredSince(feed, toldSeq)).filter(({ firstSeq }) => firstSeq > toldSeq);
}

/** Says once when the service begins to send other fields: a mapping may have stopped to mean what it did. */
async function watchShape(feed: Feed, { book, before, log }: Reading, items: readonly unknown[]): Promise<void> {
  if (items.length === 0) return;
  const { changes, shape } = compareShapes(readShape(before.shape), shapeOf(items), items.length);
  const text = JSON.stringify(shape);
  if (text !== before.shape) await book.keepShape(feed, text);
  if (changes.length > 0) log.warn("feed.shape-changed", { ...feed, changes: changes.slice(0, 20).join("; ") });
}
