// What a worker does with a queue's jobs: it processes tasks and walks feeds. Built by app.ts.
//
//   queues ─▶ consumers ─▶ process task ─▶ recorder ─▶ history (and in the same step: chains, notify events), log, quarantine, deleted sync jobs
//                 └──────▶ walk feed ─▶ FeedStore, wakes the runs whose end it saw

import type { PolicySet } from "../config/policy-set.ts";
import type { OutcomeLimits } from "../config/settings.ts";
import { systemClock } from "../core/clock.ts";
import { together } from "../core/component.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import { defaultPace, type FeedPace } from "../feeds/pace.ts";
import { type ItemAnnouncer, ItemSampling } from "../feeds/publish-items.ts";
import { walkFeed } from "../feeds/walk-feed.ts";
import { type Feed, isFeedWalk, parseFeedWalk } from "../model/feed.ts";
import type { EnqueueNotices } from "../model/notice.ts";
import { isNotified } from "../model/notify-event.ts";
import type { Outcome } from "../model/outcome.ts";
import { parseTask } from "../model/task.ts";
import type { Attempt } from "../model/task-processing.ts";
import { snoozeFor, type Verdict } from "../model/verdict.ts";
import { itemNotices, withContext } from "../notify/notices.ts";
import { createConsumer } from "../queue/consumer.ts";
import type { Producer } from "../queue/producer.ts";
import { queueName } from "../queue/queues.ts";
import type { WorkerConnections } from "../queue/worker-connections.ts";
import { DeletedSyncJobs } from "../store/deleted-sync-jobs.ts";
import { History } from "../store/history.ts";
import { Quarantines } from "../store/pauses.ts";
import { redisTimeMs, type Store } from "../store/redis.ts";
import { batchesOf } from "../store/script.ts";
import { taskIdsInFlight } from "../store/start-entry.ts";
import { endAbandoned } from "../tasks/finish.ts";
import { createWakingWalk } from "../tasks/followed-lists.ts";
import { createProcessTask, type ProcessDependencies } from "../tasks/process-task.ts";
import { createDeletionNoter, createQuarantineCounter, createRecorder, RecentOutcomes } from "../tasks/recorder.ts";
import { readNewestSinceMs } from "./planning-inputs.ts";
import type { RedisGuard } from "./redis-guard.ts";
import type { Consuming } from "./running-services.ts";

/** What the consumers need. */
export interface ConsumersOptions {
  readonly connections: WorkerConnections;
  readonly log: EventLog;
  readonly takeOverAfterMs: number;
  readonly drainMs: number;
  /** How many outcomes are kept, and for how long. */
  readonly limits: OutcomeLimits;
  readonly pace?: FeedPace;
  readonly deps: ProcessDependencies;
  readonly store: Store;
  readonly producer: Producer;
  readonly guard: Pick<RedisGuard, "whenAnotherRedis" | "mayBeForeign">;
  /** The policies in force now, and how their sinks get notices of new items. */
  readonly set: () => PolicySet;
  readonly enqueueNotices: EnqueueNotices;
}

const pollConcurrency = 8;
/** The pause of a job that is not, or may not be, of this process's owner. */
const foreignPauseMs = 5_000;
const noticesAtOnce = 500;

/**
 * Returns what makes the consumers of a service: one queue for actions, one for polls. All services
 * share the recorder.
 */
export function createConsumers(options: ConsumersOptions): Pick<Consuming, "createConsumers" | "ended"> {
  const {
    connections,
    log,
    takeOverAfterMs,
    drainMs,
    limits,
    pace = defaultPace,
    deps,
    store,
    producer,
    guard,
  } = options;
  const walking = {
    ...deps,
    nowMs: () => redisTimeMs(store),
    pace,
    sampling: new ItemSampling(),
    announcer: createItemAnnouncer(options),
    readings: deps.sharedReadings,
    newestSinceMs: () => readNewestSinceMs(store, options.set().contentHash),
    startsWait: async (service: string) => (await producer.backlog(service, "actions")).waiting > 0,
    limitedLog: createRateLimitedLog(log, systemClock, "feed"),
  };
  const quarantineOf = (name: string) => deps.policy(name)?.quarantine;
  const countForQuarantine = createQuarantineCounter(new Quarantines(store), quarantineOf, log);
  const noteDeletion = createDeletionNoter(new DeletedSyncJobs(store));
  const onPublished = async (outcome: Outcome) => {
    await countForQuarantine(outcome);
    await noteDeletion(outcome);
  };
  const timezoneOf = (name: string) => deps.policy(name)?.timezone;
  const history = new History(store, { isNotified: (name) => isNotified(deps.policy(name)), timezoneOf, limits });
  const recent = new RecentOutcomes(history, { clock: systemClock, log });
  guard.whenAnotherRedis((lastSeenMs) => recent.restore(lastSeenMs));
  const recorder = createRecorder(history, log, onPublished, recent);
  const processTask = createProcessTask(deps, recorder);
  const wakingWalk = createWakingWalk({
    ...deps,
    inFlight: (feed, syncJobIds) => taskIdsInFlight(store, feed, syncJobIds),
    wake: (service, taskIds) => producer.wake(service, taskIds),
  });
  const step = async (data: unknown, attempt: Attempt): Promise<Verdict> => {
    // It may be another owner's: this process would end it as if its policy were removed.
    if (guard.mayBeForeign) return snoozeFor(foreignPauseMs, deps.clockAheadMs());
    if (!isFeedWalk(data)) return processTask(parseTask(data), attempt);
    const walk = parseFeedWalk(data);
    return wakingWalk(walk, () => walkFeed(walk, walking, attempt.signal));
  };
  const inWork = new Set<Promise<Verdict>>();
  const process = async (data: unknown, attempt: Attempt): Promise<Verdict> => {
    const working = step(data, attempt);
    inWork.add(working);
    return working.finally(() => inWork.delete(working));
  };
  // False: not possible yet (queue/consumer.ts). A walk has no outcome to record.
  const endJob = async (data: unknown, why: string) =>
    !guard.mayBeForeign && (isFeedWalk(data) || endAbandoned(parseTask(data), deps, { recorder, why }));
  const { clockAheadMs } = deps;
  const common = { connections, takeOverAfterMs, drainMs, clockAheadMs, log, process, endAbandoned: endJob };
  return {
    createConsumers: ({ name, concurrency }) => {
      const actions = createConsumer({ ...common, queue: queueName(name, "actions"), concurrency });
      const polls = createConsumer({ ...common, queue: queueName(name, "polls"), concurrency: pollConcurrency });
      const both = together(`consumers of ${name}`, [actions, polls]);
      return { ...both, resize: (settings) => actions.resize(settings.concurrency) };
    },
    ended: () => Promise.allSettled(inWork),
  };
}

function createItemAnnouncer({ set, enqueueNotices }: ConsumersOptions): ItemAnnouncer {
  const wanting = ({ list }: Feed) => [...set().sinks.values()].filter(({ items }) => items?.includes(list) === true);
  return {
    wants: (feed) => wanting(feed).length > 0,
    announce: async (feed, group) => {
      const found = itemNotices(feed, group, systemClock.nowMs());
      const notices = found.map((notice) => withContext(notice, set()));
      const receivers = wanting(feed);
      const deliveries = notices.flatMap((notice) => receivers.map(({ name: sink }) => ({ sink, notice })));
      for (const batch of batchesOf(deliveries, noticesAtOnce)) await enqueueNotices(batch);
    },
  };
}
