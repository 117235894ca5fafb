// Reads a polled list once for all polls that are due at about the same time, over all replicas; a list that one policy alone polls is just
// read. Called by poll.ts. A poll is never given what was read before it was due, nor what its policy has judged already.
import { randomUUID } from "node:crypto";
import { createItemReader } from "../feeds/mapping.ts";
import { operationOf } from "../feeds/service-lists.ts";
import type { SyncService } from "../service/client.ts";
import { ServiceError } from "../service/service-error.ts";
import type { ReadingKind, ReadingTurn, ReadingWish } from "../store/shared-readings.ts";
import type { Feed } from "../tasks/feed.ts";
import type { ListRead, ReadItem } from "./judge-list.ts";
import type { WorkParts } from "./parts.ts";

/** The most items a poll reads for an expectation over items; a longer list is not judged. */
export const pollItemsMax = 10_000;

/** What a poll wants read, and by whom. */
export interface ListWish extends ReadingWish {
  readonly feed: Feed;
  readonly kind: ReadingKind;
  readonly service: SyncService;
  readonly signal: AbortSignal;
}

/** What was read and when that began; `too-long`: more items than a poll reads; `wait`: somebody reads it right now, ask again in so long. */
export type ListAnswer =
  | { readonly answer: "read"; readonly list: ListRead; readonly beganAtMs: number }
  | { readonly answer: "too-long" }
  | { readonly answer: "wait"; readonly waitMs: number };

/** Who waits for a reader asks again when that one has been reading twice as long, within these. */
const waitMs = { least: 100, most: 5_000 };

/**
 * Reads the list, or takes what another poll has read.
 * @throws ServiceError of any kind that a read can have.
 */
export async function readTogether(wish: ListWish, parts: WorkParts): Promise<ListAnswer> {
  const { feed, kind } = wish;
  if (!parts.isPolledTogether(feed)) return read(wish, { parts, beganAtMs: await parts.nowMs() });
  const turn = await parts.readings.ask(feed, kind, { ...wish, token: randomUUID() });
  switch (turn.turn) {
    case "wait": {
      const elapsedMs = turn.nowMs - turn.sinceMs;
      return { answer: "wait", waitMs: Math.min(Math.max(elapsedMs, waitMs.least), waitMs.most) };
    }
    case "take": {
      const { items, count, beganAtMs } = turn.reading;
      if (items === undefined) return { answer: "too-long" };
      return { answer: "read", list: kind === "count" ? { count, items: [] } : listOf(feed, parts, items), beganAtMs };
    }
    case "alone":
      return read(wish, { parts, beganAtMs: turn.beganAtMs });
    case "read":
      return readForAll(wish, parts, turn);
  }
}

type OwnTurn = Extract<ReadingTurn, { turn: "read" | "alone" }>;

async function readForAll(wish: ListWish, parts: WorkParts, { token, beganAtMs }: OwnTurn): Promise<ListAnswer> {
  const { feed, kind } = wish;
  const raw: unknown[] = [];
  const onPage = async (items: readonly unknown[]) => {
    raw.push(...items);
    await parts.readings.goOn(feed, kind, token);
  };
  try {
    const answer = await read(wish, { parts, beganAtMs, onPage });
    const count = answer.answer === "read" ? answer.list.count : 0;
    const items = answer.answer === "read" ? raw : undefined;
    const isShared = await parts.readings.share(feed, kind, { token, beganAtMs, count, items });
    if (!isShared) parts.log.warn("poll.unshared", { ...feed, count });
    return answer;
  } catch (error) {
    // Whoever waits reads for itself now, and has a failure of its own.
    await parts.readings.leave(feed, kind, token).catch(() => {});
    throw error;
  }
}

interface Reading {
  readonly parts: WorkParts;
  readonly beganAtMs: number;
  /** Told of each page, before the next one is asked for. */
  readonly onPage?: (items: readonly unknown[]) => Promise<void>;
}

async function read(
  { feed, kind, service, signal }: ListWish,
  { parts, beganAtMs, onPage }: Reading,
): Promise<ListAnswer> {
  const operation = operationOf[feed.list];
  const query = feed.repository === null ? {} : { repository: feed.repository };
  if (kind === "count") {
    const count = await service.count(operation, query, { signal });
    return { answer: "read", list: { count, items: [] }, beganAtMs };
  }
  const items: unknown[] = [];
  try {
    for await (const page of service.pages(operation, query, { signal, itemsMax: pollItemsMax })) {
      items.push(...page.items);
      await onPage?.(page.items);
    }
  } catch (error) {
    if (error instanceof ServiceError && error.reason === "items-max") return { answer: "too-long" };
    throw error;
  }
  return { answer: "read", list: listOf(feed, parts, items), beganAtMs };
}

function listOf(feed: Feed, parts: WorkParts, raw: readonly unknown[]): ListRead {
  const reader = parts.itemReader(feed) ?? createItemReader(feed.list);
  const items = new Map<unknown, ReadItem>();
  for (const item of raw) {
    const facts = reader.read(item);
    // Pages shift while the list changes: an item that comes twice is still one. Without a key nobody can tell.
    items.set(reader.knows("id") ? facts.id : items.size, { item, facts });
  }
  return { count: items.size, items: [...items.values()] };
}
