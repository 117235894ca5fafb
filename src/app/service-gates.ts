// The gates of the services: made with their clients, asked by work before a start. Built by app.ts, before the store is open.
import type { ServiceSettings } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Gate, GateRequest, Hold, Pass } from "../core/gate.ts";
import type { Store } from "../store/redis.ts";
import { type Entrance, ServiceGate } from "../store/service-gate.ts";

/** Longer than any exchange takes: whoever holds a place beyond this has died. */
const leaseMarginMs = 5_000;

/** The gates of the services. */
export class ServiceGates {
  readonly #log: EventLog;
  readonly #settings = new Map<string, ServiceSettings>();
  readonly #gates = new Map<string, ServiceGate>();
  #store: Store | undefined;

  constructor(log: EventLog) {
    this.#log = log;
  }

  /** From now on gates know where Redis is. Nothing asks them before. */
  connect(store: Store): void {
    this.#store = store;
  }

  /** The gate for a client with these settings; settings that come later take its place. */
  of(settings: ServiceSettings): Gate {
    this.#settings.set(settings.name, settings);
    this.#gates.delete(settings.name);
    return { enter: (request) => this.enter(settings.name, request) };
  }

  /** Asks the gate of a service that is or was configured for one exchange. */
  async enter(service: string, request: GateRequest): Promise<Pass | Hold> {
    return this.#gate(service).enter(request);
  }

  /** What holds everything to a service back right now; undefined when nothing does. */
  async held(service: string): Promise<Hold | undefined> {
    return this.#settings.has(service) ? this.#gate(service).held() : undefined;
  }

  /** The way of a start through a service's gate as a part of another step; undefined where it has no limits. */
  entrance(service: string, subject: string): Entrance | undefined {
    return this.#settings.has(service) ? this.#gate(service).entrance(subject) : undefined;
  }

  #gate(service: string): ServiceGate {
    const known = this.#gates.get(service);
    if (known !== undefined) return known;
    const settings = this.#settings.get(service);
    if (settings === undefined || this.#store === undefined) throw new Error(`no gate of service ${service} yet`);
    const { limits, breaker, requestTimeoutMs } = settings;
    const gate = new ServiceGate(
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
    this.#gates.set(service, gate);
    return gate;
  }
}
