// The limiter of one service, shared by all replicas in Redis: throttle, breaker, concurrency and
// rate. service/call.ts asks it before every exchange, tasks/ before a start. It neither waits nor
// sends.
//
//   closed ──N failures in a row──▶ open ──one read a period: alive──▶ closed
//                                    └──it fails──▶ open for another period
//
// While all failures are about one resource key (limiter-scripts.ts), a read of another one need
// not wait for the period. After the breaker closed, a resource key that fails again gets a
// cool-down of its own, so that one broken list or sync job does not block the rest.
//
// A healthy service without limits costs one read of Redis each 0.2 s at most. One with limits
// costs two commands a request (acquire, release); the fast path makes the first one part of its
// own step.
import { randomUUID } from "node:crypto";
import { Batcher } from "../core/batcher.ts";
import type { Clock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import {
  type Denied,
  type DeniedBy,
  type ExchangeEnding,
  type ExchangeHealth,
  healthOf,
  isOwnLimit,
  type Limiter,
  type LimiterRequest,
  type Permit,
} from "../core/limiter.ts";
import { acquireScript, releaseQuietlyScript, releaseScript, viewScript } from "./limiter-scripts.ts";
import type { Store } from "./redis.ts";

/** The limits and thresholds of a limiter. An undefined limit does not apply. */
export interface LimiterLimits {
  readonly service: string;
  /** Requests at a time, over all replicas. */
  readonly concurrencyMax: number | undefined;
  /** Requests a second, over all replicas; may be far below 1. */
  readonly requestsPerSecond: number | undefined;
  /** Failures in a row that open the breaker. */
  readonly failuresMax: number;
  /** How often a probe goes to a service whose breaker is open. */
  readonly probeEveryMs: number;
  /**
   * How long a permit lasts without release. Longer than any exchange: after it, its process is
   * dead.
   */
  readonly leaseMs: number;
}

/** What a limiter is made of. `random`: 0 up to, but not including, 1. */
export interface LimiterDependencies {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: EventLog;
  readonly random?: () => number;
}

interface LimiterView {
  readonly seenAtMs: number;
  readonly throttleMs: number;
  /**
   * Until the next probe; 0 where it depends on the resource key; -1 while the breaker is closed.
   */
  readonly probeMs: number;
  readonly failures: number;
  /** Resource keys that are watched since they failed. */
  readonly coolDowns: number;
}

/** An exchange with a permit. */
interface Exchange {
  readonly id: string;
  readonly resource: string;
  readonly isProbe: boolean;
}

/**
 * The part of the limiter in another script that includes `limiterAcquireLua`: its keys, its
 * arguments, and how to read its answer.
 */
export interface ScriptedAcquire {
  readonly keys: readonly string[];
  readonly want: readonly (string | number)[];
  readonly read: (answer: unknown) => Permit | Denied;
}

/** How long a view of Redis stays valid: so long another replica's throttle may be unknown here. */
const viewForMs = 200;
/** The wait after a 429 without Retry-After, and the least wait: "at once" would be a storm. */
const throttleMsDefault = 5_000;
const throttleMsLeast = 1_000;
/** The longest wait for a reserved slot; then the request asks again. */
const reservedMsMax = 60_000;
/** The wait when Redis does not answer. */
const blindWaitMs = 1_000;
const deniedByWords: readonly DeniedBy[] = ["throttle", "breaker", "concurrency", "rate"];
const rememberMs = 86_400_000;
const jitterMsMax = 30_000;
const reservedJitterMsMax = 50;

/** The limiter of one service. */
export class ServiceLimiter implements Limiter {
  readonly #limits: LimiterLimits;
  readonly #parts: LimiterDependencies;
  readonly #keys: readonly string[];
  readonly #rate: { count: number; windowUs: number };
  readonly #quietly: Batcher<string>;
  #view: LimiterView | undefined;
  #reading: Promise<LimiterView> | undefined;

  constructor(limits: LimiterLimits, parts: LimiterDependencies) {
    this.#limits = limits;
    this.#parts = parts;
    this.#keys = limiterKeys(parts.store, limits.service);
    this.#rate = toRate(limits.requestsPerSecond);
    this.#quietly = new Batcher(async (permits) => {
      this.#take(await releaseQuietlyScript(parts.store, this.#keys, [rememberMs, limits.leaseMs, ...permits]));
    });
  }

  async acquire({ isRead, resource = "" }: LimiterRequest): Promise<Permit | Denied> {
    const view = await this.#currentView();
    const denied = view === undefined ? undefined : this.#deniedOf(view);
    if (denied !== undefined && (denied.waitMs > 0 || !isRead)) return this.#jittered(denied);
    const isWatched = isRead && (view?.coolDowns ?? 0) > 0;
    if (denied === undefined && !isWatched && !this.#isLimited())
      return this.#permit({ id: "", resource, isProbe: false });
    const { keys, want, read } = this.#scriptAcquire({ isRead, resource });
    try {
      return read(await acquireScript(this.#parts.store, keys, want));
    } catch {
      // Redis did not answer, so a place is uncertain. Nothing has been sent, and that must stay
      // certain.
      return this.#jittered({ deniedBy: this.#rate.count > 0 ? "rate" : "concurrency", waitMs: blindWaitMs });
    }
  }

  /**
   * The part of this limiter in the fast path; undefined without limits: then there is nothing to
   * acquire.
   */
  scriptedAcquire(resource = ""): ScriptedAcquire | undefined {
    return this.#isLimited() ? this.#scriptAcquire({ isRead: false, resource }) : undefined;
  }

  /**
   * What denies every request to this service now: throttle or breaker. A breaker whose probe is
   * due waits 0 ms. Own limits are left out: only a request can find them reached.
   */
  async held(): Promise<Denied | undefined> {
    const view = await this.#currentView();
    const denied = view === undefined ? undefined : this.#deniedOf(view);
    return denied === undefined || denied.waitMs === 0 ? denied : this.#jittered(denied);
  }

  #scriptAcquire({ isRead, resource }: { readonly isRead: boolean; readonly resource: string }): ScriptedAcquire {
    const id = randomUUID();
    const { concurrencyMax = 0, leaseMs, probeEveryMs } = this.#limits;
    const { count, windowUs } = this.#rate;
    const want = [id, isRead ? 1 : 0, concurrencyMax, leaseMs, count, windowUs, probeEveryMs, reservedMsMax, resource];
    const read = (answer: unknown) => {
      const { word, waitMs } = this.#take(answer);
      const deniedBy = deniedByWords.find((one) => one === word);
      return deniedBy === undefined
        ? this.#permit({ id, resource, isProbe: word === "probe" })
        : this.#jittered({ deniedBy, waitMs });
    };
    return { keys: this.#keys, want, read };
  }

  #isLimited(): boolean {
    return this.#limits.concurrencyMax !== undefined || this.#limits.requestsPerSecond !== undefined;
  }

  #permit(exchange: Exchange): Permit {
    let isReleased = false;
    const release = async (ending: ExchangeEnding) => {
      if (isReleased) return;
      isReleased = true;
      await this.#release(exchange, ending);
    };
    return { release, isProbe: exchange.isProbe };
  }

  async #release({ id, resource, isProbe }: Exchange, { kind, retryAfterMs }: ExchangeEnding): Promise<void> {
    const { service, failuresMax, probeEveryMs, leaseMs } = this.#limits;
    const health: ExchangeHealth = kind === undefined ? "alive" : healthOf[kind];
    const throttleMs = kind === "throttled" ? Math.max(retryAfterMs ?? throttleMsDefault, throttleMsLeast) : "";
    const isNews =
      health === "failing" ||
      throttleMs !== "" ||
      isProbe ||
      (this.#view?.failures ?? 0) + (this.#view?.coolDowns ?? 0) > 0;
    if (this.#limits.concurrencyMax === undefined && !isNews) return;
    const note = [id, health, throttleMs, isProbe ? 1 : 0, failuresMax, probeEveryMs, kind ?? "", rememberMs, leaseMs];
    const args = [...note, resource];
    try {
      if (!isNews && health === "alive") {
        await this.#quietly.add(id);
        return;
      }
      const { word } = this.#take(await releaseScript(this.#parts.store, this.#keys, args));
      const { log } = this.#parts;
      if (word === "throttled") log.warn("service.throttled", { service, forMs: Number(throttleMs) });
      if (word === "opened") log.error("breaker.opened", { service, kind, failures: failuresMax, probeEveryMs });
      if (word === "closed") log.info("breaker.closed", { service });
    } catch {
      // The exchange is over, and its answer matters more than this note. The lease expires by
      // itself.
      this.#view = undefined;
    }
  }

  /** Returns a fresh view; undefined without Redis: then the limits alone decide. */
  async #currentView(): Promise<LimiterView | undefined> {
    const view = this.#view;
    if (view !== undefined && this.#ageMs(view) < viewForMs) return view;
    this.#reading ??= this.#readView().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading.catch(() => this.#view);
  }

  async #readView(): Promise<LimiterView> {
    return this.#take(await viewScript(this.#parts.store, this.#keys, [])).view;
  }

  #take(answer: unknown): { word: string; waitMs: number; view: LimiterView } {
    const [word, wait, throttle, probe, failures, coolDowns] = Array.isArray(answer) ? answer : [];
    const view = {
      seenAtMs: this.#parts.clock.monotonicMs(),
      throttleMs: Number(throttle),
      probeMs: Number(probe),
      failures: Number(failures),
      coolDowns: Number(coolDowns),
    };
    this.#view = view;
    return { word: String(word), waitMs: Number(wait), view };
  }

  #deniedOf(view: LimiterView): Denied | undefined {
    const ageMs = this.#ageMs(view);
    if (view.throttleMs > ageMs) return { deniedBy: "throttle", waitMs: Math.ceil(view.throttleMs - ageMs) };
    if (view.probeMs >= 0) return { deniedBy: "breaker", waitMs: Math.max(Math.ceil(view.probeMs - ageMs), 0) };
    return undefined;
  }

  #ageMs(view: LimiterView): number {
    return this.#parts.clock.monotonicMs() - view.seenAtMs;
  }

  /** Adds jitter to a wait, so that waiting requests do not all wake at once. Never shortens it. */
  #jittered({ deniedBy, waitMs }: Denied): Denied {
    const share = deniedBy === "throttle" ? 0.05 : 0.25;
    // Reserved slots lie apart by themselves; a late request would leave its own unused.
    const mostMs = isOwnLimit(deniedBy) ? reservedJitterMsMax : jitterMsMax;
    const rangeMs = Math.min(mostMs, Math.max(share * waitMs, 20));
    return { deniedBy, waitMs: Math.ceil(waitMs + rangeMs * (this.#parts.random ?? Math.random)()) };
  }
}

/** The keys of a limiter, in the order of limiter-scripts.ts. */
export function limiterKeys({ key }: Store, service: string): readonly [string, string, string, string] {
  return [
    key("limiter", service),
    key("limiter-inside", service),
    key("limiter-sent", service),
    key("limiter-rests", service),
  ];
}

/**
 * Turns a rate into a count in a window of microseconds: at most that many in any such window. A
 * rate above 1 is counted over about a second, so that a short burst is fine; one below 1 lets one
 * request through each 1/rate seconds.
 */
export function toRate(requestsPerSecond: number | undefined): { count: number; windowUs: number } {
  if (requestsPerSecond === undefined) return { count: 0, windowUs: 0 };
  const count = Math.max(1, Math.floor(requestsPerSecond));
  return { count, windowUs: Math.ceil((count / requestsPerSecond) * 1_000_000) };
}

/** What the fast path asks for. Instants are milliseconds UTC by Redis. */
export interface AtOnceIntent {
  readonly startByMs: number;
  /** When the task was due: tells whether a loss of Redis's memory touches it. */
  readonly slotMs?: number;
  /** Duration of the lease on the sync job; undefined: it takes none. */
  readonly leaseMs: number | undefined;
  /** Whether to note how far the feed has been read. */
  readonly notesFeed: boolean;
  /**
   * The part of the limiter, where the service has limits: then the permission comes with a permit.
   */
  readonly entrance?: ScriptedAcquire | undefined;
}

/**
 * The result: permitted since `sentAtMs`, with the limiter's permit where asked for; or denied by
 * the limiter, and nothing may be sent.
 */
export type AtOnce = { readonly sentAtMs: number; readonly pass: Permit | undefined } | { readonly hold: Denied };
