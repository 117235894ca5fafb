// Reads a polled list once for all polls, on all replicas, that are due at about the same time. A
// list that one policy alone polls is just read. A whole reading also serves the feed's walk, which
// finds what is new. Called by poll.ts. A poll never gets a reading from before it was due, nor one
// that its policy has judged.
import { randomUUID } from "node:crypto";
import { createItemReader } from "../feeds/mapping.ts";
import { operationOf } from "../feeds/service-list.ts";
import type { Feed } from "../model/feed.ts";
import type { SyncService } from "../service/client.ts";
import { inRepository } from "../service/request-url.ts";
import { ServiceError } from "../service/service-error.ts";
import type { ReadingKind, ReadingTurn, ReadingWish, ReadPage } from "../store/shared-readings.ts";
import type { ReadDependencies } from "./contracts.ts";
import type { ListRead, ReadItem } from "./judge-list.ts";

/** The most items a poll reads for an expectation over items; a longer list is not judged. */
export const pollItemsMax = 10_000;

/** What a poll wants to read, and how. */
export interface ListWish extends ReadingWish {
  readonly feed: Feed;
  readonly kind: ReadingKind;
  readonly service: SyncService;
  readonly signal: AbortSignal;
}

/**
 * `too-long`: more items than a poll reads. `wait`: another poll reads the list, ask again later.
 */
export type ListAnswer =
  | { readonly answer: "read"; readonly list: ListRead; readonly beganAtMs: number }
  | { readonly answer: "too-long" }
  | { readonly answer: "wait"; readonly waitMs: number };

/** A waiting poll asks again after as long as the reader has been reading, within these bounds. */
const waitMs = { least: 100, most: 5_000 };

/** Reads the list, or takes what another poll has read. @throws ServiceError */
export async function readTogether(wish: ListWish, deps: ReadDependencies): Promise<ListAnswer> {
  const { feed, kind } = wish;
  if (!deps.isPolledTogether(feed)) return readAlone(wish, deps);
  const turn = await deps.sharedReadings.ask(feed, kind, { ...wish, token: randomUUID() });
  switch (turn.turn) {
    case "wait": {
      const elapsedMs = turn.nowMs - turn.sinceMs;
      return { answer: "wait", waitMs: Math.min(Math.max(elapsedMs, waitMs.least), waitMs.most) };
    }
    case "take": {
      const { pages, count, beganAtMs } = turn.reading;
      if (pages === undefined) return { answer: "too-long" };
      return { answer: "read", list: kind === "count" ? { count, items: [] } : listOf(feed, deps, pages), beganAtMs };
    }
    case "alone":
      return (await read(wish, { deps, beganAtMs: turn.beganAtMs })).answer;
    case "read":
      return readForAll(wish, deps, turn);
  }
}

type OwnTurn = Extract<ReadingTurn, { turn: "read" | "alone" }>;

/** Reads a list that no other policy polls; only the feed's walk shares the reading. */
async function readAlone(wish: ListWish, deps: ReadDependencies): Promise<ListAnswer> {
  const beganAtMs = await deps.nowMs();
  const { answer, pages } = await read(wish, { deps, beganAtMs });
  if (answer.answer === "read")
    await shareReading(wish, deps, { token: "", beganAtMs, count: answer.list.count, pages });
  return answer;
}

async function readForAll(wish: ListWish, deps: ReadDependencies, { token, beganAtMs }: OwnTurn): Promise<ListAnswer> {
  const { feed, kind } = wish;
  const onPage = () => deps.sharedReadings.goOn(feed, kind, token);
  try {
    const { answer, pages } = await read(wish, { deps, beganAtMs, onPage });
    const count = answer.answer === "read" ? answer.list.count : 0;
    const isShared = await shareReading(wish, deps, { token, beganAtMs, count, pages });
    if (!isShared) deps.log.warn("poll.unshared", { ...feed, count });
    return answer;
  } catch (error) {
    // The waiting polls read for themselves now, and meet their own failures.
    await deps.sharedReadings.leave(feed, kind, token).catch(() => {});
    throw error;
  }
}

/** Shares a reading with other polls and the feed's walk. Returns false when it is too large. */
async function shareReading(
  { feed, kind }: ListWish,
  deps: ReadDependencies,
  shared: Parameters<ReadDependencies["sharedReadings"]["share"]>[2],
): Promise<boolean> {
  const isForWalk = kind === "items" && shared.pages !== undefined;
  if (shared.token === "" && !isForWalk) return true;
  const isShared = await deps.sharedReadings.share(feed, kind, shared);
  if (isShared && isForWalk) await deps.read(feed, { hurry: true });
  return isShared;
}

interface Reading {
  readonly deps: ReadDependencies;
  readonly beganAtMs: number;
  /** Called after each page, before the next request. */
  readonly onPage?: () => Promise<void>;
}

interface ReadList {
  readonly answer: Exclude<ListAnswer, { answer: "wait" }>;
  /** Undefined when the list is too long. */
  readonly pages: readonly ReadPage[] | undefined;
}

async function read(
  { feed, kind, service, signal }: ListWish,
  { deps, beganAtMs, onPage }: Reading,
): Promise<ReadList> {
  const operation = operationOf[feed.list];
  const query = inRepository(feed);
  if (kind === "count") {
    const count = await service.count(operation, query, { signal });
    return { answer: { answer: "read", list: { count, items: [] }, beganAtMs }, pages: [] };
  }
  const pages: ReadPage[] = [];
  try {
    for await (const { items, url, nextLink } of service.pages(operation, query, { signal, itemsMax: pollItemsMax })) {
      pages.push({ url, ...(nextLink === undefined ? {} : { nextLink }), items: [...items] });
      await onPage?.();
    }
  } catch (error) {
    if (error instanceof ServiceError && error.reason === "items-max")
      return { answer: { answer: "too-long" }, pages: undefined };
    throw error;
  }
  return { answer: { answer: "read", list: listOf(feed, deps, pages), beganAtMs }, pages };
}

function listOf(feed: Feed, deps: ReadDependencies, pages: readonly ReadPage[]): ListRead {
  const reader = deps.itemReader(feed) ?? createItemReader(feed.list);
  const items = new Map<unknown, ReadItem>();
  for (const item of pages.flatMap((page) => page.items)) {
    const facts = reader.read(item);
    // Pages shift while the list changes: an item that comes twice counts once, if the mapping
    // knows its id.
    items.set(reader.knows("id") ? facts.id : items.size, { item, facts });
  }
  return { count: items.size, items: [...items.values()] };
}
