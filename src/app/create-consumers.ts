// What a worker does with what it takes from the queues: tasks through work/ to the recorder, walks of feeds. Built by app.ts.
//
//   queues ─▶ consumers ─▶ process task ─▶ recorder ─▶ history (and in the same step: chains, telling), log, quarantine
//                 └──────▶ walk feed ─▶ feed book, wakes the runs whose end it saw
import type { ServiceSettings } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import { together } from "../core/component.ts";
import type { EventLog } from "../core/event-log.ts";
import type { ItemAnnouncer } from "../feeds/announce-items.ts";
import { ItemSampling } from "../feeds/item-sampling.ts";
import { defaultPace, type FeedPace } from "../feeds/pace.ts";
import { walkFeed } from "../feeds/walk-feed.ts";
import type { Metrics } from "../ops/metrics.ts";
import { createDeletionWatch } from "../outcome/deletion-watch.ts";
import { createQuarantineWatch } from "../outcome/quarantine-watch.ts";
import { RecentOutcomes } from "../outcome/recent-outcomes.ts";
import { createRecorder } from "../outcome/recorder.ts";
import { createConsumer } from "../queue/consumer.ts";
import type { Producer } from "../queue/producer.ts";
import { queueName } from "../queue/queues.ts";
import { DeletedSyncJobs } from "../store/deleted-sync-jobs.ts";
import { History } from "../store/history.ts";
import { tasksInFlight } from "../store/in-flight.ts";
import { Quarantines } from "../store/quarantines.ts";
import { type RedisTarget, redisTimeMs, type Store } from "../store/redis.ts";
import { isFeedWalk, parseFeedWalk } from "../tasks/feed.ts";
import type { Outcome } from "../tasks/outcome.ts";
import type { Attempt } from "../tasks/seams.ts";
import { parseTask } from "../tasks/task.ts";
import { isToldOf } from "../tasks/telling-event.ts";
import type { Verdict } from "../tasks/verdict.ts";
import type { WorkParts } from "../work/parts.ts";
import { createProcessTask, endAbandoned } from "../work/process-task.ts";
import { createWakingWalk } from "../work/wake-runs.ts";
import { createMeteredBook } from "./metered-book.ts";
import type { RedisGuard } from "./redis-guard.ts";
import type { ServiceConsumers } from "./running-services.ts";

/** What consumers need of what the app is made of. */
export interface ConsumerOptions {
  readonly redis: RedisTarget;
  readonly log: EventLog;
  readonly takeOverAfterMs: number;
  readonly drainMs: number;
  readonly metrics?: Metrics | undefined;
  readonly pace?: FeedPace;
}

interface ConsumerParts {
  readonly parts: WorkParts;
  readonly store: Store;
  readonly producer: Producer;
  readonly announcer: ItemAnnouncer;
  readonly guard: Pick<RedisGuard, "whenAnother">;
}

const pollConcurrency = 8;

/** Makes what makes the consumers of one service: actions and polls, each from a queue of its own. */
export function createConsumers(
  { redis, log, takeOverAfterMs, drainMs, metrics, pace = defaultPace }: ConsumerOptions,
  { parts, store, producer, announcer, guard }: ConsumerParts,
): (settings: ServiceSettings) => ServiceConsumers {
  const book = metrics === undefined ? parts.book : createMeteredBook(parts.book, metrics);
  const walking = {
    ...parts,
    book,
    nowMs: () => redisTimeMs(store),
    pace,
    sampling: new ItemSampling(),
    announcer,
    readings: parts.readings,
    startsWait: async (service: string) => (await producer.backlog(service, "actions")).waiting > 0,
  };
  const count = createQuarantineWatch(new Quarantines(store), (name) => parts.policy(name)?.quarantine, log);
  const noteDeletion = createDeletionWatch(new DeletedSyncJobs(store));
  const alsoTell = async (outcome: Outcome) => {
    await count(outcome);
    await noteDeletion(outcome);
  };
  const isTold = (name: string) => isToldOf(parts.policy(name));
  const history = new RecentOutcomes(new History(store, isTold), { clock: systemClock, log });
  guard.whenAnother((lastSeenMs) => history.restore(lastSeenMs));
  const recorder = createRecorder(history, log, alsoTell);
  const processTask = createProcessTask(parts, recorder);
  const wakingWalk = createWakingWalk({
    ...parts,
    inFlight: (feed, syncJobIds) => tasksInFlight(store, feed, syncJobIds),
    wake: (service, taskIds) => producer.wake(service, taskIds),
  });
  const process = async (item: unknown, attempt: Attempt): Promise<Verdict> => {
    if (!isFeedWalk(item)) return processTask(parseTask(item), attempt);
    const walk = parseFeedWalk(item);
    return wakingWalk(walk, () => walkFeed(walk, walking, attempt.signal));
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
    };
  };
}
