// The composition root: builds everything once, starts it in order, stops it in reverse. This file is the wiring diagram.
//
//   scheduler ─▶ ledger (Redis) ─▶ producer ─▶ queues (Redis) ─▶ consumers ─▶ process task ─▶ recorder ─▶ history, log
//                                                                   └──▶ walk feed ─▶ feed book ◀── run tasks
import type { PolicySet, ServiceSettings } from "./config/policy-set.ts";
import { systemClock } from "./core/clock.ts";
import { type Component, startInOrder, stopInReverse } from "./core/component.ts";
import { UsageError } from "./core/errors.ts";
import type { EventLog } from "./core/event-log.ts";
import { createItemReader, type ItemReader } from "./feeds/mapping.ts";
import { defaultPace, type FeedPace } from "./feeds/pace.ts";
import { walkFeed } from "./feeds/walk-feed.ts";
import { createRecorder } from "./outcome/recorder.ts";
import { createConsumer } from "./queue/consumer.ts";
import { Producer } from "./queue/producer.ts";
import { queueName } from "./queue/queues.ts";
import { createPauseWatch } from "./schedule/pause-watch.ts";
import { Scheduler } from "./schedule/scheduler.ts";
import { SyncService } from "./service/client.ts";
import { fileToken, staticToken } from "./service/token.ts";
import { FeedBook } from "./store/feed-book.ts";
import { History } from "./store/history.ts";
import { Leases } from "./store/leases.ts";
import { Pauses } from "./store/pauses.ts";
import { openStore, type RedisTarget, redisTimeMs, type Store } from "./store/redis.ts";
import { SlotLedger } from "./store/slot-ledger.ts";
import { StartJournal } from "./store/start-journal.ts";
import { type Feed, feedId, isFeedWalk } from "./tasks/feed.ts";
import type { Attempt } from "./tasks/seams.ts";
import { parseTask } from "./tasks/task.ts";
import type { Verdict } from "./tasks/verdict.ts";
import type { WorkParts } from "./work/parts.ts";
import { createProcessTask, endAbandoned } from "./work/process-task.ts";
import { defaultTiming, type WorkTiming } from "./work/timing.ts";

/** What a process does: plans slots, or works on tasks. */
type Role = "scheduler" | "worker";

/** What an app is made of. */
export interface AppOptions {
  readonly set: PolicySet;
  readonly redis: RedisTarget;
  readonly roles: readonly Role[];
  /** For `token: { env: NAME }`. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly log: EventLog;
  /** How long a worker may stay silent before another takes its tasks. */
  readonly takeOverAfterMs: number;
  /** How long stopping may take. */
  readonly drainMs: number;
  /** How patient work is; `defaultTiming` unless set. */
  readonly timing?: WorkTiming;
  /** How often feeds are walked; `defaultPace` unless set. */
  readonly pace?: FeedPace;
}

/** A started app. */
export interface RunningApp {
  /** Stops everything inside `drainMs`: no new starts, steps in work end, the rest stays in the queue. */
  stop(): Promise<void>;
}

const pollConcurrency = 8;

/**
 * Builds and starts the app.
 * @throws OutOfReachError when Redis does not answer; UsageError when a token is missing.
 */
export async function startApp(options: AppOptions): Promise<RunningApp> {
  const { set, redis, log } = options;
  const services = new Map([...set.services].map(([name, settings]) => [name, createService(settings, options)]));
  const store = await openStore(redis, (message) => log.warn("redis.unreachable", { message }));
  const producer = new Producer(redis, log);
  const parts = createParts({ options, services, store, producer });
  const components = [...(options.roles.includes("worker") ? consumersOf(options, { parts, store }) : [])];
  if (options.roles.includes("scheduler")) {
    const ledger = new SlotLedger(store);
    const pauses = createPauseWatch(() => new Pauses(store).all(), log);
    components.push(new Scheduler({ policies: set.policies, ledger, enqueue: parts.enqueue, pauses, log }));
  }
  const stop = async () => {
    await stopInReverse(components);
    await producer.close();
    for (const service of services.values()) service.close();
    await store.close();
  };
  await startInOrder(components).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { stop };
}

/**
 * Makes the client of a service.
 * @throws UsageError when its token variable is not set.
 */
export function createService(
  settings: ServiceSettings,
  { variables, log }: Pick<AppOptions, "variables" | "log">,
): SyncService {
  const { name, baseUrl, token, pathForm, requestTimeoutMs } = settings;
  return new SyncService({
    baseUrl,
    pathForm,
    timeouts: { requestMs: requestTimeoutMs },
    token: token.kind === "file" ? fileToken(token.path) : staticToken(tokenOf(name, token.variable, variables)),
    log,
  });
}

function tokenOf(service: string, variable: string, variables: AppOptions["variables"]): string {
  const token = variables[variable];
  if (token === undefined || token === "")
    throw new UsageError(`service ${service}: the environment variable ${variable} holds no token`);
  return token;
}

interface Built {
  readonly options: AppOptions;
  readonly services: ReadonlyMap<string, SyncService>;
  readonly store: Store;
  readonly producer: Producer;
}

function createParts({ options, services, store, producer }: Built): WorkParts {
  const { set, log } = options;
  const policies = new Map(set.policies.map((policy) => [policy.name, policy]));
  return {
    policy: (name) => policies.get(name),
    service: (name) => services.get(name),
    itemReader: createItemReaders(set),
    journal: new StartJournal(store),
    leases: new Leases(store),
    book: new FeedBook(store),
    read: (feed, { hurry }) => producer.walk({ v: 1, kind: "feed-walk", ...feed }, { hurry }),
    enqueue: (tasks) => producer.enqueue(tasks),
    nowMs: () => redisTimeMs(store),
    monotonicMs: systemClock.monotonicMs,
    timing: options.timing ?? defaultTiming,
    log,
  };
}

function createItemReaders(set: PolicySet): (feed: Feed) => ItemReader | undefined {
  const readers = new Map<string, ItemReader>();
  return (feed) => {
    const settings = set.services.get(feed.service);
    if (settings === undefined) return undefined;
    const known = readers.get(feedId(feed));
    if (known !== undefined) return known;
    const reader = createItemReader(feed.list, settings.mapping.get(feed.list));
    readers.set(feedId(feed), reader);
    return reader;
  };
}

function consumersOf(options: AppOptions, { parts, store }: { parts: WorkParts; store: Store }): Component[] {
  const { set, redis, log, takeOverAfterMs, drainMs } = options;
  const walking = { ...parts, pace: options.pace ?? defaultPace };
  const record = createRecorder(new History(store), log);
  const processTask = createProcessTask(parts, record);
  const process = async (item: unknown, attempt: Attempt): Promise<Verdict> =>
    isFeedWalk(item) ? walkFeed(item, walking, attempt.signal) : processTask(parseTask(item), attempt);
  const abandoned = async (item: unknown, why: string) => {
    if (!isFeedWalk(item)) await endAbandoned(parseTask(item), parts, { record, why });
  };
  return [...set.services.values()].flatMap((service) =>
    (["actions", "polls"] as const).map((urgency) =>
      createConsumer({
        target: redis,
        queue: queueName(service.name, urgency),
        concurrency: urgency === "actions" ? service.concurrency : pollConcurrency,
        takeOverAfterMs,
        drainMs,
        log,
        process,
        abandoned,
      }),
    ),
  );
}
