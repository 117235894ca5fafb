// The reader of a feed: walks all pages of one list, writes what is new into the feed book, and sleeps until the next
// walk while anybody waits. There is one per feed, since the walk has one name in the queue. It never decides what
// a run's outcome is.

import type { EventLog } from "../core/event-log.ts";
import { firstLine } from "../core/expression.ts";
import type { Hold } from "../core/gate.ts";
import type { SyncService } from "../service/client.ts";
import { ServiceError } from "../service/service-error.ts";
import type { FeedStatus, ItemFacts, ParkedWalk } from "../store/feed-book.ts";
import type { Feed, FeedWalk } from "../tasks/feed.ts";
import { done, snooze, type Verdict } from "../tasks/verdict.ts";
import type { ItemReader } from "./mapping.ts";
import { type FeedPace, walkGapMs, walkPaceMs } from "./pace.ts";
import { operationOf } from "./service-lists.ts";

/** What the reader needs of the feed book (store/feed-book.ts). */
interface ReaderBook {
  takeIn(feed: Feed, items: readonly ItemFacts[]): Promise<readonly string[]>;
  walked(feed: Feed, walk: { readonly startedAtMs: number; readonly count: number }): Promise<void>;
  park(feed: Feed, walk: ParkedWalk): Promise<void>;
  failed(feed: Feed, failure: string): Promise<void>;
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
  readonly log: EventLog;
}

/** The most items of one walk; a longer list is a failure that says so. */
const walkItemsMax = 100_000;
/** A walk that stopped longer ago begins anew: its link may be stale. */
const parkedForMs = 600_000;
/** Above this many new items in a walk, only their number is logged. */
const loggedItemsMax = 20;

/** Does one walk of a feed, if it is time and anybody waits, and says when to call again. */
export async function walkFeed(walk: FeedWalk, parts: WalkParts, signal: AbortSignal): Promise<Verdict> {
  const feed: Feed = { service: walk.service, repository: walk.repository, list: walk.list };
  const service = parts.service(feed.service);
  const reader = parts.itemReader(feed);
  const nowMs = await parts.nowMs();
  if (service === undefined || reader === undefined || (await parts.book.waiting(feed, nowMs)) === 0) return done;
  const before = await parts.book.status(feed);
  const lastWalkMs = (before.walkEndedAtMs ?? 0) - (before.walkStartedAtMs ?? 0);
  const earliestMs = (before.walkEndedAtMs ?? 0) + walkGapMs(parts.pace, lastWalkMs);
  if (nowMs < earliestMs) return snooze(earliestMs);
  const hold = await parts.held(feed.service);
  if (hold !== undefined && hold.waitMs > 0) return snooze(nowMs + hold.waitMs);
  const parked = before.parked !== undefined && nowMs - before.parked.startedAtMs < parkedForMs;
  const at = parked ? before.parked : { count: 0, fresh: 0, startedAtMs: nowMs, from: undefined };
  try {
    await readPages(feed, { ...parts, service, reader, first: before.walks === 0, at }, signal);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    // Nothing is wrong with the list: it is read on from where it stopped.
    if (error.kind === "throttled") return snooze((await parts.nowMs()) + (error.retryAfterMs ?? parts.pace.fastestMs));
    if (error.kind === "cancelled" || signal.aborted) return snooze(nowMs);
    await parts.book.failed(feed, `${error.kind}: ${firstLine(error)}`);
    parts.log.warn("feed.unreadable", { ...feed, kind: error.kind, message: firstLine(error) });
    return snooze(nowMs + Math.max(parts.pace.fastestMs, error.retryAfterMs ?? 0));
  }
  const after = await parts.book.status(feed);
  const endedAtMs = after.walkEndedAtMs ?? nowMs;
  const quietForMs = endedAtMs - Math.max(after.grewAtMs ?? 0, after.wantedAtMs ?? 0);
  return snooze(endedAtMs + walkPaceMs(parts.pace, quietForMs, endedAtMs - nowMs));
}

interface Reading extends Omit<WalkParts, "service" | "itemReader"> {
  readonly service: SyncService;
  readonly reader: ItemReader;
  readonly first: boolean;
  /** Where the walk begins or goes on. */
  readonly at: Omit<ParkedWalk, "from"> & { readonly from: string | undefined };
}

async function readPages(feed: Feed, reading: Reading, signal: AbortSignal): Promise<void> {
  const { service, reader, book, log, at } = reading;
  const { startedAtMs } = at;
  let { count, fresh, from } = at;
  const query = feed.repository === null ? {} : { repository: feed.repository };
  const limits = { from, signal, itemsMax: walkItemsMax - count };
  try {
    for await (const page of service.pages(operationOf[feed.list], query, limits)) {
      const items = page.items.map((item) => reader.read(item));
      count += items.length;
      const labels = new Map(items.map((item) => [item.id, item]));
      for (const id of await book.takeIn(feed, items)) {
        fresh += 1;
        if (!reading.first && fresh <= loggedItemsMax) {
          log.info("feed.item", { ...feed, id, syncJobId: labels.get(id)?.syncJobId, label: labels.get(id)?.label });
        }
      }
      from = page.nextLink;
    }
  } catch (error) {
    if (error instanceof ServiceError && error.kind === "throttled" && from !== undefined)
      await book.park(feed, { from, count, fresh, startedAtMs });
    throw error;
  }
  await book.walked(feed, { startedAtMs, count });
  if (fresh > 0) log.info("feed.walked", { ...feed, count, fresh, first: reading.first });
  const failures = reader.failures();
  if (failures.count > 0 && fresh > 0)
    log.warn("feed.mapping-failing", { ...feed, failures: failures.count, last: failures.last });
}
