// The running services: for each a client, its limiter and, in a worker, the consumers of its two
// queues. Built by app.ts.
//
//   configured ──changed──▶ configured: another client at once; the old one may end what it has under way
//       │    ▲
//    removed └──back──┐
//       ▼             │
//  retired: no client; its consumers empty its queues, also of tasks from replicas that have not
//            seen the change yet (they end as policy-removed) ──empty for 5 min──▶ stopped
//       ▲
//   a service that was removed while no worker ran: Redis remembers its name
//
// Adopting never waits: clients are swapped at once, consumers follow in the background.

import { isDeepStrictEqual } from "node:util";
import type { PolicySet, ServiceSettings } from "../config/policy-set.ts";
import { systemClock, untilAborted, withTimeLimit } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Denial, LimiterRequest, Permit } from "../core/limiter.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import type { Producer } from "../queue/producer.ts";
import type { SyncService } from "../service/client.ts";
import type { ConsumedServices } from "../store/consumed-services.ts";
import type { Store } from "../store/redis.ts";
import { type ScriptedAcquire, ServiceLimiter } from "../store/service-limiter.ts";

/** The consumers of one service's queues. */
export interface ServiceConsumers extends Component {
  /** Applies changed limits; running tasks go on. */
  resize(settings: ServiceSettings): void;
}

/** What the running services need. */
export interface RunningServicesOptions {
  readonly services: PolicySet["services"];
  /** @throws UsageError when there is no token. */
  readonly createClient: (settings: ServiceSettings) => SyncService;
  /** Hears of the settings of each service that is in force from now on. */
  readonly onAdopted: (settings: ServiceSettings) => void;
  readonly log: EventLog;
  /** How long the queues of a removed service must stay empty before its consumers stop. */
  readonly retireAfterMs: number;
}

/** What a worker adds. */
export interface Consuming {
  readonly createConsumers: (settings: Pick<ServiceSettings, "name" | "concurrency">) => ServiceConsumers;
  /** Waits for the steps that go on after a `stop`, since the drain was too short for them. */
  readonly ended: () => Promise<unknown>;
  readonly queues: Pick<Producer, "pending" | "tidy">;
  /** To find what others have left; undefined in a stand-in, whose own files may lack services. */
  readonly memory?: Pick<ConsumedServices, "note" | "forget" | "ended" | "forgetEnded"> | undefined;
}

interface RunningService {
  /** undefined for a service that others have left. */
  readonly settings: ServiceSettings | undefined;
  /** undefined once the service is removed. */
  readonly client: SyncService | undefined;
  /** undefined in a process that is no worker. */
  readonly consumers: ServiceConsumers | undefined;
}

/** How long a step may take to note what it knows of a request that was cut off. */
const noteWithinMs = 1_000;
/** So long, and two requests more, an old client may serve a step of a task or a walk. */
const clientGraceMs = 60_000;
const retiredCheckMs = 2_000;
/** Ends the wait for queues that are paused or hold a long snooze. */
const retiredMsMax = 86_400_000;
/** How often in the time of retirement a worker says which services it has. */
const noteTimes = 5;
/** How many actions of a service that others have left are worked on at once. */
const leftConcurrency = 8;

/** Starts, swaps and stops the clients and consumers of services. */
export class RunningServices implements Component {
  readonly name = "services";
  readonly #options: RunningServicesOptions;
  #consuming: Consuming | undefined;
  readonly #running = new Map<string, RunningService>();
  readonly #oldClients = new Set<SyncService>();
  readonly #stopping = new AbortController();
  readonly #background = new Set<Promise<void>>();

  /** @throws UsageError when a token is missing. */
  constructor(options: RunningServicesOptions) {
    this.#options = options;
    for (const [name, client] of this.#createClients(options.services)) this.#add(name, client, options.services);
  }

  /** Makes consumers for all services, now and after each reload. Called once, before start. */
  consume(consuming: Consuming): void {
    this.#consuming = consuming;
    for (const [name, running] of this.#running) {
      const { settings } = running;
      if (settings !== undefined)
        this.#running.set(name, { ...running, consumers: consuming.createConsumers(settings) });
    }
  }

  /** The client of a service; undefined when it is not configured any more. */
  client(name: string): SyncService | undefined {
    return this.#running.get(name)?.client;
  }

  async start(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ consumers }) => consumers?.start()));
    if (this.#consuming !== undefined) this.#inBackground(this.#findLeft(this.#consuming));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    const running = [...this.#running.values()];
    const stopped = await Promise.allSettled([
      ...running.map(({ consumers }) => consumers?.stop()),
      ...this.#background,
    ]);
    for (const client of this.#oldClients) client.close();
    for (const { client } of running) client?.close();
    // Redis is closed next: a step that was cut off here still notes that its answer is lost.
    if (this.#consuming !== undefined)
      await withTimeLimit(this.#consuming.ended(), noteWithinMs, () => new Error("busy")).catch(() => {});
    for (const result of stopped) if (result.status === "rejected") throw result.reason;
  }

  /** Adopts all services, or none when it throws. @throws UsageError when a token is missing. */
  adopt(services: PolicySet["services"]): void {
    const clients = this.#createClients(services);
    for (const [name, running] of this.#running) {
      const settings = services.get(name);
      if (settings === undefined) this.#retire(name, running);
      else if (clients.has(name)) this.#change(name, running, { settings, client: clients.get(name) });
    }
    for (const [name, client] of clients) {
      if (this.#running.has(name)) continue;
      const { consumers } = this.#add(name, client, services);
      if (consumers !== undefined) this.#inBackground(consumers.start());
    }
  }

  /** Makes a client for each new or changed service. This comes first, since only this can fail. */
  #createClients(services: PolicySet["services"]): Map<string, SyncService> {
    const clients = new Map<string, SyncService>();
    try {
      for (const [name, settings] of services) {
        const running = this.#running.get(name);
        if (running?.client !== undefined && isDeepStrictEqual(running.settings, settings)) continue;
        clients.set(name, this.#options.createClient(settings));
      }
    } catch (error) {
      for (const client of clients.values()) client.close();
      throw error;
    }
    return clients;
  }

  #add(name: string, client: SyncService, services: PolicySet["services"]): RunningService {
    const settings = services.get(name);
    if (settings === undefined) throw new Error(`no settings of service ${name}`);
    this.#options.onAdopted(settings);
    const running = { settings, client, consumers: this.#consuming?.createConsumers(settings) };
    this.#running.set(name, running);
    return running;
  }

  #change(
    name: string,
    before: RunningService,
    now: Pick<RunningService, "client"> & { readonly settings: ServiceSettings },
  ): void {
    this.#options.onAdopted(now.settings);
    this.#running.set(name, { ...before, ...now });
    before.consumers?.resize(now.settings);
    this.#closeLater(before);
  }

  #retire(name: string, running: RunningService): void {
    if (running.client === undefined) return;
    const retired = { ...running, client: undefined };
    this.#running.set(name, retired);
    this.#closeLater(running);
    if (this.#consuming !== undefined) this.#inBackground(this.#workOff(name, retired, this.#consuming));
  }

  /** Works off what services have left that are in no worker's files any more. */
  async #findLeft(consuming: Consuming): Promise<void> {
    const { memory } = consuming;
    if (memory === undefined) return;
    const { retireAfterMs } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const own = [...this.#running].flatMap(([name, { client }]) => (client === undefined ? [] : [name]));
      // One that is worked off just now may be read as left, and be gone when the answer comes.
      const known = new Set(this.#running.keys());
      const left = await untilAborted(memory.note(own, retireAfterMs), signal).catch(() => []);
      for (const name of left) {
        if (known.has(name) || this.#running.has(name)) continue;
        const consumers = consuming.createConsumers({ name, concurrency: leftConcurrency });
        const retired = { settings: undefined, client: undefined, consumers };
        this.#options.log.warn("service.left-behind", { service: name });
        this.#running.set(name, retired);
        this.#inBackground(consumers.start());
        this.#inBackground(this.#workOff(name, retired, consuming));
      }
      // A stop does not wait for it, and an outage of Redis is told already.
      const tidied = untilAborted(tidyEnded(consuming), signal).catch((error: unknown) => {
        if (!signal.aborted && !isRedisOutage(error)) throw error;
      });
      this.#inBackground(tidied);
      await systemClock.sleep(retireAfterMs / noteTimes, signal);
    }
  }

  async #workOff(name: string, retired: RunningService, { queues, memory }: Consuming): Promise<void> {
    const untilMs = systemClock.monotonicMs() + retiredMsMax;
    // The service has come back when another entry stands under its name.
    const isRetired = () => this.#running.get(name) === retired && !this.#stopping.signal.aborted;
    let emptySinceMs: number | undefined;
    let count: number | undefined;
    let isQuiet = false;
    while (isRetired()) {
      const nowMs = systemClock.monotonicMs();
      count = await queues.pending(name).catch(() => undefined);
      emptySinceMs = count === 0 ? (emptySinceMs ?? nowMs) : undefined;
      isQuiet = emptySinceMs !== undefined && nowMs - emptySinceMs >= this.#options.retireAfterMs;
      if (isQuiet || nowMs > untilMs) break;
      await systemClock.sleep(retiredCheckMs, this.#stopping.signal);
    }
    if (!isRetired()) return;
    // What is not forgotten is found again.
    if (isQuiet) await memory?.forget(name).catch(() => {});
    if (!isRetired()) return;
    this.#running.delete(name);
    await retired.consumers?.stop();
    const left = isQuiet ? {} : { left: count ?? null };
    this.#options.log.info("service.stopped", { service: name, ...left });
  }

  #closeLater({ client, settings }: RunningService): void {
    if (client === undefined || settings === undefined) return;
    this.#oldClients.add(client);
    const close = async () => {
      await systemClock.sleep(clientGraceMs + 2 * settings.requestTimeoutMs, this.#stopping.signal);
      // A stop closes it when the steps in work have ended.
      if (this.#stopping.signal.aborted) return;
      client.close();
      this.#oldClients.delete(client);
    };
    this.#inBackground(close());
  }

  #inBackground(work: Promise<void>): void {
    const noted = work
      .catch((error: unknown) => {
        this.#options.log.warn("service.change-failed", { message: String(error) });
      })
      .finally(() => this.#background.delete(noted));
    this.#background.add(noted);
  }
}

/** Added to the request time-out: a permit that is older belongs to a process that died. */
const leaseMarginMs = 5_000;

/** The limiters of the services. */
export class ServiceLimiters {
  readonly #log: EventLog;
  readonly #settings = new Map<string, ServiceSettings>();
  readonly #limiters = new Map<string, ServiceLimiter>();
  #store: Store | undefined;

  constructor(log: EventLog) {
    this.#log = log;
  }

  /** Connects the limiters to Redis. No limiter is asked before. */
  connect(store: Store): void {
    this.#store = store;
  }

  /** Sets the limits and the breaker of a service, in place of earlier ones. */
  set(settings: ServiceSettings): void {
    this.#settings.set(settings.name, settings);
    this.#limiters.delete(settings.name);
  }

  /** Asks a service's limiter for one exchange. The service is or was configured. */
  async acquire(service: string, request: LimiterRequest): Promise<Permit | Denial> {
    return this.#limiter(service).acquire(request);
  }

  /** What denies every request to a service right now; undefined when nothing does. */
  async denialOf(service: string): Promise<Denial | undefined> {
    return this.#settings.has(service) ? this.#limiter(service).denial() : undefined;
  }

  /** Acquires a start's permit inside another script; undefined for a service without limits. */
  scriptedAcquire(service: string, resource: () => string): ScriptedAcquire | undefined {
    return this.#settings.has(service) ? this.#limiter(service).scriptedAcquire(resource) : undefined;
  }

  #limiter(service: string): ServiceLimiter {
    const known = this.#limiters.get(service);
    if (known !== undefined) return known;
    const settings = this.#settings.get(service);
    if (settings === undefined || this.#store === undefined) throw new Error(`no limiter of service ${service} yet`);
    const { limits, breaker, requestTimeoutMs } = settings;
    const limiter = new ServiceLimiter(
      {
        service,
        concurrencyMax: limits.concurrencyMax,
        requestsPerSecond: limits.requestsPerSecond,
        failuresMax: breaker.after,
        probeEveryMs: breaker.probeMs,
        leaseMs: requestTimeoutMs + leaseMarginMs,
      },
      { store: this.#store, clock: systemClock, log: this.#log },
    );
    this.#limiters.set(service, limiter);
    return limiter;
  }
}

/** Drops ended tasks of forgotten services when they are old enough. */
async function tidyEnded({ queues, memory }: Consuming): Promise<void> {
  for (const service of (await memory?.ended()) ?? [])
    if ((await queues.tidy(service)) === 0) await memory?.forgetEnded(service);
}
