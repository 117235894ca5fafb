// The limiter of one service, shared by all replicas in Redis: throttle, breaker, concurrency and
// rate. service/call.ts asks it before every exchange, tasks/ before a start. It neither waits nor
// sends.
//
//   closed ──N failures in a row──▶ open ──one read a period: alive──▶ closed
//                                    └──it fails──▶ open for another period
//
// While all failures are about one resource key (core/limiter.ts), a read of another one need
// not wait for the period. After the breaker closed, a resource key that fails again gets a
// cool-down of its own, so that one broken list or sync job does not block the rest.
//
// A healthy service without limits costs one read of Redis each 0.2 s at most. One with limits
// costs two commands a request (acquire, release); the fast path makes the first one part of its
// own step.
import { randomUUID } from "node:crypto";
import { Batcher, shared } from "../core/batcher.ts";
import type { Clock } from "../core/clock.ts";
import { stackOf } from "../core/errors.ts";
import { bugEveryMs, type EventLog } from "../core/event-log.ts";
import {
  type Denial,
  type ExchangeEnding,
  type ExchangeHealth,
  healthOf,
  isOwnLimit,
  type Limiter,
  type LimiterRequest,
  type Permit,
} from "../core/limiter.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { redisTimeMs, type Store } from "./redis.ts";
import { asList, asNumber, asWord, createScript, type ScriptArgument } from "./script.ts";

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
  /** A permit without release lasts so long: longer than any exchange but that of a probe. */
  readonly leaseMs: number;
}

/** What a limiter is made of. `random`: 0 up to, but not including, 1. */
export interface LimiterDependencies {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: EventLog;
  readonly random?: () => number;
}

/** What Redis knows of the service. */
interface LimiterView {
  readonly throttleMs: number;
  /** Until the next probe; 0 where it depends on the resource; -1 while the breaker is closed. */
  readonly probeMs: number;
  readonly failures: number;
  /** Resources that are watched since they failed. */
  readonly coolDowns: number;
}

type SeenView = LimiterView & { readonly seenAtMs: number };

/** A script's answer: what became of the request, and the state behind it. */
interface LimiterAnswer<Word> {
  readonly word: Word;
  readonly waitMs: number;
  readonly view: LimiterView;
}

/** An exchange with a permit. */
interface Exchange {
  readonly id: string;
  readonly resource: string;
  readonly isProbe: boolean;
}

/** The limiter's part in the fast path (start-journal.ts). */
export interface ScriptedAcquire {
  readonly keys: readonly string[];
  readonly request: readonly ScriptArgument[];
  readonly read: (answer: AcquireAnswer) => Permit | Denial;
}

/** How long a view of Redis stays valid: so long another replica's throttle may be unknown here. */
const viewForMs = 200;
/** The wait after a 429 without Retry-After, and the least wait: "at once" would be a storm. */
const throttleMsDefault = 5_000;
const throttleMsLeast = 1_000;
/** The longest wait for a reserved turn; then the request asks again. */
const reservedMsMax = 60_000;
/** The wait when Redis does not answer. */
const blindWaitMs = 1_000;
const deniedByWords = ["throttle", "breaker", "concurrency", "rate"] as const;
const rememberMs = 86_400_000;
const jitterMsMax = 30_000;
const reservedJitterMsMax = 50;

/** Reads the answer to a request for a permit. */
export const asAcquireAnswer = asAnswer("acquired", "probe", ...deniedByWords);

type AcquireAnswer = ReturnType<typeof asAcquireAnswer>;

const viewScript = createScript("limiter/view", asAnswer(""));
const acquireScript = createScript("limiter/acquire", asAcquireAnswer);
const releaseScript = createScript("limiter/release", asAnswer("throttled", "opened", "closed", ""));
const releaseQuietlyScript = createScript("limiter/release-quietly", asAnswer(""));

/** The limiter of one service. */
export class ServiceLimiter implements Limiter {
  readonly #limits: LimiterLimits;
  readonly #parts: LimiterDependencies;
  readonly #keys: readonly string[];
  readonly #rate: { count: number; windowUs: number };
  readonly #quietly: Batcher<string>;
  #bugAtMs = Number.NEGATIVE_INFINITY;
  #view: SeenView | undefined;
  readonly #readViewOnce = shared(() => this.#readView());

  constructor(limits: LimiterLimits, parts: LimiterDependencies) {
    this.#limits = limits;
    this.#parts = parts;
    this.#keys = limiterKeys(parts.store, limits.service);
    this.#rate = toRate(limits.requestsPerSecond);
    this.#quietly = new Batcher(async (permits) => {
      const args = [rememberMs, limits.leaseMs, ...permits];
      this.#note((await releaseQuietlyScript(parts.store, this.#keys, args)).view);
    });
  }

  async acquire({ isRead, resource = "" }: LimiterRequest): Promise<Permit | Denial> {
    const { view, denied } = await this.#look();
    if (denied !== undefined && (denied.waitMs > 0 || !isRead)) return this.#jittered(denied);
    const isWatched = isRead && (view?.coolDowns ?? 0) > 0;
    if (denied === undefined && !isWatched && !this.#isLimited())
      return this.#permit({ id: "", resource, isProbe: false });
    const { keys, request, read } = this.#scriptAcquire({ isRead, resource });
    try {
      return read(await acquireScript(this.#parts.store, keys, request));
    } catch (error) {
      this.#noteBug(error);
      // Redis did not answer, or not as it should. Nothing has been sent: that must stay certain.
      return this.#jittered({ deniedBy: "redis", waitMs: blindWaitMs });
    }
  }

  /** This limiter's part in the fast path; undefined without limits. */
  scriptedAcquire(resource = () => ""): ScriptedAcquire | undefined {
    return this.#isLimited() ? this.#scriptAcquire({ isRead: false, resource: resource() }) : undefined;
  }

  /**
   * What denies every request now: throttle or breaker. A breaker whose probe is due waits 0 ms.
   */
  async denial(): Promise<Denial | undefined> {
    const { denied } = await this.#look();
    return denied === undefined || denied.waitMs === 0 ? denied : this.#jittered(denied);
  }

  #scriptAcquire({ isRead, resource }: { readonly isRead: boolean; readonly resource: string }): ScriptedAcquire {
    const id = randomUUID();
    const { concurrencyMax = 0, leaseMs, probeEveryMs } = this.#limits;
    const { count, windowUs } = this.#rate;
    const limits = [isRead ? 1 : 0, concurrencyMax, leaseMs, count, windowUs, probeEveryMs, reservedMsMax];
    const read = (answer: AcquireAnswer) => {
      this.#note(answer.view);
      const { word, waitMs } = answer;
      return word === "acquired" || word === "probe"
        ? this.#permit({ id, resource, isProbe: word === "probe" })
        : this.#jittered({ deniedBy: word, waitMs });
    };
    return { keys: this.#keys, request: [id, resource, ...limits], read };
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
    const breaker = [isProbe ? 1 : 0, failuresMax, probeEveryMs, kind ?? "", rememberMs];
    const args = [id, leaseMs, health, throttleMs, ...breaker, resource];
    try {
      if (!isNews && health === "alive") {
        await this.#quietly.add(id);
        return;
      }
      const { word, view } = await releaseScript(this.#parts.store, this.#keys, args);
      this.#note(view);
      const { log } = this.#parts;
      if (word === "throttled") log.warn("service.throttled", { service, forMs: Number(throttleMs) });
      if (word === "opened") log.error("breaker.opened", { service, kind, failures: failuresMax, probeEveryMs });
      if (word === "closed") log.info("breaker.closed", { service });
    } catch (error) {
      this.#noteBug(error);
      // The exchange's answer matters more than this note. The lease expires by itself.
      this.#view = undefined;
    }
  }

  /** Where Redis is not out, it is a mistake of Syncline, which may deny every request. */
  #noteBug(error: unknown): void {
    const { clock, log } = this.#parts;
    const nowMs = clock.monotonicMs();
    if (isRedisOutage(error) || nowMs - this.#bugAtMs < bugEveryMs) return;
    this.#bugAtMs = nowMs;
    log.error("bug.caught", { service: this.#limits.service, stack: stackOf(error) });
  }

  /** The view, and what denies every request by it. Without Redis the limits alone decide. */
  async #look(): Promise<{ view: SeenView | undefined; denied: Denial | undefined }> {
    const view = await this.#currentView();
    if (view === undefined || this.#deniedOf(view) === undefined) return { view, denied: undefined };
    // A caller sleeps for as long as it is told: another replica may have closed the breaker since.
    const now = await this.#readView().catch(() => view);
    return { view: now, denied: this.#deniedOf(now) };
  }

  /** Returns a recent view; undefined without Redis. */
  async #currentView(): Promise<SeenView | undefined> {
    const view = this.#view;
    if (view !== undefined && this.#ageMs(view) < viewForMs) return view;
    return this.#readViewOnce().catch(() => this.#view);
  }

  async #readView(): Promise<SeenView> {
    return this.#note((await viewScript(this.#parts.store, this.#keys)).view);
  }

  #note(view: LimiterView): SeenView {
    this.#view = { ...view, seenAtMs: this.#parts.clock.monotonicMs() };
    return this.#view;
  }

  #deniedOf(view: SeenView): Denial | undefined {
    const ageMs = this.#ageMs(view);
    if (view.throttleMs > ageMs) return { deniedBy: "throttle", waitMs: Math.ceil(view.throttleMs - ageMs) };
    if (view.probeMs >= 0) return { deniedBy: "breaker", waitMs: Math.max(Math.ceil(view.probeMs - ageMs), 0) };
    return undefined;
  }

  #ageMs(view: SeenView): number {
    return this.#parts.clock.monotonicMs() - view.seenAtMs;
  }

  /** Adds jitter to a wait, so that waiting requests do not all wake at once. Never shortens it. */
  #jittered({ deniedBy, waitMs }: Denial): Denial {
    const share = deniedBy === "throttle" ? 0.05 : 0.25;
    // Reserved turns lie apart by themselves; a late request would leave its own unused.
    const mostMs = isOwnLimit(deniedBy) ? reservedJitterMsMax : jitterMsMax;
    const rangeMs = Math.min(mostMs, Math.max(share * waitMs, 20));
    return { deniedBy, waitMs: Math.ceil(waitMs + rangeMs * (this.#parts.random ?? Math.random)()) };
  }
}

/** The state of a service's limiter. Instants are milliseconds UTC by Redis. */
export interface LimiterStatus {
  readonly breaker: "closed" | "open";
  /** Since when the breaker is open; undefined while it is closed. */
  readonly openSinceMs: number | undefined;
  /** When the next probe may go out; undefined while the breaker is closed. */
  readonly nextProbeMs: number | undefined;
  /** Failures in a row, and the kind of the last one; 0 and undefined after a success. */
  readonly failures: number;
  readonly lastFailure: string | undefined;
  /** Until when the service asked for no requests; undefined when it did not. */
  readonly throttledUntilMs: number | undefined;
  /** Since when it has asked for that again and again; undefined when it did not. */
  readonly throttledSinceMs: number | undefined;
  /** Requests under way; 0 unless `limits.concurrency` is set, since only then they are counted. */
  readonly inFlight: number;
}

/** Reads the state of a service's limiter. A service without a record is closed and quiet. */
export async function readLimiterStatus(store: Store, service: string): Promise<LimiterStatus> {
  const [stateKey, insideKey] = limiterKeys(store, service);
  const nowMs = await redisTimeMs(store);
  const fields = await store.redis.hgetall(stateKey);
  const inFlight = await store.redis.zcount(insideKey, `(${nowMs}`, "+inf");
  const instant = (name: string) => (fields[name] === undefined ? undefined : Number(fields[name]));
  const isThrottled = (instant("throttledUntilMs") ?? 0) > nowMs;
  const isOpen = fields["state"] === "open";
  return {
    breaker: isOpen ? "open" : "closed",
    openSinceMs: isOpen ? instant("openedAtMs") : undefined,
    nextProbeMs: isOpen ? instant("nextProbeMs") : undefined,
    failures: instant("failures") ?? 0,
    lastFailure: fields["lastFailure"],
    throttledUntilMs: isThrottled ? instant("throttledUntilMs") : undefined,
    throttledSinceMs: isThrottled ? instant("throttledSinceMs") : undefined,
    inFlight,
  };
}

/** The keys of a limiter, in the order of lua/include/limiter.lua. */
function limiterKeys({ key }: Store, service: string): readonly [string, string, string, string] {
  return [
    key("limiter", service),
    key("limiter-exchanges", service),
    key("limiter-sent", service),
    key("limiter-cool-downs", service),
  ];
}

/**
 * Turns a rate into a count in any window: above 1 over about a second, so that a short burst is
 * fine; below 1, one request each 1/rate seconds.
 */
export function toRate(requestsPerSecond: number | undefined): { count: number; windowUs: number } {
  if (requestsPerSecond === undefined) return { count: 0, windowUs: 0 };
  const count = Math.max(1, Math.floor(requestsPerSecond));
  return { count, windowUs: Math.ceil((count / requestsPerSecond) * 1_000_000) };
}

function asAnswer<const Word extends string>(...words: readonly Word[]): (answer: unknown) => LimiterAnswer<Word> {
  return (answer) => {
    const [word, ...numbers] = asList(answer);
    const [waitMs = 0, throttleMs = 0, probeMs = 0, failures = 0, coolDowns = 0] = numbers.map(asNumber);
    return { word: asWord(...words)(word), waitMs, view: { throttleMs, probeMs, failures, coolDowns } };
  };
}
