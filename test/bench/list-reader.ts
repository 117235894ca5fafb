// Reads a long list in a process of its own, for feeds.ts: list-reader.ts SERVICE_URL REDIS_URL
// NAME. `walk` is one walk as a worker does it, `audit` one of the whole list; `bare` is what
// anyone would write with got, and keeps nothing. All answer how long it took, and the most memory.
import got from "got";
import { silentLog } from "../../src/core/event-log.ts";
import { createItemMapper } from "../../src/feeds/mapping.ts";
import { walkFeed } from "../../src/feeds/walk-feed.ts";
import type { FeedWalk } from "../../src/model/feed.ts";
import { SyncService, staticToken } from "../../src/service/client.ts";
import { FeedStore } from "../../src/store/feed-store.ts";
import { openStore } from "../../src/store/redis.ts";
import { answerParent, type Figures } from "./child.ts";

const [serviceUrl = "", redisUrl = "", name = ""] = process.argv.slice(2);
const list: FeedWalk = { v: 1, kind: "feed-walk", service: name, repository: null, list: "activities" };
const service = new SyncService({ baseUrl: serviceUrl, token: staticToken("bench") });
const store = await openStore({ url: redisUrl, prefix: "bench-feeds" });
const book = new FeedStore(store);
const reader = createItemMapper("activities", {
  id: "item.activityId",
  syncJobId: "item.syncJobId",
  startedAt: "item.startedAt",
  finished: 'item.state in ["Finished", "Failed"]',
  succeeded: 'item.state == "Finished"',
});
/** Each walk comes a week after the last one by this clock, so that no pace delays it. */
let nowMs = Date.now();

const never = Number.MAX_SAFE_INTEGER;
const audit = () => watched(() => walk(0));

answerParent({ walk: () => watched(walk), audit, bare: () => watched(bare) }, async () => {
  service.close();
  await store.close();
});

/** Without an audit: what the cheap walks cost is the question. */
async function walk(auditEveryMs = never): Promise<number> {
  nowMs += 7 * 86_400_000;
  await book.addWaiter(list, "bench", { nowMs, untilMs: nowMs + 1 });
  await walkFeed(
    list,
    {
      feeds: book,
      nowMs: async () => nowMs,
      service: () => service,
      denialOf: async () => undefined,
      itemMapper: () => reader,
      pace: { gapMs: 0, fastestMs: 0, slowestMs: 0 },
      limits: { auditEveryMs, scanForMs: never },
      log: silentLog,
    },
    new AbortController().signal,
  );
  return (await book.status(list)).count;
}

async function bare(): Promise<number> {
  let items = 0;
  let url: string | undefined = `${serviceUrl}/odata/synchronizationactivities`;
  while (url !== undefined) {
    const page: { value: unknown[]; "@odata.nextLink"?: string } = await got(url, {
      headers: { authorization: "Bearer bench" },
    }).json();
    items += page.value.length;
    url = page["@odata.nextLink"];
  }
  return items;
}

async function watched(read: () => Promise<number>): Promise<Figures> {
  let rssMax = 0;
  const look = () => {
    rssMax = Math.max(rssMax, process.memoryUsage.rss());
  };
  const watch = setInterval(look, 100);
  const idle = process.memoryUsage.rss();
  const atMs = performance.now();
  const items = await read();
  const ms = performance.now() - atMs;
  clearInterval(watch);
  look();
  return { items, ms, idle, rssMax };
}
