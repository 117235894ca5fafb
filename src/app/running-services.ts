// The services of now: one client and, in a worker, the consumers of its two queues for each. Built by app.ts.
//
//   configured ──changed──▶ configured: another client at once; the old one may end what it has under way
//       │    ▲
//    removed └──back──┐
//       ▼             │
//   retired: no client; its consumers work off what stands in its queues, also what a replica that has not seen the change
//            yet puts there (tasks end as policy-removed) ──empty for five minutes──▶ stopped
//
// Adopting never waits: clients are swapped at once, consumers follow in the background.
import { isDeepStrictEqual } from "node:util";
import type { PolicySet, ServiceSettings } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import type { EventLog } from "../core/event-log.ts";
import type { SyncService } from "../service/client.ts";

/** The consumers of one service's queues. */
export interface ServiceConsumers extends Component {
  /** Follows changed limits; what is in work goes on. */
  resize(settings: ServiceSettings): void;
}

/** What the running services are made of. */
export interface RunningServicesOptions {
  readonly services: PolicySet["services"];
  /** @throws UsageError when there is no token. */
  readonly createClient: (settings: ServiceSettings) => SyncService;
  readonly log: EventLog;
  /** How long the queues of a removed service must have been empty before nobody looks there any more. */
  readonly retireAfterMs: number;
}

/** What a worker adds. */
export interface Consuming {
  readonly createConsumers: (settings: ServiceSettings) => ServiceConsumers;
  /** How many items a service's queues hold that are not finished. */
  readonly pending: (service: string) => Promise<number>;
}

interface Running {
  readonly settings: ServiceSettings;
  /** undefined once the service is removed. */
  readonly client: SyncService | undefined;
  /** undefined in a process that is no worker. */
  readonly consumers: ServiceConsumers | undefined;
}

/** What an old client may still have under way: a step of a task, the walk of a list. */
const clientGraceMs = 60_000;
const retiredLookMs = 2_000;
/** A retired service whose queues do not get empty: somebody paused them, or something sleeps there for very long. */
const retiredMsMax = 86_400_000;

/** The running services. */
export class RunningServices implements Component {
  readonly name = "services";
  readonly #options: RunningServicesOptions;
  #consuming: Consuming | undefined;
  readonly #running = new Map<string, Running>();
  readonly #oldClients = new Set<SyncService>();
  readonly #stopping = new AbortController();
  readonly #background = new Set<Promise<void>>();

  /** @throws UsageError when a token is missing. */
  constructor(options: RunningServicesOptions) {
    this.#options = options;
    for (const [name, client] of this.#createClients(options.services)) this.#add(name, client, options.services);
  }

  /** Makes consumers for all services, now and later. Called once by a worker, before the start. */
  consume(consuming: Consuming): void {
    this.#consuming = consuming;
    for (const [name, running] of this.#running) {
      this.#running.set(name, { ...running, consumers: consuming.createConsumers(running.settings) });
    }
  }

  /** The client of a service; undefined when it is not configured any more. */
  client(name: string): SyncService | undefined {
    return this.#running.get(name)?.client;
  }

  async start(): Promise<void> {
    await Promise.all([...this.#running.values()].map(({ consumers }) => consumers?.start()));
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
    for (const result of stopped) if (result.status === "rejected") throw result.reason;
  }

  /**
   * Follows a new set of services: all of it, or nothing when it throws.
   * @throws UsageError when a token is missing.
   */
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

  /** A client for each service that is new or changed. Before anything else, since this is what can fail. */
  #createClients(services: PolicySet["services"]): Map<string, SyncService> {
    const clients = new Map<string, SyncService>();
    for (const [name, settings] of services) {
      const running = this.#running.get(name);
      if (running?.client !== undefined && isDeepStrictEqual(running.settings, settings)) continue;
      clients.set(name, this.#options.createClient(settings));
    }
    return clients;
  }

  #add(name: string, client: SyncService, services: PolicySet["services"]): Running {
    const settings = services.get(name);
    if (settings === undefined) throw new Error(`no settings of service ${name}`);
    const running = { settings, client, consumers: this.#consuming?.createConsumers(settings) };
    this.#running.set(name, running);
    return running;
  }

  #change(name: string, before: Running, now: Pick<Running, "settings" | "client">): void {
    this.#running.set(name, { ...before, ...now });
    before.consumers?.resize(now.settings);
    this.#closeLater(before.client);
  }

  #retire(name: string, running: Running): void {
    if (running.client === undefined) return;
    const retired = { ...running, client: undefined };
    this.#running.set(name, retired);
    this.#closeLater(running.client);
    if (this.#consuming !== undefined) this.#inBackground(this.#workOff(name, retired, this.#consuming));
  }

  async #workOff(name: string, retired: Running, { pending }: Consuming): Promise<void> {
    const untilMs = systemClock.monotonicMs() + retiredMsMax;
    // It has come back when something else stands under its name.
    const isRetired = () => this.#running.get(name) === retired && !this.#stopping.signal.aborted;
    let emptySinceMs: number | undefined;
    while (isRetired()) {
      const nowMs = systemClock.monotonicMs();
      const count = await pending(name).catch(() => undefined);
      emptySinceMs = count === 0 ? (emptySinceMs ?? nowMs) : undefined;
      if (nowMs > untilMs || (emptySinceMs !== undefined && nowMs - emptySinceMs >= this.#options.retireAfterMs)) break;
      await systemClock.sleep(retiredLookMs, this.#stopping.signal);
    }
    if (!isRetired()) return;
    this.#running.delete(name);
    await retired.consumers?.stop();
    this.#options.log.info("service.stopped", { service: name });
  }

  #closeLater(client: SyncService | undefined): void {
    if (client === undefined) return;
    this.#oldClients.add(client);
    const close = async () => {
      await systemClock.sleep(clientGraceMs, this.#stopping.signal);
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
