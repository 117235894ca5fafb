// Walks a feed: finds new items of one list (strategy/), stores them in the FeedStore, and sleeps
// until the next walk while runs wait. If a poll has just fetched the whole list, its pages are
// reused. The queue's job name makes the walk unique. Never decides a run's outcome.
import type { EventLog } from "../core/event-log.ts";
import { firstLine } from "../core/expression.ts";
import type { Denied } from "../core/limiter.ts";
import { credentialIn } from "../core/link-credential.ts";
import { dearReasons, type Feed, type FeedWalk, type ItemFacts } from "../model/feed.ts";
import { done, snooze, type Verdict } from "../model/verdict.ts";
import type { SyncService } from "../service/client.ts";
import { factsOf } from "../service/operations.ts";
import { ServiceError } from "../service/service-error.ts";
import type { SeenItem } from "../store/feed-mirror.ts";
import { dearWalksMin, type EndedWalk, type FeedPage, type FeedStatus } from "../store/feed-store.ts";
import type { Novelty } from "../store/known-items.ts";
import { announceNew, type ItemAnnouncer } from "./announce-items.ts";
import { ItemSampling } from "./item-sampling.ts";
import { compareShapes, readShape, shapeOf } from "./list-shape.ts";
import { beginTotals, type RunningTotals, readWholeMax } from "./list-totals.ts";
import type { ItemReader, MappingFailures } from "./mapping.ts";
import { type FeedPace, walkGapMs, walkPaceMs } from "./pace.ts";
import { type GivenPage, operationOf, serviceList } from "./service-list.ts";
import { LinkExpired, type PagedList } from "./strategy/abstract-list.ts";
import {
  defaultLimits,
  type ListKnowledge,
  readKnowledge,
  type StrategyLimits,
  type UnderwayWalk,
} from "./strategy/knowledge.ts";
import { type WalkReport, walkList } from "./strategy/walk.ts";
import { freshWalk } from "./strategy/whole-walk.ts";

/** How much of a parameter's name is kept for the log. */
const nameMax = 40;

/** What the walk needs of the FeedStore (store/feed-store.ts). */
interface ReaderBook {
  takeIn(feed: Feed, status: FeedStatus, page: FeedPage): Promise<readonly Novelty[] | undefined>;
  keepKnowledge(feed: Feed, knowledge: string): Promise<void>;
  keepShape(feed: Feed, shape: string): Promise<void>;
  walked(feed: Feed, walk: EndedWalk): Promise<void>;
  failed(feed: Feed, failure: string): Promise<void>;
  /** Notes that everything discovered so far has been published. */
  told(feed: Feed): Promise<void>;
  discoveredSince(feed: Feed, seq: number): Promise<readonly SeenItem[]>;
  status(feed: Feed): Promise<FeedStatus>;
  waiting(feed: Feed, nowMs: number): Promise<number>;
}

/**
 * What the walk works with. `service` and `itemReader` return undefined for a service that is not
 * configured any more.
 */
export interface WalkParts {
  readonly feeds: ReaderBook;
  readonly nowMs: () => Promise<number>;
  readonly service: (name: string) => SyncService | undefined;
  /** What blocks every request to a service right now. */
  readonly deniedBy: (service: string) => Promise<Denied | undefined>;
  readonly itemReader: (feed: Feed) => ItemReader | undefined;
  readonly pace: FeedPace;
  /** When lists are read whole anyway; default: `defaultLimits`. */
  readonly limits?: StrategyLimits;
  /** Limits the log lines about items; default: one minute's lines for each walk. */
  readonly sampling?: ItemSampling;
  /** Lists that polls have read; default: none. */
  readonly readings?: { newerThan(feed: Feed, atMs: number): Promise<GivenReading | undefined> };
  /** The sinks that want new items; default: none. */
  readonly announcer?: ItemAnnouncer;
  /** Whether starts wait for the limiter of the service; default: never. */
  readonly startsWait?: (service: string) => Promise<boolean>;
  readonly log: EventLog;
}

interface GivenReading {
  readonly beganAtMs: number;
  readonly pages: readonly GivenPage[] | undefined;
}

/** How many periods an audit may be late. */
const auditPeriodsMax = 4;

/** How many items of the last page are examined for their shape. */
const shapeItemsMax = 100;

/** Does one walk of a feed, if it is due and runs wait, and says when to call again. */
export async function walkFeed(walk: FeedWalk, parts: WalkParts, signal: AbortSignal): Promise<Verdict> {
  const feed: Feed = { service: walk.service, repository: walk.repository, list: walk.list };
  const service = parts.service(feed.service);
  const reader = parts.itemReader(feed);
  const nowMs = await parts.nowMs();
  if (service === undefined || reader === undefined) return done;
  const before = await parts.feeds.status(feed);
  const given = await parts.readings?.newerThan(feed, before.walkEndedAtMs ?? 0);
  const isAwaited = (await parts.feeds.waiting(feed, nowMs)) > 0;
  if (given === undefined && !isAwaited) return done;
  const lastWalkMs = before.walkTookMs ?? (before.walkEndedAtMs ?? 0) - (before.walkStartedAtMs ?? 0);
  // After a failure urgent runs wait, too: the list is not readable a moment later.
  const earliestMs = Math.max(
    (before.walkEndedAtMs ?? 0) + walkGapMs(parts.pace, lastWalkMs),
    (before.failedAtMs ?? 0) + parts.pace.fastestMs,
  );
  if (given === undefined && nowMs < earliestMs) return snooze(earliestMs);
  const hold = given === undefined ? await parts.deniedBy(feed.service) : undefined;
  if (hold !== undefined && hold.waitMs > 0) return snooze(nowMs + hold.waitMs);
  try {
    const startedAtMs = given?.beganAtMs ?? nowMs;
    await readList(feed, { ...parts, service, reader, before, startedAtMs, given: given?.pages }, signal);
  } catch (error) {
    // A poll has read the list since a walk broke off: restart that walk.
    if (given !== undefined && error instanceof LinkExpired) return snooze(nowMs);
    const failure = error instanceof LinkExpired ? error.cause : error;
    if (!(failure instanceof ServiceError)) throw error;
    await announceNew(feed, before, parts);
    // Nothing is wrong with the list: the next walk continues where this one stopped.
    if (failure.kind === "throttled" || failure.kind === "cancelled" || signal.aborted) await parts.feeds.told(feed);
    if (failure.kind === "throttled")
      return snooze((await parts.nowMs()) + (failure.retryAfterMs ?? parts.pace.fastestMs));
    if (failure.kind === "cancelled" || signal.aborted) return snooze(nowMs);
    await parts.feeds.failed(feed, `${failure.kind}: ${firstLine(failure)}`);
    parts.log.warn("feed.unreadable", { ...feed, kind: failure.kind, message: firstLine(failure) });
    return snooze(nowMs + Math.max(parts.pace.fastestMs, failure.retryAfterMs ?? 0));
  }
  if (!isAwaited) return done;
  const after = await parts.feeds.status(feed);
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
  const { reader, before, startedAtMs, feeds: book, log } = reading;
  const isFirst = before.walks === 0;
  const tellItem = createItemNotifier(feed, reading);
  const untold = await untoldItems(feed, reading);
  untold.forEach(tellItem);
  let fresh = untold.length;
  const totals = beginTotals(feed.list);
  const failedBefore = reader.failures();
  const takeIn = async (items: readonly ItemFacts[], sinceSeq: number, mustKnowFirst: boolean) => {
    const novelties = await book.takeIn(feed, before, { items, sinceSeq, mustKnowFirst });
    if (novelties !== undefined) totals?.add(items);
    const found = items.filter((_, index) => novelties?.[index] === "new");
    fresh += found.length;
    // Items of the first walk were there already: not new.
    if (!isFirst) found.forEach(tellItem);
    return novelties;
  };
  // Never continue from a stored link with a credential (store/shared-readings.ts).
  const listPath = factsOf(operationOf[feed.list]).path;
  const known = withoutCredentials(readKnowledge(before.knowledge), listPath);
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
    save: (knowledge) => book.keepKnowledge(feed, JSON.stringify(withoutCredentials(knowledge, listPath))),
    nowMs: startedAtMs,
    limits: await limitsFor(feed, known, reading),
  });
  await watchShape(feed, reading, lastItems.slice(-shapeItemsMax));
  const whole = report.kind === "whole";
  // A walk that continued another one has not seen the pages before.
  const sawAll = whole && (known.underway === null || known.underway.next === null);
  const { counted, uncounted } = sawAll && totals !== undefined ? await countOf(totals, list) : {};
  if (uncounted !== undefined && uncounted !== known.uncounted) {
    await book.keepKnowledge(feed, JSON.stringify(withoutCredentials({ ...report.known, uncounted }, listPath)));
    if (uncounted !== null) log.warn("feed.not-counted", { ...feed, reason: uncounted });
  }
  await announceNew(feed, before, reading);
  const { because } = report;
  await book.walked(feed, {
    startedAtMs,
    sinceMs: report.sinceMs,
    count: report.known.items,
    whole,
    because,
    totals: counted,
  });
  if (fresh > 0)
    log.info("feed.walked", { ...feed, count: report.known.items, fresh, first: isFirst, how: report.kind });
  tellOrder(feed, reading, { known, report });
  tellCost(feed, reading, report);
  tellFailures(feed, reading, { before: failedBefore, isNews: fresh > 0 });
}

/** Logs a changed order, or a change in storing links. */
function tellOrder(
  feed: Feed,
  { log }: Reading,
  { known, report }: { readonly known: ListKnowledge; readonly report: WalkReport },
): void {
  const { path } = factsOf(operationOf[feed.list]);
  const { notKept } = withoutCredentials(report.known, path);
  if (notKept !== known.notKept) {
    if (notKept !== null) log.warn("feed.links-not-kept", { ...feed, carries: notKept });
    else log.info("feed.links-kept", { ...feed });
  }
  const { order } = report.known;
  if (report.demoted !== undefined) log.warn("feed.order-lost", { ...feed, order: known.order, why: report.demoted });
  else if (order === "scan" && known.order !== "scan")
    log.warn("feed.order-lost", { ...feed, order: known.order, why: dearReasons["no-order"] });
  else if (order !== known.order) log.info("feed.order-found", { ...feed, order, readFrom: readFrom(order, notKept) });
}

function readFrom(order: ListKnowledge["order"], notKept: string | null): string {
  if (order === "head") return "front";
  return order === "tail" && notKept === null ? "end" : "whole";
}

/**
 * Logs a list that cost more than needed: the first, second, fourth, eighth … time in a row, and
 * when the reason changes.
 */
function tellCost(feed: Feed, { before, log }: Reading, { because, known: { order, pages }, kind }: WalkReport): void {
  const { dearWalks = 0, dearReason } = before;
  const why = because === undefined ? undefined : dearReasons[because];
  if (why !== undefined) {
    const inARow = dearWalks + 1;
    if (because === dearReason && !Number.isInteger(Math.log2(inARow))) return;
    log.warn("feed.read-whole", { ...feed, reason: because, why, order, pages, inARow });
  } else if (kind !== "whole" && dearWalks >= dearWalksMin) {
    log.info("feed.read-in-part", { ...feed, order, after: dearWalks });
  }
}

/**
 * An expression that fails on an item leaves that fact unknown and stops nothing. Logged when an
 * item is new, or the failure is another one.
 */
function tellFailures(
  feed: Feed,
  { reader, log }: Reading,
  { before, isNews }: { readonly before: MappingFailures; readonly isNews: boolean },
): void {
  const { count, last, item } = reader.failures();
  if (count === before.count || (!isNews && last === before.last)) return;
  log.warn("feed.mapping-failing", { ...feed, failures: count - before.count, item, last });
}

/** Whether a run needs the whole list, and no whole walk has begun since. */
function isWholeWanted({ before: { wholeWantedAtMs = Number.NaN, wholeSinceMs = 0 }, startedAtMs }: Reading): boolean {
  return startedAtMs >= wholeWantedAtMs && wholeSinceMs < wholeWantedAtMs;
}

/**
 * Some lists are short, and their removed items matter: read them whole at each walk; so with a
 * poll's pages. The audit of a list that is read from one end gives way, for some periods, to
 * starts that wait for the service.
 */
async function limitsFor(feed: Feed, known: ListKnowledge, reading: Reading): Promise<StrategyLimits> {
  const { limits = defaultLimits, given, startsWait, startedAtMs } = reading;
  const isShort = known.items <= (readWholeMax[feed.list] ?? -1);
  const whole = given !== undefined ? "polled" : isWholeWanted(reading) ? "wanted" : isShort ? "short" : undefined;
  if (whole !== undefined) return { ...limits, whole };
  const isAudit = (known.order === "tail" || known.order === "head") && known.underway === null;
  const isDue = startedAtMs - (known.wholeAtMs ?? 0) >= limits.auditEveryMs;
  if (!isAudit || !isDue || !(await startsWait?.(feed.service))) return limits;
  return { ...limits, auditEveryMs: auditPeriodsMax * limits.auditEveryMs };
}

/**
 * `uncounted`: why removed items cannot be counted; null: they can; undefined: this walk does not
 * say.
 */
interface TotalsEnd {
  readonly counted?: ReadonlyMap<string, number>;
  readonly uncounted?: "too-long" | "count-unreadable" | null;
}

/**
 * The totals of a whole walk. Pages may shift while a list changes: with several pages the
 * service's own count must agree.
 */
async function countOf(totals: RunningTotals, list: PagedList): Promise<TotalsEnd> {
  const { pages, items } = totals.seen();
  const counted = totals.counts();
  if (counted === undefined) return { uncounted: "too-long" };
  if (pages <= 1) return { counted, uncounted: null };
  const count = await list.count();
  if (count === undefined) return { uncounted: "count-unreadable" };
  // A list that changed during the walk is no failure.
  return count === items ? { counted, uncounted: null } : {};
}

/** Logs an item, unless the feed's minute is full. Items are counted in any case. */
function createItemNotifier(feed: Feed, { sampling = new ItemSampling(), startedAtMs, log }: Reading) {
  return ({ id, syncJobId, label, startedAtMs: beganMs, finished, succeeded }: ItemFacts): void => {
    if (!sampling.take(feed, startedAtMs)) return;
    const startedAt = beganMs === undefined ? undefined : new Date(beganMs).toISOString();
    log.info("feed.item", { ...feed, id, syncJobId, label, startedAt, finished, succeeded });
  };
}

/** Items that a crashed walk stored and may not have published. */
async function untoldItems(feed: Feed, { before, feeds: book }: Reading): Promise<readonly SeenItem[]> {
  const { loggedSeq = before.seq } = before;
  if (before.walks === 0 || loggedSeq >= before.seq) return [];
  // A replica of an older version, which notes nothing, has read the feed since: it logged what it
  // found.
  if (before.takenSeq !== before.seq) {
    await book.told(feed);
    return [];
  }
  return (await book.discoveredSince(feed, loggedSeq)).filter(({ firstSeq }) => firstSeq > loggedSeq);
}

/** Logs once when the service sends other fields: a mapping may not mean the same any more. */
async function watchShape(feed: Feed, { feeds: book, before, log }: Reading, items: readonly unknown[]): Promise<void> {
  if (items.length === 0) return;
  const { changes, shape } = compareShapes(readShape(before.shape), shapeOf(items), items.length);
  const text = JSON.stringify(shape);
  if (text !== before.shape) await book.keepShape(feed, text);
  if (changes.length > 0) log.warn("feed.shape-changed", { ...feed, changes: changes.slice(0, 20).join("; ") });
}

/**
 * The knowledge without links that carry a credential, and which one; a walk in progress on such a
 * link restarts. `listPath`: the end of the list's own path.
 */
export function withoutCredentials(known: ListKnowledge, listPath: string): ListKnowledge {
  const { lastPage, openFrom, underway } = known;
  const found = credentialOf([lastPage, openFrom], listPath);
  const links = found === undefined ? {} : { lastPage: null, openFrom: null };
  const underwayFound = credentialOf([underway?.next, underway?.lastPage, underway?.openFrom], listPath);
  // The finding stays until a link without a credential has been seen.
  const notKept = (found ?? underwayFound)?.slice(0, nameMax) ?? (lastPage === null ? known.notKept : null);
  return { ...known, ...links, notKept, underway: underwayFound === undefined ? underway : begunAnew(underway) };
}

function begunAnew(walk: UnderwayWalk | null): UnderwayWalk | null {
  if (walk === null) return null;
  return { ...freshWalk(walk.startedAtMs, walk.sinceSeq), restarts: walk.restarts };
}

function credentialOf(links: readonly (string | null | undefined)[], listPath: string): string | undefined {
  for (const link of links) {
    const found = link === null || link === undefined ? undefined : credentialIn(link, listPath);
    if (found !== undefined) return found;
  }
  return undefined;
}
