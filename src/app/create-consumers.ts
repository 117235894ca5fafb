// What a worker does with a queue's jobs: it processes tasks and walks feeds. Built by app.ts.
//
//   queues ─▶ consumers ─▶ process task ─▶ recorder ─▶ history (and in the same step: chains, notify events), log, quarantine
//                 └──────▶ walk feed ─▶ FeedStore, wakes the runs whose end it saw

import type { ServiceSettings } from "../config/policy-set.ts";
import type { OutcomeLimits } from "../config/settings.ts";
import { systemClock } from "../core/clock.ts";
import { together } from "../core/component.ts";
import type { EventLog } from "../core/event-log.ts";
import { defaultPace, type FeedPace } from "../feeds/pace.ts";
import { type ItemAnnouncer, ItemSampling } from "../feeds/publish-items.ts";
import { type WalkDependencies, walkFeed } from "../feeds/walk-feed.ts";
import type { Attempt } from "../model/contracts.ts";
import { isFeedWalk, parseFeedWalk } from "../model/feed.ts";
import { isNotified } from "../model/notify-event.ts";
import type { Outcome } from "../model/outcome.ts";
import { parseTask } from "../model/task.ts";
import type { Verdict } from "../model/verdict.ts";
import { otherValue } from "../ops/metric-labels.ts";
import type { Metrics } from "../ops/metrics.ts";
import { createConsumer } from "../queue/consumer.ts";
import type { Producer } from "../queue/producer.ts";
import { queueName } from "../queue/queues.ts";
import { DeletedSyncJobs } from "../store/deleted-sync-jobs.ts";
import { History } from "../store/history.ts";
import { Quarantines } from "../store/quarantines.ts";
import { type RedisTarget, redisTimeMs, type Store } from "../store/redis.ts";
import { tasksInFlight } from "../store/start-entry.ts";
import type { TaskDependencies } from "../tasks/contracts.ts";
import { createDeletionWatch } from "../tasks/deletion-watch.ts";
import { createProcessTask, endAbandoned } from "../tasks/process-task.ts";
import { createQuarantineWatch } from "../tasks/quarantine-watch.ts";
import { RecentOutcomes } from "../tasks/recent-outcomes.ts";
import { createRecorder } from "../tasks/recorder.ts";
import { createWakingWalk } from "../tasks/wake-runs.ts";
import type { RedisGuard } from "./redis-guard.ts";
import type { ServiceConsumers } from "./running-services.ts";

/** What the consumers need. */
export interface ConsumerOptions {
  readonly redis: RedisTarget;
  readonly log: EventLog;
  readonly takeOverAfterMs: number;
  readonly drainMs: number;
  /** How many outcomes are kept, and for how long. */
  readonly limits: OutcomeLimits;
  readonly metrics?: Metrics | undefined;
  readonly pace?: FeedPace;
}

interface ConsumerParts {
  readonly parts: TaskDependencies;
  readonly store: Store;
  readonly producer: Producer;
  readonly announcer: ItemAnnouncer;
  readonly guard: Pick<RedisGuard, "whenAnother">;
}

const pollConcurrency = 8;

/** Makes the consumers of one service: one queue for actions, one for polls. */
export function createConsumers(
  { redis, log, takeOverAfterMs, drainMs, limits, metrics, pace = defaultPace }: ConsumerOptions,
  { parts, store, producer, announcer, guard }: ConsumerParts,
): (settings: ServiceSettings) => ServiceConsumers {
  const book = metrics === undefined ? parts.feeds : createMeteredFeedStore(parts.feeds, metrics);
  const walking = {
    ...parts,
    feeds: book,
    nowMs: () => redisTimeMs(store),
    pace,
    sampling: new ItemSampling(),
    announcer,
    readings: parts.sharedReadings,
    startsWait: async (service: string) => (await producer.backlog(service, "actions")).waiting > 0,
  };
  const count = createQuarantineWatch(new Quarantines(store), (name) => parts.policy(name)?.quarantine, log);
  const noteDeletion = createDeletionWatch(new DeletedSyncJobs(store));
  const alsoTell = async (outcome: Outcome) => {
    await count(outcome);
    await noteDeletion(outcome);
  };
  const isTold = (name: string) => isNotified(parts.policy(name));
  const history = new RecentOutcomes(new History(store, { isTold, limits }), { clock: systemClock, log });
  guard.whenAnother((lastSeenMs) => history.restore(lastSeenMs));
  const recorder = createRecorder(history, log, alsoTell);
  const processTask = createProcessTask(parts, recorder);
  const wakingWalk = createWakingWalk({
    ...parts,
    inFlight: (feed, syncJobIds) => tasksInFlight(store, feed, syncJobIds),
    wake: (service, taskIds) => producer.wake(service, taskIds),
  });
  const step = async (item: unknown, attempt: Attempt): Promise<Verdict> => {
    if (!isFeedWalk(item)) return processTask(parseTask(item), attempt);
    const walk = parseFeedWalk(item);
    return wakingWalk(walk, () => walkFeed(walk, walking, attempt.signal));
  };
  const inWork = new Set<Promise<Verdict>>();
  const process = async (item: unknown, attempt: Attempt): Promise<Verdict> => {
    const working = step(item, attempt);
    inWork.add(working);
    return working.finally(() => inWork.delete(working));
  };
  const abandoned = async (item: unknown, why: string) =>
    isFeedWalk(item) || endAbandoned(parseTask(item), parts, { recorder, why });
  const common = { target: redis, takeOverAfterMs, drainMs, log, process, abandoned };
  return ({ name, concurrency }) => {
    const actions = createConsumer({ ...common, queue: queueName(name, "actions"), concurrency });
    const polls = createConsumer({ ...common, queue: queueName(name, "polls"), concurrency: pollConcurrency });
    return {
      ...together(`consumers of ${name}`, [actions, polls]),
      resize: (settings) => actions.resize(settings.concurrency),
      ended: () => Promise.allSettled(inWork),
    };
  };
}

type Book = WalkDependencies["feeds"];

/** Wraps a feed store: counts pages, items and walks, and measures how old news was. */
function createMeteredFeedStore(book: Book, metrics: Metrics): Book {
  return {
    waiting: (feed, nowMs) => book.waiting(feed, nowMs),
    status: (feed) => book.status(feed),
    keepKnowledge: (feed, knowledge) => book.keepKnowledge(feed, knowledge),
    told: (feed) => book.told(feed),
    discoveredSince: (feed, seq) => book.discoveredSince(feed, seq),
    keepShape: (feed, shape) => book.keepShape(feed, shape),
    takeIn: async (feed, status, page) => {
      const { service, list } = feed;
      const novelties = await book.takeIn(feed, status, page);
      metrics.add("syncline_feed_pages_total", { service, list });
      for (const novelty of ["new", "again", "known"] as const) {
        const count = novelties?.filter((one) => one === novelty).length ?? 0;
        metrics.add("syncline_feed_items_total", { service, list, novelty }, count);
      }
      return novelties;
    },
    walked: async (feed, walk) => {
      const { service, list } = feed;
      const before = await book.status(feed);
      await book.walked(feed, walk);
      metrics.add("syncline_feed_walks_total", { service, list, walkOutcome: walk.whole ? "whole" : "part" });
      if (walk.whole)
        metrics.add("syncline_feed_whole_walks_total", { service, list, wholeReason: walk.because ?? otherValue });
      // The walk began by Redis's clock. The two clocks agree to about a second, which is precise
      // enough here.
      const endedAtMs = systemClock.nowMs();
      metrics.observe("syncline_feed_walk_duration_seconds", { list }, (endedAtMs - walk.startedAtMs) / 1_000);
      const blindSinceMs = Math.max(before.walkStartedAtMs ?? 0, before.wantedAtMs ?? 0);
      if (blindSinceMs > 0) metrics.observe("syncline_feed_lag_seconds", { list }, (endedAtMs - blindSinceMs) / 1_000);
    },
    failed: async (feed, failure) => {
      metrics.add("syncline_feed_walks_total", { service: feed.service, list: feed.list, walkOutcome: "failed" });
      await book.failed(feed, failure);
    },
  };
}
