// The reader of a feed: walks all pages of one list, writes what is new into the feed book, and sleeps until the next
// walk while anybody waits. There is one per feed, since the walk has one name in the queue. It never decides what
// a run's outcome is.

import type { EventLog } from "../core/event-log.ts";
import { firstLine } from "../core/expression.ts";
import type { SyncService } from "../service/client.ts";
import { ServiceError } from "../service/service-error.ts";
import type { FeedStatus, ItemFacts } from "../store/feed-book.ts";
import type { Feed, FeedWalk } from "../tasks/feed.ts";
import { done, snooze, type Verdict } from "../tasks/verdict.ts";
import type { ItemReader } from "./mapping.ts";
import { type FeedPace, walkGapMs, walkPaceMs } from "./pace.ts";
import { operationOf } from "./service-lists.ts";

/** What the reader needs of the feed book (store/feed-book.ts). */
interface ReaderBook {
  takeIn(feed: Feed, items: readonly ItemFacts[]): Promise<readonly string[]>;
  walked(feed: Feed, walk: { readonly startedAtMs: number; readonly count: number }): Promise<void>;
  failed(feed: Feed, failure: string): Promise<void>;
  status(feed: Feed): Promise<FeedStatus>;
  waiting(feed: Feed, nowMs: number): Promise<number>;
}

/** What the reader works with. `service` and `itemReader` answer undefined for a service that is no longer configured. */
export interface WalkParts {
  readonly book: ReaderBook;
  readonly nowMs: () => Promise<number>;
  readonly service: (name: string) => SyncService | undefined;
  readonly itemReader: (feed: Feed) => ItemReader | undefined;
  readonly pace: FeedPace;
  readonly log: EventLog;
}

/** The most items of one walk; a longer list is a failure that says so. */
const walkItemsMax = 100_000;
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
  try {
    await readPages(feed, { ...parts, service, reader, first: before.walks === 0, startedAtMs: nowMs }, signal);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
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
  readonly startedAtMs: number;
}

async function readPages(feed: Feed, reading: Reading, signal: AbortSignal): Promise<void> {
  const { service, reader, book, log } = reading;
  let count = 0;
  let fresh = 0;
  const query = feed.repository === null ? {} : { repository: feed.repository };
  for await (const page of service.pages(operationOf[feed.list], query, { signal, itemsMax: walkItemsMax })) {
    const items = page.items.map((item) => reader.read(item));
    count += items.length;
    const labels = new Map(items.map((item) => [item.id, item]));
    for (const id of await book.takeIn(feed, items)) {
      fresh += 1;
      if (!reading.first && fresh <= loggedItemsMax) {
        log.info("feed.item", { ...feed, id, syncJobId: labels.get(id)?.syncJobId, label: labels.get(id)?.label });
      }
    }
  }
  await book.walked(feed, { startedAtMs: reading.startedAtMs, count });
  if (fresh > 0) log.info("feed.walked", { ...feed, count, fresh, first: reading.first });
  const failures = reader.failures();
  if (failures.count > 0 && fresh > 0)
    log.warn("feed.mapping-failing", { ...feed, failures: failures.count, last: failures.last });
}
