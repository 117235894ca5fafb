// The composition root: builds everything once, starts it in order, stops it in reverse. This file
// is the wiring diagram.
//
//   scheduler ─▶ ledger (Redis) ─▶ producer ─▶ queues (Redis) ─▶ consumers ─▶ process task ─▶ recorder ─▶ history, log
//                                                                   └──▶ walk feed ─▶ FeedStore ◀── run tasks
//   notify events (Redis) ─▶ notifier ─▶ queues of sinks ─▶ sinks ─▶ receivers
//
// A reload (watch policies ─▶ adopt) changes six parts at once, the services first: only they can
// refuse.

import { MaskCache } from "../apply/mask-cache.ts";
import type { PolicySet } from "../config/policy-set.ts";
import type { PolicyChecks } from "../config/rules/policy-rules.ts";
import { readOutcomeLimits, type Variables } from "../config/settings.ts";
import { PolicyWatch } from "../config/watch-policies.ts";
import { createDeadline, systemClock } from "../core/clock.ts";
import { type Component, startInOrder, stopInReverse, together } from "../core/component.ts";
import { OutOfReachError } from "../core/errors.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import type { FeedPace } from "../feeds/pace.ts";
import type { EnqueueNotices } from "../model/notice.ts";
import { createRequestCounter } from "../ops/metered-log.ts";
import type { Metrics } from "../ops/metrics.ts";
import { wholeView } from "../queries/query-context.ts";
import { Producer } from "../queue/producer.ts";
import { WorkerConnections } from "../queue/worker-connections.ts";
import { Chains, type ChainsOptions } from "../schedule/chains.ts";
import { createPauseReader } from "../schedule/pause-reader.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { ChainStore } from "../store/chain-store.ts";
import { ConsumedServices } from "../store/consumed-services.ts";
import { DeclaredMemory } from "../store/declared-memory.ts";
import { FeedStore } from "../store/feed-store.ts";
import { History } from "../store/history.ts";
import { KeptWrites } from "../store/kept-writes.ts";
import { Leases } from "../store/leases.ts";
import { Quarantines, readPauses } from "../store/pauses.ts";
import { readRuns } from "../store/policy-states.ts";
import { PollStore } from "../store/poll-store.ts";
import { createSharedClock, openStore, type RedisTarget, redisTimeMs, type Store } from "../store/redis.ts";
import { SharedReadings } from "../store/shared-readings.ts";
import { SlotLedger } from "../store/slot-ledger.ts";
import { StartJournal } from "../store/start-journal.ts";
import type { ProcessDependencies } from "../tasks/process-task.ts";
import { defaultTiming, type TaskTiming } from "../tasks/timing.ts";
import { createConsumers } from "./create-consumers.ts";
import { createNotifier } from "./create-notifier.ts";
import { createService } from "./create-service.ts";
import { createWeb, type WebOptions } from "./create-web.ts";
import { CurrentSet } from "./current-set.ts";
import { MeteredFeedStore } from "./metered-feed-store.ts";
import { createGaugeSource } from "./metric-gauges.ts";
import {
  createInputReader,
  createNewerWorkerCheck,
  liftDroppedQuarantines,
  readNewestSinceMs,
} from "./planning-inputs.ts";
import { RedisGuard } from "./redis-guard.ts";
import { RunningServices, ServiceLimiters } from "./running-services.ts";
import { RunningSinks } from "./running-sinks.ts";
import { SetKeeper } from "./set-keeper.ts";

/** What a process does: plan slots, work on tasks, or show what is known. */
export type Role = "scheduler" | "worker" | "web";

/** How long a start waits before it looks for Redis again. */
const openAgainMs = 1_000;
/** By then a kubelet forgets its back-off: it starts the process at once, with new secrets. */
const opensWithinMs = 660_000;

/** What `startApp` needs. */
export interface AppOptions {
  readonly set: PolicySet;
  readonly redis: RedisTarget;
  readonly roles: readonly Role[];
  /** The owner of these policies, to find processes of other owners under the same prefix. */
  readonly owner?: string | undefined;
  /** For tokens, policy files that are read again, and `readOutcomeLimits`. */
  readonly variables: Variables;
  readonly log: EventLog;
  /** Counts calls, feeds and gauges; nothing unless set. */
  readonly metrics?: Metrics | undefined;
  /** How long a worker may stay silent before another takes its tasks. */
  readonly takeOverAfterMs: number;
  /** How long stopping may take. */
  readonly drainMs: number;
  /** Whether a start waits for a Redis that is away: a kubelet restarts what ends ever later. */
  readonly waitsForRedis?: boolean;
  /** Aborts when the process is told to stop: from then on nothing starts. */
  readonly stopSignal?: AbortSignal;
  /** Where `set` came from, to follow its changes. Without it the set stays as it is. */
  readonly watch?: { readonly path: string; readonly checks: PolicyChecks };
  /**
   * Whether this process works only until what a command waits for has ended. Its files may lack
   * what `serve` has: so it forgets no chain, and leaves notices and heartbeats to `serve`.
   */
  readonly isStandIn?: boolean;
  /** Where the role `web` listens; without it the role does nothing. */
  readonly web?: WebOptions | undefined;
  /** How long queues of a removed service stay empty before its consumers stop; default 5 min. */
  readonly retireAfterMs?: number;
  /** How long steps of tasks wait; `defaultTiming` unless set. */
  readonly timing?: TaskTiming;
  /** Where notices go; default: to the sinks. */
  readonly enqueueNotices?: EnqueueNotices;
  /** How often feeds are walked; `defaultPace` unless set. */
  readonly pace?: FeedPace;
}

/** A started app. */
export interface RunningApp {
  /** Why this process does not do its work right now; empty when it does. */
  unreadiness(): readonly { readonly part: string; readonly reason: string }[];
  /** Stops within `drainMs`: nothing starts, running steps end, the rest stays in the queue. */
  stop(): Promise<void>;
}

/** Replicas see a change at different times: a ConfigMap takes about two minutes. */
const retireAfterMsDefault = 300_000;

/**
 * Builds and starts the app. When told to stop meanwhile, it returns early.
 * @throws OutOfReachError when Redis does not answer; UsageError for a missing token,
 * or `SYNCLINE_OUTCOMES_…` out of bounds.
 */
export async function startApp(options: AppOptions): Promise<RunningApp> {
  const { set, redis, log, metrics, watch, variables } = options;
  const limits = readOutcomeLimits(variables);
  const current = new CurrentSet(set);
  const limiters = new ServiceLimiters(log);
  const services = createServices(options, limiters);
  const store = await openUnlessStopped(options);
  if (store === undefined) return { stop: () => services.stop(), unreadiness: () => [] };
  limiters.connect(store);
  const producer = new Producer(redis, log);
  const connections = new WorkerConnections(redis, log);
  const stopping = linkedAbort(options.stopSignal);
  const guard = new RedisGuard({ store, log, roles: options.roles, owner: options.owner });
  const ledger = new SlotLedger(store);
  const newestSinceMs = () => readNewestSinceMs(store, current.set.contentHash);
  const chains = createChains({ options, current, store, producer, guard }, { ledger, newestSinceMs });
  const { newerAwayForMs: awayForMs } = options.timing ?? defaultTiming;
  const hasNewerWorker = createNewerWorkerCheck(store, () => current.set.contentHash, awayForMs);
  const shared = { options, current, services, limiters, store, producer, connections, guard, hasNewerWorker, chains };
  const deps = createTaskDependencies({ ...shared, stopping: stopping.signal });
  const sinks = new RunningSinks({ ...options, store, connections, mayBeForeign: () => guard.mayBeForeign });
  const { enqueueNotices = sinks.enqueue } = options;
  if (options.roles.includes("worker")) {
    const consumers = createConsumers({ ...shared, ...options, limits, deps, enqueueNotices, set: () => current.set });
    const memory = watch && new ConsumedServices(store);
    services.consume({ ...consumers, queues: producer, memory });
  }
  const keeper = new SetKeeper({ store, guard, set, roles: options.roles, path: watch?.path, awayForMs, log });
  const scheduler = options.roles.includes("scheduler")
    ? createScheduler(shared, { ...deps, ledger, newestSinceMs })
    : undefined;
  // They stop side by side: in an outage of Redis each takes its whole time-out. Their notices go
  // to the sinks, which stop after them.
  const work: Component[] = scheduler === undefined ? [] : [scheduler];
  work.push(services, sinks.deliveries);
  work.push(...createNotifier({ ...shared, options, enqueueNotices, pauses: () => readPauses(store) }));
  if (options.web !== undefined) {
    const found = { store, target: redis, producer, notices: sinks.queues, view: wholeView };
    work.push(createWeb(options.web, { ...options, guard, context: () => ({ ...found, set: current.set }) }));
  }
  const components: Component[] = [guard, keeper, deps.keptWrites, connections, sinks, together("work", work)];
  const adopt = createAdopt({ services, metrics, sinks, current, scheduler, keeper });
  const noteRejected: SetKeeper["noteRejected"] = (why) => keeper.noteRejected(why);
  if (watch !== undefined)
    components.push(new PolicyWatch({ ...watch, variables, current: set, adopt, noteRejected, log }));
  const stop = async () => {
    // From here on nothing starts. Connections close even when a component fails to stop.
    stopping.abort();
    try {
      await stopInReverse(components);
    } finally {
      await producer.close();
      await store.close();
    }
  };
  await startInOrder(components, stopping.signal).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  const atWork = () => options.roles.filter((role) => role !== "scheduler" && !stopping.signal.aborted);
  metrics?.readFrom(createGaugeSource(metrics, { ...shared, sinks, pauses: () => readPauses(store), atWork, log }));
  return { stop, unreadiness: createUnreadiness(options.roles, guard) };
}

interface AdoptingParts extends Pick<AppParts, "services" | "current"> {
  readonly metrics: Metrics | undefined;
  readonly sinks: RunningSinks;
  readonly scheduler: Scheduler | undefined;
  readonly keeper: SetKeeper;
}

/** All six change in one go: no reader sees half. The services first: only they can refuse. */
function createAdopt({ services, metrics, sinks, current, scheduler, keeper }: AdoptingParts) {
  return (next: PolicySet): void => {
    services.adopt(next.services);
    metrics?.takeInSet(next);
    sinks.adopt(next.sinks);
    current.adopt(next);
    scheduler?.adopt(next.policies);
    keeper.adopt(next);
  };
}

/** The role web alone only shows: it goes on where nothing may start. */
function createUnreadiness(roles: readonly Role[], guard: RedisGuard): RunningApp["unreadiness"] {
  const isWebAlone = roles.every((role) => role === "web");
  const reasons = () => (isWebAlone && guard.isUp() && !guard.mayBeForeign ? [] : guard.reasons());
  return () => reasons().map((reason) => ({ part: "redis", reason }));
}

/** Connects to Redis; undefined when told to stop meanwhile. @throws OutOfReachError */
async function openUnlessStopped(options: AppOptions): Promise<Store | undefined> {
  const { redis, log, stopSignal, waitsForRedis = false } = options;
  const [errors, waits] = [createRateLimitedLog(log, systemClock, ""), createRateLimitedLog(log, systemClock, "")];
  const onError = (message: string) => errors.warn("redis.unreachable", { message });
  const isOver = createDeadline(opensWithinMs);
  for (;;) {
    try {
      return await openStore(redis, onError, stopSignal);
    } catch (error) {
      if (stopSignal?.aborted === true) return undefined;
      if (!waitsForRedis || isOver() || !(error instanceof OutOfReachError)) throw error;
      // It says what to do: a wrong password comes here, too.
      waits.warn("redis.unreachable", { message: error.message });
      await systemClock.sleep(openAgainMs, stopSignal);
    }
  }
}

function createChains(
  { options, current, store, producer, guard }: Pick<AppParts, "options" | "current" | "store" | "producer" | "guard">,
  { ledger, newestSinceMs }: Pick<ChainsOptions, "ledger" | "newestSinceMs">,
): Chains {
  return new Chains({
    policy: (name) => current.policy(name),
    followers: (name) => current.followers(name),
    chainStore: new ChainStore(store),
    ledger,
    enqueue: (tasks) => producer.enqueue(tasks),
    pauses: () => readPauses(store),
    inputs: createInputReader((name) => current.policy(name), store),
    lossesSince: (sinceMs) => guard.watch.lossesSince(sinceMs),
    newestSinceMs: options.isStandIn === true ? async () => Number.POSITIVE_INFINITY : newestSinceMs,
    log: options.log,
  });
}

function createScheduler(
  { options, current, store, guard, chains }: Pick<AppParts, "options" | "current" | "store" | "guard" | "chains">,
  {
    ledger,
    policy,
    enqueue,
    newestSinceMs,
  }: Pick<ProcessDependencies, "policy" | "enqueue"> &
    Pick<ChainsOptions, "newestSinceMs"> & { readonly ledger: SlotLedger },
): Scheduler {
  const { set, log, metrics } = options;
  return new Scheduler({
    policies: set.policies,
    ledger,
    enqueue,
    // Each round also lifts quarantines that no policy file asks for any more.
    pauses: createPauseReader(() => liftDroppedQuarantines(store, policy, newestSinceMs), log),
    mayPlan: () => guard.isSafe(),
    inputs: createInputReader(policy, store),
    redisChanges: () => guard.changes,
    lossesSince: (sinceMs) => guard.watch.lossesSince(sinceMs),
    newestSinceMs,
    chains,
    alsoTidy: async ({ nowMs, isNewest }) => {
      const known = new Set(current.set.policies.map(({ name }) => name));
      if (isNewest) await new Quarantines(store).tidy(known, nowMs);
      await new History(store).tidy(known);
    },
    onRound: () => metrics?.markAlive("scheduler"),
    log,
  });
}

function linkedAbort(signal: AbortSignal | undefined): AbortController {
  const controller = new AbortController();
  signal?.addEventListener("abort", () => controller.abort(), { once: true });
  if (signal?.aborted === true) controller.abort();
  return controller;
}

function createServices(options: AppOptions, limiters: ServiceLimiters): RunningServices {
  const { set, log, metrics } = options;
  return new RunningServices({
    services: set.services,
    createClient: (settings) =>
      createService(settings, {
        ...options,
        limiter: { acquire: (request) => limiters.acquire(settings.name, request) },
        onRequest: createRequestCounter(metrics, settings.name),
      }),
    onAdopted: (settings) => limiters.set(settings),
    log,
    retireAfterMs: options.retireAfterMs ?? retireAfterMsDefault,
  });
}

interface AppParts {
  readonly options: AppOptions;
  readonly current: CurrentSet;
  readonly services: RunningServices;
  readonly limiters: ServiceLimiters;
  readonly store: Store;
  readonly producer: Producer;
  readonly guard: RedisGuard;
  readonly hasNewerWorker: () => Promise<boolean>;
  readonly chains: Chains;
  readonly stopping: AbortSignal;
}

function createTaskDependencies(built: AppParts): ProcessDependencies {
  const { options, current, services, limiters, store, producer, guard, hasNewerWorker, chains, stopping } = built;
  const keptWrites = new KeptWrites(options.log);
  const { timing = defaultTiming } = options;
  return {
    policy: (name) => current.policy(name),
    service: (name) => services.client(name),
    unchangedForMs: (name) => current.unchangedForMs(name),
    hasNewerWorker,
    denialOf: (service) => limiters.denialOf(service),
    acquire: (service, request) => limiters.acquire(service, request),
    scriptedAcquire: (service, resource) => limiters.scriptedAcquire(service, resource),
    checkFence: (task) => guard.watch.checkFence(task),
    itemMapper: (feed) => current.itemMapper(feed),
    activePredicate: (service) => current.activePredicate(service),
    journal: new StartJournal(store, guard.watch, keptWrites),
    keptWrites,
    leases: new Leases(store),
    feeds: options.metrics === undefined ? new FeedStore(store) : new MeteredFeedStore(store, options.metrics),
    runsOf: (run) => readRuns(store, run),
    polls: new PollStore(store),
    sharedReadings: new SharedReadings(store),
    isPolledTogether: (feed) => current.isPolledTogether(feed),
    requestWalk: (feed, { hurry }) => producer.walk({ v: 1, kind: "feed-walk", ...feed }, { hurry }),
    enqueue: (tasks) => producer.enqueue(tasks),
    jobStatus: (service, taskId) => producer.jobStatus(service, taskId),
    chains,
    declared: { masks: new MaskCache(), memory: new DeclaredMemory(store) },
    nowMs: createSharedClock(() => redisTimeMs(store)),
    clockAheadMs: () => guard.clockAheadMs,
    outcomeOf: (task) => new History(store).outcome(task),
    stopping,
    timing,
    log: options.log,
  };
}
