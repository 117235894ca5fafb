// The limiters of all services by name, each made at its first use from the newest settings. It is
// made before Redis is connected: clients need it first.
import type { ServiceSettings } from "../config/policy-set.ts";
import { systemClock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import type { Denied, Limiter, LimiterRequest, Permit } from "../core/limiter.ts";
import type { Store } from "../store/redis.ts";
import { type ScriptedAcquire, ServiceLimiter } from "../store/service-limiter.ts";

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

  /** The limiter for a client with these settings; settings that come later take its place. */
  of(settings: ServiceSettings): Limiter {
    this.#settings.set(settings.name, settings);
    this.#limiters.delete(settings.name);
    return { acquire: (request) => this.acquire(settings.name, request) };
  }

  /** Asks a service's limiter for one exchange. The service is or was configured. */
  async acquire(service: string, request: LimiterRequest): Promise<Permit | Denied> {
    return this.#limiter(service).acquire(request);
  }

  /** What blocks every request to a service right now; undefined when nothing does. */
  async deniedBy(service: string): Promise<Denied | undefined> {
    return this.#settings.has(service) ? this.#limiter(service).deniedBy() : undefined;
  }

  /** Acquires a start's permit inside another script; undefined for a service without limits. */
  scriptedAcquire(service: string, subject: string): ScriptedAcquire | undefined {
    return this.#settings.has(service) ? this.#limiter(service).scriptedAcquire(subject) : undefined;
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
