// Walks a feed: finds new items of one list (strategy/), stores them in the FeedStore, and sleeps
// until the next walk while runs wait. If a poll has just fetched the whole list, its pages are
// reused. The id of the queue's job makes the walk unique. Never decides a run's outcome.
import { isDeepStrictEqual } from "node:util";
import { firstLine } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Denial, DeniedBy } from "../core/limiter.ts";
import { type Feed, type FeedWalk, feedId, type ItemFacts } from "../model/feed.ts";
import { done, snooze, type Verdict } from "../model/verdict.ts";
import type { SyncService } from "../service/client.ts";
import { factsOf } from "../service/operations.ts";
import { ServiceError } from "../service/service-error.ts";
import { type FeedPage, type FeedStatus, type FeedStore, forgetAfterMs } from "../store/feed-store.ts";
import { beginTotals, type RunningTotals, readWholeMax } from "./list-totals.ts";
import type { ItemMapper } from "./mapping.ts";
import { type FeedPace, walkGapMs, walkPaceMs } from "./pace.ts";
import {
  announceNew,
  type ItemAnnouncer,
  ItemSampling,
  logCost,
  logFailures,
  logOrder,
  unpublishedItems,
  watchShape,
} from "./publish-items.ts";
import { type GivenPage, noCount, operationOf, serviceList } from "./service-list.ts";
import {
  defaultLimits,
  type ListKnowledge,
  readKnowledge,
  type StrategyLimits,
  underMapping,
  withoutCredentials,
} from "./strategy/choose-walk.ts";
import { LinkExpired, type PagedList, walkList } from "./strategy/walk.ts";

/** The dependencies of a walk; the optional ones serve what not every caller has. */
export interface WalkDependencies {
  readonly feeds: Pick<
    FeedStore,
    | ("beginAnew" | "takeIn" | "keepKnowledge" | "keepShape" | "endWalk" | "failWalk" | "denyWalk" | "markLogged")
    | ("discoveredSince" | "status" | "waiting")
  >;
  readonly nowMs: () => Promise<number>;
  /** Undefined for a service that is not configured any more. */
  readonly service: (name: string) => SyncService | undefined;
  /** What denies every request to a service right now. */
  readonly denialOf: (service: string) => Promise<Denial | undefined>;
  /** Undefined for a service that is not configured any more. */
  readonly itemMapper: (feed: Feed) => ItemMapper | undefined;
  readonly pace: FeedPace;
  /** When lists are read whole anyway; default: `defaultLimits`. */
  readonly limits?: StrategyLimits;
  /** Limits the log lines about items; default: one minute's lines for each walk. */
  readonly sampling?: ItemSampling;
  /** Lists that polls have read; default: none. */
  readonly readings?: { newerThan(feed: Feed, atMs: number): Promise<GivenReading | undefined> };
  /** The sinks that want new items; default: none. */
  readonly announcer?: ItemAnnouncer;
  /** Since when this mapping is the newest; default: always. Infinity: others have newer ones. */
  readonly newestSinceMs?: () => Promise<number>;
  /** Whether starts wait for the limiter of the service; default: never. */
  readonly startsWait?: (service: string) => Promise<boolean>;
  /** Warns of each `feed` once a minute; default: each time. */
  readonly limitedLog?: EventLog;
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

/** Does one walk if it is due and a run waits, or if a poll has read the list. Says when again. */
export async function walkFeed(
  { service: name, repository, list }: FeedWalk,
  options: WalkDependencies,
  signal: AbortSignal,
): Promise<Verdict> {
  const feed: Feed = { service: name, repository, list };
  const { feeds, pace } = options;
  const service = options.service(name);
  const mapper = options.itemMapper(feed);
  const nowMs = await options.nowMs();
  if (service === undefined || mapper === undefined) return done;
  const before = await feeds.status(feed);
  const given = await options.readings?.newerThan(feed, before.walkEndedAtMs ?? 0);
  const isAwaited = (await feeds.waiting(feed, nowMs)) > 0;
  if (given === undefined && !isAwaited) return done;
  if (given === undefined) {
    const earliestMs = earliestWalkMs(before, pace, nowMs);
    if (nowMs < earliestMs) return snooze(earliestMs);
    const denied = await options.denialOf(name);
    if (denied !== undefined && denied.waitMs > 0) {
      if (isDown(denied.deniedBy)) await feeds.denyWalk(feed, { beganAtMs: nowMs, waitMs: denied.waitMs });
      return snooze(nowMs + denied.waitMs);
    }
  }
  const startedAtMs = given?.beganAtMs ?? nowMs;
  const { sampling = new ItemSampling() } = options;
  const found = {
    ...options,
    service,
    mapper,
    before,
    startedAtMs,
    given: given?.pages,
    isAwaited,
    sampling,
    news: { fresh: 0 },
    signal,
  };
  const history = await historyOf(feed, found, nowMs);
  if (history === undefined) {
    (options.limitedLog ?? options.log).warn("feed.left-to-newer", { ...feed, feed: feedId(feed) });
    return snooze(nowMs + pace.fastestMs);
  }
  const walk = { ...found, before: history };
  try {
    await readList(feed, walk);
  } catch (error) {
    // A poll has read the list since a walk broke off: restart that walk.
    if (given !== undefined && error instanceof LinkExpired) return snooze(nowMs);
    return endBrokenWalk(feed, walk, { error, nowMs });
  }
  if (!isAwaited) return done;
  const after = await feeds.status(feed);
  const endedAtMs = after.walkEndedAtMs ?? nowMs;
  const quietForMs = endedAtMs - Math.max(after.grewAtMs ?? 0, after.wantedAtMs ?? 0);
  return snooze(endedAtMs + walkPaceMs(pace, quietForMs, endedAtMs - nowMs));
}

/**
 * A feed rests after its own walks only: a poll of a long list must not keep runs from reading its
 * end. After a failure urgent runs wait, too: the list is not readable a moment later.
 */
function earliestWalkMs(before: FeedStatus, pace: FeedPace, nowMs: number): number {
  // Redis's clock was set back: a walk at a time to come keeps none from beginning.
  const past = (atMs = 0) => (atMs > nowMs + pace.gapMs ? 0 : atMs);
  const restedAtMs = past(before.ownWalkEndedAtMs) + walkGapMs(pace, before.ownWalkTookMs ?? 0);
  return Math.max(past(before.walkEndedAtMs) + pace.gapMs, restedAtMs, past(before.failedAtMs) + pace.fastestMs);
}

/**
 * Notes why a walk broke off, and says when to go on.
 * @throws what the service did not cause.
 */
async function endBrokenWalk(
  feed: Feed,
  walk: WalkContext,
  { error, nowMs }: { readonly error: unknown; readonly nowMs: number },
): Promise<Verdict> {
  const { feeds, before, news, pace, signal, log } = walk;
  const failure = error instanceof LinkExpired ? error.cause : error;
  if (!(failure instanceof ServiceError)) throw error;
  await announceNew(feed, before, walk);
  // Once that is noted below, the next walk counts none of them again.
  const { fresh } = news;
  if (fresh > 0) log.info("feed.walked", { ...feed, fresh, first: before.walks === 0, how: "broken-off" });
  const { kind, deniedBy, retryAfterMs = 0 } = failure;
  const message = firstLine(failure);
  if (kind !== "throttled" && kind !== "cancelled" && !signal.aborted) {
    const waitMs = Math.max(pace.fastestMs, retryAfterMs);
    await feeds.failWalk(feed, `${kind}: ${message}`, { beganAtMs: nowMs, waitMs });
    log.warn("feed.unreadable", { ...feed, kind, message });
    return snooze(nowMs + waitMs);
  }
  // Nothing is wrong with the list: the next walk continues where this one stopped.
  await feeds.markLogged(feed);
  if (kind !== "throttled") return snooze(nowMs);
  const waitMs = failure.retryAfterMs ?? pace.fastestMs;
  if (isDown(deniedBy)) await feeds.denyWalk(feed, { beganAtMs: nowMs, waitMs });
  return snooze((await walk.nowMs()) + waitMs);
}

/** Whether the limiter denies a request since requests fail, not since there are too many. */
function isDown(deniedBy: DeniedBy | undefined): boolean {
  return deniedBy === "breaker" || deniedBy === "token";
}

interface WalkContext extends Omit<WalkDependencies, "service" | "itemMapper"> {
  readonly sampling: ItemSampling;
  /** How many new items it has found so far. */
  readonly news: { fresh: number };
  readonly service: SyncService;
  readonly mapper: ItemMapper;
  readonly before: FeedStatus;
  readonly startedAtMs: number;
  readonly given?: readonly GivenPage[] | undefined;
  /** Whether a run waits for the walk. */
  readonly isAwaited: boolean;
  readonly signal: AbortSignal;
}

/**
 * The status to walk with. Begins a history where there is none, or where what was seen counts no
 * more. Undefined: newer policies began this history or map its items, and their process walks.
 */
async function historyOf(feed: Feed, walk: WalkContext, nowMs: number): Promise<FeedStatus | undefined> {
  const { feeds, before, mapper, log } = walk;
  const { keyedBy, beganAtMs = nowMs, wholeWalkBeganAtMs = beganAtMs } = before;
  // Seen items are kept for longer than this after the last walk that has read them all.
  const isForgotten = nowMs - wholeWalkBeganAtMs > forgetAfterMs;
  const isOlder = async () => (await walk.newestSinceMs?.()) === Number.POSITIVE_INFINITY;
  if (keyedBy === mapper.keyedBy && !isForgotten) {
    const { mappedBy } = readKnowledge(before.knowledge);
    const isOther = mappedBy !== null && mappedBy !== mapper.mappedBy;
    // The facts that newer policies gave the items do not go for the sake of older ones.
    return isOther && (await isOlder()) ? undefined : before;
  }
  if (keyedBy !== undefined) {
    if (await isOlder()) return undefined;
    (await unpublishedItems(feed, before, feeds)).forEach(itemLog(feed, walk));
    await announceNew(feed, before, walk);
    const why = isForgotten ? "it was not read whole for 40 days" : "the mapping gives its items other ids";
    log.warn("feed.begun-anew", { ...feed, why });
  }
  await feeds.beginAnew(feed, before, mapper.keyedBy);
  return feeds.status(feed);
}

/** Logs an item, within the limits of the feed's minute. */
function itemLog(feed: Feed, { sampling, startedAtMs: nowMs, log }: WalkContext): (item: ItemFacts) => void {
  return (item) => sampling.log(feed, item, { nowMs, log });
}

interface TakingIn {
  readonly totals: RunningTotals | undefined;
  readonly toText: (knowledge: ListKnowledge) => string;
}

/** Takes pages in, counts their items, and logs the new ones. */
function createTakeIn(feed: Feed, walk: WalkContext, { totals, toText }: TakingIn) {
  const { before, feeds, news } = walk;
  const logItem = itemLog(feed, walk);
  return async (page: FeedPage, checkpoint?: ListKnowledge) => {
    const { items } = page;
    const novelties = await feeds.takeIn(feed, before, { ...page, knowledge: checkpoint && toText(checkpoint) });
    if (novelties !== undefined) totals?.add(items);
    const found = items.filter((_, index) => novelties?.[index] === "new");
    news.fresh += found.length;
    // Items of the first walk were there already: not new.
    if (before.walks !== 0) found.forEach(logItem);
    return novelties;
  };
}

async function readList(feed: Feed, walk: WalkContext): Promise<void> {
  const { mapper, before, startedAtMs, feeds, news, log } = walk;
  const isFirst = before.walks === 0;
  const unpublished = await unpublishedItems(feed, before, feeds);
  unpublished.forEach(itemLog(feed, walk));
  news.fresh = unpublished.length;
  const totals = beginTotals(feed.list);
  const failedBefore = mapper.failures();
  // Never continue from a stored link with a credential (store/shared-readings.ts).
  const listPath = factsOf(operationOf[feed.list]).path;
  const stored = withoutCredentials(readKnowledge(before.knowledge), listPath);
  const known = underMapping(stored, mapper.mappedBy);
  const toText = (knowledge: ListKnowledge) => JSON.stringify(withoutCredentials(knowledge, listPath));
  const save = (knowledge: ListKnowledge) => feeds.keepKnowledge(feed, toText(knowledge));
  const takeIn = createTakeIn(feed, walk, { totals, toText });
  let lastItems: readonly unknown[] = [];
  const onItems = (items: readonly unknown[]) => {
    if (items.length > 0) lastItems = items;
  };
  const list = serviceList(feed, { ...walk, onItems, isFailing: before.failingSinceMs !== undefined });
  const report = await walkList(known, {
    list,
    seq: async () => before.seq,
    takeIn,
    save,
    nowMs: startedAtMs,
    limits: await limitsFor(feed, known, walk),
  });
  await watchShape(feed, lastItems.slice(-shapeItemsMax), walk);
  const { kind, because, sinceMs } = report;
  const whole = kind === "whole";
  // A walk that continued another one has not seen the pages before.
  const sawAll = whole && (known.underway === null || known.underway.next === null);
  const expected = known.items + news.fresh - unpublished.length;
  const isSeenAgain = (counts: Counts) => readAgain(feed, walk, { takeIn, counts });
  const { counted, uncounted } =
    sawAll && totals !== undefined ? await countOf(totals, { list, expected, isSeenAgain }) : {};
  if (uncounted !== undefined && uncounted !== known.uncounted) {
    await save({ ...report.known, uncounted });
    if (uncounted !== null) log.warn("feed.not-counted", { ...feed, reason: uncounted });
  }
  await announceNew(feed, before, walk);
  const count = report.known.items;
  const isGiven = walk.given !== undefined;
  // A failed request of the count does not take away what is known; a second one in a row does.
  const isGone = typeof uncounted === "string" && known.uncounted !== null;
  await feeds.endWalk(feed, { startedAtMs, sinceMs, count, whole, because, isGiven, totals: isGone ? null : counted });
  if (news.fresh > 0) log.info("feed.walked", { ...feed, count, fresh: news.fresh, first: isFirst, how: kind });
  const kept = { ...report, known: withoutCredentials(report.known, listPath) };
  logOrder(feed, known, { report: kept, log });
  logCost(feed, before, { report: kept, log });
  logFailures(feed, walk, { before: failedBefore, isNews: news.fresh > 0 });
}

/** Whether a run needs the whole list, and no whole walk has begun since. */
function isWholeWanted({
  before: { wholeWantedAtMs = Number.NaN, wholeWalkBeganAtMs = 0 },
  startedAtMs,
}: WalkContext): boolean {
  // One at a time to come is of before Redis's clock was set back.
  const isRead = wholeWalkBeganAtMs >= wholeWantedAtMs && wholeWalkBeganAtMs <= startedAtMs;
  return startedAtMs >= wholeWantedAtMs && !isRead;
}

/** Short lists and a poll's pages are read whole; an audit gives way to starts that wait. */
async function limitsFor(feed: Feed, known: ListKnowledge, walk: WalkContext): Promise<StrategyLimits> {
  const { limits = defaultLimits, given, startsWait, startedAtMs } = walk;
  const isShort = known.items <= (readWholeMax[feed.list] ?? -1);
  const whole = given !== undefined ? "polled" : isWholeWanted(walk) ? "wanted" : isShort ? "short" : undefined;
  if (whole !== undefined) return { ...limits, whole };
  const isAudit = (known.order === "tail" || known.order === "head") && known.underway === null;
  const isDue = startedAtMs - (known.wholeAtMs ?? 0) >= limits.auditEveryMs;
  if (!isAudit || !isDue || !(await startsWait?.(feed.service))) return limits;
  return { ...limits, auditEveryMs: auditPeriodsMax * limits.auditEveryMs };
}

type Counts = ReadonlyMap<string, number>;

/** `uncounted`: why removed items cannot be counted; null: they can, or could; else not known. */
interface TotalsEnd {
  readonly counted?: Counts;
  readonly uncounted?: "too-long" | "count-unreadable" | null;
}

interface Counting {
  readonly list: PagedList;
  /** How many items there are if none of the known ones is gone, or back. */
  readonly expected: number;
  readonly isSeenAgain: (counts: Counts) => Promise<boolean>;
}

/**
 * The totals of a whole walk. Pages may shift while they are read, so the service's count must
 * agree. It also agrees when one item is deleted and another slips over a page boundary. So a count
 * other than expected needs a second reading with the same counts. Not noticed: an item slips while
 * a known one comes back.
 */
async function countOf(totals: RunningTotals, { list, expected, isSeenAgain }: Counting): Promise<TotalsEnd> {
  const { pages, items } = totals.seen();
  const counted = totals.counts();
  if (counted === undefined) return { uncounted: "too-long" };
  if (pages <= 1) return { counted, uncounted: null };
  const count = await list.count();
  if (count === undefined) return { uncounted: "count-unreadable" };
  const isSure = count === items && (count === expected || (await isSeenAgain(counted)));
  // A list that changed during the walk is no failure.
  return isSure ? { counted, uncounted: null } : { uncounted: null };
}

/**
 * Whether a second reading counts the same, for a run that waits. None where a poll gave the pages:
 * then the walk did not wait for its turn to read. What slipped past the first one is taken in.
 */
async function readAgain(
  feed: Feed,
  walk: WalkContext,
  { takeIn, counts }: { readonly takeIn: (page: FeedPage) => Promise<unknown>; readonly counts: Counts },
): Promise<boolean> {
  if (!walk.isAwaited || walk.given !== undefined) return false;
  const again = await countAgain(feed, walk, takeIn);
  const result = again === undefined ? "unknown" : isDeepStrictEqual(again, counts) ? "same" : "other";
  walk.log.info("list.read-again", { ...feed, reader: "walk", result });
  return result === "same";
}

/** Undefined: the list could not be read. Empty: it has become too long. */
async function countAgain(
  feed: Feed,
  walk: WalkContext,
  takeIn: (page: FeedPage) => Promise<unknown>,
): Promise<Counts | undefined> {
  const totals = beginTotals(feed.list);
  try {
    for await (const { items } of serviceList(feed, walk).pages(undefined)) {
      await takeIn({ items, sinceSeq: walk.before.seq });
      totals?.add(items);
    }
    return totals?.counts() ?? new Map();
  } catch (error) {
    return noCount(error instanceof LinkExpired ? error.cause : error);
  }
}
