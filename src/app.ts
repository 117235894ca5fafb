// The composition root: builds everything once, starts it in order, stops it in reverse. This file is the wiring diagram.
//
//   scheduler ─▶ ledger (Redis) ─▶ producer ─▶ queues (Redis) ─▶ consumers ─▶ process task ─▶ recorder ─▶ history, log
//                                                                   └──▶ walk feed ─▶ feed book ◀── run tasks
//
// A reload (watch policies ─▶ adopt) changes three things at once: the current set, the clients, the scheduler's list.
import { createConsumers } from "./app/create-consumers.ts";
import { createService } from "./app/create-service.ts";
import { createTelling } from "./app/create-telling.ts";
import { CurrentSet } from "./app/current-set.ts";
import { createItemAnnouncer } from "./app/item-announcer.ts";
import { createGaugeSource } from "./app/metric-gauges.ts";
import { readKeptPauses } from "./app/quarantine-keeper.ts";
import { RedisGuard } from "./app/redis-guard.ts";
import { RunningServices } from "./app/running-services.ts";
import { RunningSinks } from "./app/running-sinks.ts";
import { ServiceGates } from "./app/service-gates.ts";
import type { PolicyChecks } from "./config/policy-checks.ts";
import type { PolicySet } from "./config/policy-set.ts";
import { watchPolicies } from "./config/watch-policies.ts";
import { systemClock } from "./core/clock.ts";
import { type Component, startInOrder, stopInReverse, together } from "./core/component.ts";
import type { EventLog } from "./core/event-log.ts";
import { createSparingLog } from "./core/sparing-log.ts";
import { MaskShelf } from "./declared/mask-shelf.ts";
import type { FeedPace } from "./feeds/pace.ts";
import { createRequestCounter } from "./ops/metered-requests.ts";
import type { Metrics } from "./ops/metrics.ts";
import { Producer } from "./queue/producer.ts";
import { Chains } from "./schedule/chains.ts";
import { createPauseWatch } from "./schedule/pause-watch.ts";
import { Scheduler } from "./schedule/scheduler.ts";
import { ChainBook } from "./store/chain-book.ts";
import { DeclaredMemory } from "./store/declared-memory.ts";
import { FeedBook } from "./store/feed-book.ts";
import { Leases } from "./store/leases.ts";
import { Pauses } from "./store/pauses.ts";
import { PollMemories } from "./store/poll-memories.ts";
import { Quarantines } from "./store/quarantines.ts";
import { openStore, type RedisTarget, redisTimeMs, type Store } from "./store/redis.ts";
import { createSharedClock } from "./store/shared-clock.ts";
import { SharedReadings } from "./store/shared-readings.ts";
import { SlotLedger } from "./store/slot-ledger.ts";
import { StartJournal } from "./store/start-journal.ts";
import type { DeliverNotices } from "./tasks/notice.ts";
import type { Pause } from "./tasks/pause.ts";
import type { WorkParts } from "./work/parts.ts";
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
  /** Where calls, feeds and gauges are counted; nothing is unless set. What the log tells is counted by the log (ops/metered-log.ts). */
  readonly metrics?: Metrics | undefined;
  /** How long a worker may stay silent before another takes its tasks. */
  readonly takeOverAfterMs: number;
  /** How long stopping may take. */
  readonly drainMs: number;
  /** Aborts when the process is told to stop: from then on nothing is started, also while the app itself starts. */
  readonly toldToStop?: AbortSignal;
  /** Where `set` came from and how it is checked, to follow changes there; without it the set stays as it is. */
  readonly watch?: { readonly path: string; readonly checks: PolicyChecks };
  /** How long the queues of a removed service must be empty before nobody looks there any more; 5 min unless set. */
  readonly retireAfterMs?: number;
  /** How patient work is; `defaultTiming` unless set. */
  readonly timing?: WorkTiming;
  /** Where notices go; to the sinks unless set. */
  readonly deliver?: DeliverNotices;
  /** How often feeds are walked; `defaultPace` unless set. */
  readonly pace?: FeedPace;
}

/** A started app. */
export interface RunningApp {
  /** Why this process does not do its work right now; empty when it does. */
  unreadiness(): readonly { readonly part: string; readonly reason: string }[];
  /** Stops everything inside `drainMs`: no new starts, steps in work end, the rest stays in the queue. */
  stop(): Promise<void>;
}

/** Replicas see a change at different times: a ConfigMap reaches its nodes within about two minutes. */
const retireAfterMsDefault = 300_000;

/**
 * Builds and starts the app. Told to stop meanwhile, it ends early, and `stop` stops what there is.
 * @throws OutOfReachError when Redis does not answer; UsageError when a token is missing.
 */
export async function startApp(options: AppOptions): Promise<RunningApp> {
  const { set, redis, log, metrics } = options;
  const current = new CurrentSet(set);
  const gates = new ServiceGates(log);
  const services = createServices(options, gates);
  const sparing = createSparingLog(log, systemClock, "");
  const store = await openStore(redis, (message) => sparing.warn("redis.unreachable", { message }));
  gates.connect(store);
  const producer = new Producer(redis, log);
  const stopping = new AbortController();
  follow(stopping, options.toldToStop);
  const guard = new RedisGuard({ store, log, roles: options.roles });
  const ledger = new SlotLedger(store);
  const chains = new Chains({
    policy: (name) => current.policy(name),
    followers: (name) => current.followers(name),
    book: new ChainBook(store),
    ledger,
    enqueue: (tasks) => producer.enqueue(tasks),
    pauses: () => readPauses(store),
    log,
  });
  const shared = { options, current, services, gates, store, producer, guard, chains };
  const parts = createParts({ ...shared, stopping: stopping.signal });
  const sinks = new RunningSinks({ ...options, store });
  const { deliver = sinks.deliver } = options;
  if (options.roles.includes("worker")) {
    const announcer = createItemAnnouncer({ sinks: () => current.set.sinks, deliver, log });
    const create = createConsumers(options, { parts, store, producer, announcer, guard });
    services.consume({ createConsumers: create, pending: (service) => producer.pending(service) });
  }
  // The sinks stop after the services: what these tell at the end is still taken in.
  const components: Component[] = [guard, sinks, together("work", [services, sinks.deliveries])];
  components.push(...createTelling({ ...shared, options, deliver, pauses: () => readPauses(store) }));
  const scheduler = options.roles.includes("scheduler") ? createScheduler(shared, { ledger, parts }) : undefined;
  if (scheduler !== undefined) components.push(scheduler);
  const adopt = (next: PolicySet) => {
    // The services first: only they can refuse. Nothing runs in between, so nobody sees half of it.
    services.adopt(next.services);
    metrics?.takeInSet(next);
    sinks.adopt(next.sinks);
    current.adopt(next);
    scheduler?.replace(next.policies);
  };
  const { watch, variables } = options;
  if (watch !== undefined) components.push(watchPolicies({ ...watch, variables, current: set, adopt, log }));
  const stop = async () => {
    // From here on nothing is started, while things stop one after the other. Whatever does not stop in order, the connections are let go of.
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
  const isWorking = () => options.roles.includes("worker") && !stopping.signal.aborted;
  metrics?.readFrom(createGaugeSource(metrics, { ...shared, sinks, pauses: () => readPauses(store), isWorking }));
  const unreadiness = () => guard.reasons().map((reason) => ({ part: "redis", reason }));
  return { stop, unreadiness };
}

function createScheduler(
  { options, store, guard, chains }: Pick<Built, "options" | "store" | "guard" | "chains">,
  { ledger, parts: { policy, enqueue } }: { readonly ledger: SlotLedger; readonly parts: WorkParts },
): Scheduler {
  const { set, log, metrics } = options;
  const kept = { pauses: new Pauses(store), quarantines: new Quarantines(store), policy };
  return new Scheduler({
    policies: set.policies,
    ledger,
    enqueue,
    pauses: createPauseWatch(() => readKeptPauses(kept), log),
    mayPlan: () => guard.isSafe(),
    losses: () => guard.losses,
    chains,
    onLooked: () => metrics?.beat("scheduler"),
    log,
  });
}

function follow(controller: AbortController, signal: AbortSignal | undefined): void {
  signal?.addEventListener("abort", () => controller.abort(), { once: true });
  if (signal?.aborted === true) controller.abort();
}

function createServices(options: AppOptions, gates: ServiceGates): RunningServices {
  const { set, log, metrics } = options;
  return new RunningServices({
    services: set.services,
    createClient: (settings) =>
      createService(settings, {
        ...options,
        gate: gates.of(settings),
        onRequest: createRequestCounter(metrics, settings.name),
      }),
    log,
    retireAfterMs: options.retireAfterMs ?? retireAfterMsDefault,
  });
}

interface Built {
  readonly options: AppOptions;
  readonly current: CurrentSet;
  readonly services: RunningServices;
  readonly gates: ServiceGates;
  readonly store: Store;
  readonly producer: Producer;
  readonly guard: RedisGuard;
  readonly chains: Chains;
  readonly stopping: AbortSignal;
}

function createParts(built: Built): WorkParts {
  const { options, current, services, gates, store, producer, guard, chains, stopping } = built;
  return {
    policy: (name) => current.policy(name),
    service: (name) => services.client(name),
    held: (service) => gates.held(service),
    enter: (service, request) => gates.enter(service, request),
    entrance: (service, subject) => gates.entrance(service, subject),
    shut: (task) => guard.watch.shut(task),
    itemReader: (feed) => current.itemReader(feed),
    activeSign: (service) => current.activeSign(service),
    journal: new StartJournal(store, guard.watch),
    leases: new Leases(store),
    book: new FeedBook(store),
    polls: new PollMemories(store),
    readings: new SharedReadings(store),
    isPolledTogether: (feed) => current.isPolledTogether(feed),
    read: (feed, { hurry }) => producer.walk({ v: 1, kind: "feed-walk", ...feed }, { hurry }),
    enqueue: (tasks) => producer.enqueue(tasks),
    fate: (service, taskId) => producer.fate(service, taskId),
    chains,
    declared: { masks: new MaskShelf(), memory: new DeclaredMemory(store) },
    nowMs: createSharedClock(() => redisTimeMs(store)),
    stopping,
    timing: options.timing ?? defaultTiming,
    log: options.log,
  };
}

async function readPauses(store: Store): Promise<Pause[]> {
  return (await Promise.all([new Pauses(store).all(), new Quarantines(store).all()])).flat();
}
