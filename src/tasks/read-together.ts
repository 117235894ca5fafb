// Reads a polled list once for all polls, on all replicas, that are due at about the same time: a
// cache with one reader's lease (store/shared-readings.ts). A list of one policy needs no lease. A
// whole reading also serves the feed's walk, which finds what is new. Called by poll.ts. A poll
// never gets a reading from before it was due, nor one that its policy has judged.
import { randomUUID } from "node:crypto";
import { systemClock } from "../core/clock.ts";
import { createItemMapper } from "../feeds/mapping.ts";
import { operationOf } from "../feeds/service-list.ts";
import type { Feed } from "../model/feed.ts";
import type { SyncService } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import type { ReadingKind, ReadingWish, ReadPage, SharedReading } from "../store/shared-readings.ts";
import type { ListRead, ReadItem } from "./judge-list.ts";
import type { ReadDependencies } from "./step-dependencies.ts";

/** The most items a poll reads for an expectation over items; a longer list is not judged. */
export const pollItemsMax = 10_000;

/** What a poll wants to read, and how. */
export interface ListWish extends ReadingWish {
  readonly feed: Feed;
  readonly kind: ReadingKind;
  readonly service: SyncService;
  readonly signal: AbortSignal;
}

/** A list that was read. `isPaged`: on several pages, past which an item may have slipped. */
export interface ReadAnswer {
  readonly answer: "read";
  readonly list: ListRead;
  readonly beganAtMs: number;
  readonly isPaged: boolean;
  /** Whether this poll read it, not another one. */
  readonly isOwn: boolean;
}

/** `too-long`: more items than a poll reads. */
export type Reading = ReadAnswer | { readonly answer: "too-long"; readonly isOwn: boolean };

/** `wait`: another poll reads the list, ask again. */
export type ListAnswer = Reading | { readonly answer: "wait"; readonly waitMs: number };

/** A waiting poll asks again after as long as the reader has been reading, within these bounds. */
const waitMs = { least: 100, most: 5_000 };
/** How long a poll waits for the second reading of another one. */
const againWithinMs = 60_000;

/** Reads the list, or takes what another poll has read. @throws ServiceError */
export async function readTogether(wish: ListWish, deps: ReadDependencies): Promise<ListAnswer> {
  const { feed, kind } = wish;
  if (!deps.isPolledTogether(feed)) return readAlone(wish, deps);
  const token = randomUUID();
  const turn = await deps.sharedReadings.ask(feed, kind, { ...wish, token });
  switch (turn.turn) {
    case "wait": {
      const elapsedMs = turn.nowMs - turn.sinceMs;
      return { answer: "wait", waitMs: Math.min(Math.max(elapsedMs, waitMs.least), waitMs.most) };
    }
    case "take":
      return { ...toAnswer(wish, deps, turn.reading), isOwn: false };
    case "alone":
      return toAnswer(wish, deps, { ...(await read(wish)), beganAtMs: turn.beganAtMs });
    case "read":
      return toAnswer(wish, deps, await readForAll(wish, deps, { token, beganAtMs: turn.beganAtMs }));
  }
}

/**
 * Reads the list once more, once for all polls: while an item is deleted, another slips over a page
 * boundary. Waits in place for a minute, since the first reading is not kept for longer.
 * @throws ServiceError
 */
export async function readAgain(first: ReadAnswer, wish: ListWish, deps: ReadDependencies): Promise<ListAnswer> {
  const tell = (result: "same" | "other" | "unknown") =>
    deps.log.info("list.read-again", { ...wish.feed, reader: "poll", result });
  try {
    const answer = await waitForReading({ ...wish, kind: "again", afterMs: first.beganAtMs }, deps);
    if (answer.answer !== "wait" && answer.isOwn)
      tell(answer.answer === "read" && hasSameIds(first.list, answer.list) ? "same" : "other");
    return answer;
  } catch (error) {
    if (error instanceof ServiceError && error.kind !== "cancelled") tell("unknown");
    throw error;
  }
}

async function waitForReading(wish: ListWish, deps: ReadDependencies): Promise<ListAnswer> {
  const untilMs = systemClock.monotonicMs() + againWithinMs;
  for (;;) {
    const answer = await readTogether(wish, deps);
    const isOver = wish.signal.aborted || systemClock.monotonicMs() >= untilMs;
    if (answer.answer !== "wait" || isOver) return answer;
    await systemClock.sleep(answer.waitMs, wish.signal);
  }
}

function hasSameIds(one: ListRead, other: ListRead): boolean {
  const idsOf = ({ items }: ListRead) => new Set(items.map(({ facts }) => facts.id));
  return idsOf(one).symmetricDifference(idsOf(other)).size === 0;
}

/** Reads a list that no other policy polls; only the feed's walk shares the reading. */
async function readAlone(wish: ListWish, deps: ReadDependencies): Promise<ListAnswer> {
  const beganAtMs = await deps.nowMs();
  const reading = { ...(await read(wish)), beganAtMs };
  if (isForWalk(wish, reading)) await share(wish, deps, { ...reading, token: "" });
  return toAnswer(wish, deps, reading);
}

async function readForAll(
  wish: ListWish,
  deps: ReadDependencies,
  { token, beganAtMs }: { readonly token: string; readonly beganAtMs: number },
): Promise<SharedReading> {
  const { feed, kind } = wish;
  const { sharedReadings } = deps;
  try {
    const reading = { ...(await read(wish, () => sharedReadings.goOn(feed, kind, token))), beganAtMs };
    await share(wish, deps, { ...reading, token });
    return reading;
  } catch (error) {
    // The waiting polls read for themselves now, and meet their own failures.
    await sharedReadings.leave(feed, kind, token).catch(() => {});
    throw error;
  }
}

/** Shares a reading with the other polls and the feed's walk, unless it is too large. */
async function share(
  wish: ListWish,
  { sharedReadings, requestWalk, log }: ReadDependencies,
  reading: SharedReading & { readonly token: string },
): Promise<void> {
  const { feed, kind } = wish;
  const { isShared, unshared } = await sharedReadings.share(feed, kind, reading);
  if (!isForWalk(wish, reading)) return;
  if (!isShared && unshared === 1) log.warn("poll.unshared", { ...feed, count: reading.count });
  if (isShared && unshared > 0) log.info("poll.shared", { ...feed, polls: unshared });
  if (isShared) await requestWalk(feed, { hurry: true });
}

function isForWalk({ kind }: ListWish, { pages }: Pick<SharedReading, "pages">): boolean {
  return kind === "items" && pages !== undefined;
}

/** Reads from the service; `onPage` is called before each next request. */
async function read(
  { feed, kind, service, signal }: ListWish,
  onPage: () => Promise<void> = async () => {},
): Promise<Pick<SharedReading, "count" | "pages">> {
  const operation = operationOf[feed.list];
  const query = inRepository(feed);
  if (kind === "count") return { count: await service.count(operation, query, { signal }), pages: [] };
  const pages: ReadPage[] = [];
  try {
    const options = { signal, itemsMax: pollItemsMax, isFollowUp: kind === "again" };
    for await (const { items, url, nextLink } of service.pages(operation, query, options)) {
      pages.push({ url, ...(nextLink === undefined ? {} : { nextLink }), items: [...items] });
      await onPage();
    }
  } catch (error) {
    if (error instanceof ServiceError && error.reason === "items-max") return { count: 0, pages: undefined };
    throw error;
  }
  return { count: pages.reduce((sum, { items }) => sum + items.length, 0), pages };
}

function toAnswer({ feed, kind }: ListWish, deps: ReadDependencies, reading: SharedReading): Reading {
  const { beganAtMs, count, pages } = reading;
  if (pages === undefined) return { answer: "too-long", isOwn: true };
  const list = kind === "count" ? { count, items: [], keyedBy: "" } : listOf(feed, deps, pages);
  // Without ids, what changes between two readings would count twice.
  const isPaged = pages.length > 1 && deps.itemMapper(feed)?.knows("id") === true;
  return { answer: "read", list, beganAtMs, isPaged, isOwn: true };
}

function listOf(
  feed: Feed,
  { itemMapper }: Pick<ReadDependencies, "itemMapper">,
  pages: readonly ReadPage[],
): ListRead {
  const mapper = itemMapper(feed) ?? createItemMapper(feed.list);
  const items = new Map<unknown, ReadItem>();
  for (const item of pages.flatMap((page) => page.items)) {
    const facts = mapper.read(item);
    // Pages shift while the list changes: an item that comes twice counts once, if the mapping
    // knows its id.
    items.set(mapper.knows("id") ? facts.id : items.size, { item, facts });
  }
  return { count: items.size, items: [...items.values()], keyedBy: mapper.keyedBy };
}
