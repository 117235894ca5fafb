// The gate of one service, the same for all replicas: throttle, breaker, requests at a time and requests a second, in Redis.
// Asked by the client before every exchange (service/call.ts) and by work/ before a start. Waits for nothing, sends nothing.
//
//   closed ──N failures in a row──▶ open ──one read a period: alive──▶ closed
//                                    └──it fails──▶ open for another period
//
// Where all failures are about one subject (gate-scripts.ts), a read about another one need not wait for the period, and what fails again after
// the breaker closed is left alone by itself: one list or one sync job that always fails does not hold up the rest.
//
// A service without limits that is well costs at most one look each fifth of a second, however many requests go out; one with
// limits costs two commands a request (enter, leave), of which a plain start makes one together with its permission (`entrance`).
import { randomUUID } from "node:crypto";
import type { Clock } from "../core/clock.ts";
import type { EventLog } from "../core/event-log.ts";
import {
  type ExchangeEnding,
  type Gate,
  type GateRequest,
  type Health,
  type HeldBy,
  type Hold,
  healthOf,
  isOwnLimit,
  type Pass,
} from "../core/gate.ts";
import { Gathered } from "../core/gathered.ts";
import { toRate } from "./gate-rate.ts";
import { enterScript, leaveQuietlyScript, leaveScript, lookScript } from "./gate-scripts.ts";
import type { Store } from "./redis.ts";

/** What a gate keeps. Undefined limits do not hold. */
export interface GateLimits {
  readonly service: string;
  /** Requests at a time, all replicas together. */
  readonly concurrencyMax: number | undefined;
  /** Requests a second, all replicas together; may be far below 1. */
  readonly requestsPerSecond: number | undefined;
  /** Failures in a row that open the breaker. */
  readonly failuresMax: number;
  /** How often a service whose breaker is open is asked again. */
  readonly probeEveryMs: number;
  /** A pass that nobody gave back for this long was held by a process that died: longer than any exchange takes. */
  readonly leaseMs: number;
}

/** What a gate is made of. `random`: 0 up to, but not including, 1. */
export interface GateParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: EventLog;
  readonly random?: () => number;
}

interface View {
  readonly seenAtMs: number;
  readonly throttleMs: number;
  /** Until the next probe, 0 where that is only known for each subject; -1 while the breaker is closed. */
  readonly probeMs: number;
  readonly failures: number;
  /** What is watched since it failed; not read for a while where it fails again. */
  readonly rests: number;
}

/** An exchange that was let in. */
interface Visit {
  readonly id: string;
  readonly subject: string;
  readonly isProbe: boolean;
}

/** A way through the gate as a part of another step of Redis, which includes `enterLua`: its keys, what it wants, and how its answer is read. */
export interface Entrance {
  readonly keys: readonly string[];
  readonly want: readonly (string | number)[];
  readonly read: (answer: unknown) => Pass | Hold;
}

/** How long what one replica has seen is good: for so long another replica's throttle may be unknown here. */
const viewForMs = 200;
/** A 429 without a Retry-After, and the least wait: without it, "at once" would be a storm. */
const throttleMsDefault = 5_000;
const throttleMsLeast = 1_000;
/** Whoever has waited this long for its turn asks again, whatever the queue. */
const turnMsMax = 60_000;
/** How long to wait when Redis does not say whether there is a place. */
const blindWaitMs = 1_000;
const heldByWords: readonly HeldBy[] = ["throttle", "breaker", "concurrency", "rate"];
const rememberMs = 86_400_000;
const jitterMsMax = 30_000;
const turnJitterMsMax = 50;

/** The gate of one service. */
export class ServiceGate implements Gate {
  readonly #limits: GateLimits;
  readonly #parts: GateParts;
  readonly #keys: readonly string[];
  readonly #rate: { count: number; windowUs: number };
  readonly #quietly: Gathered<string>;
  #view: View | undefined;
  #looking: Promise<View> | undefined;

  constructor(limits: GateLimits, parts: GateParts) {
    this.#limits = limits;
    this.#parts = parts;
    this.#keys = gateKeys(parts.store, limits.service);
    this.#rate = toRate(limits.requestsPerSecond);
    this.#quietly = new Gathered(async (passes) => {
      this.#take(await leaveQuietlyScript(parts.store, this.#keys, [rememberMs, limits.leaseMs, ...passes]));
    });
  }

  async enter({ isRead, subject = "" }: GateRequest): Promise<Pass | Hold> {
    const view = await this.#seen();
    const hold = view === undefined ? undefined : this.#holdOf(view);
    if (hold !== undefined && (hold.waitMs > 0 || !isRead)) return this.#jittered(hold);
    const isWatched = isRead && (view?.rests ?? 0) > 0;
    if (hold === undefined && !isWatched && !this.#isLimited()) return this.#pass({ id: "", subject, isProbe: false });
    const { keys, want, read } = this.#entrance({ isRead, subject });
    try {
      return read(await enterScript(this.#parts.store, keys, want));
    } catch {
      // Nobody knows whether there is a place. Nothing has been sent, and that must stay certain.
      return this.#jittered({ heldBy: this.#rate.count > 0 ? "rate" : "concurrency", waitMs: blindWaitMs });
    }
  }

  /** The way of a start through this gate as a part of another step; undefined where there are no limits, so that `enter` asks nobody. */
  entrance(subject = ""): Entrance | undefined {
    return this.#isLimited() ? this.#entrance({ isRead: false, subject }) : undefined;
  }

  /** What holds everything to this service back right now; a breaker whose probe is due waits 0 ms. Limits are not looked at: only a request can know. */
  async held(): Promise<Hold | undefined> {
    const view = await this.#seen();
    const hold = view === undefined ? undefined : this.#holdOf(view);
    return hold === undefined || hold.waitMs === 0 ? hold : this.#jittered(hold);
  }

  #entrance({ isRead, subject }: { readonly isRead: boolean; readonly subject: string }): Entrance {
    const id = randomUUID();
    const { concurrencyMax = 0, leaseMs, probeEveryMs } = this.#limits;
    const { count, windowUs } = this.#rate;
    const want = [id, isRead ? 1 : 0, concurrencyMax, leaseMs, count, windowUs, probeEveryMs, turnMsMax, subject];
    const read = (answer: unknown) => {
      const { word, waitMs } = this.#take(answer);
      const heldBy = heldByWords.find((one) => one === word);
      return heldBy === undefined
        ? this.#pass({ id, subject, isProbe: word === "probe" })
        : this.#jittered({ heldBy, waitMs });
    };
    return { keys: this.#keys, want, read };
  }

  #isLimited(): boolean {
    return this.#limits.concurrencyMax !== undefined || this.#limits.requestsPerSecond !== undefined;
  }

  #pass(visit: Visit): Pass {
    let isLeft = false;
    const leave = async (ending: ExchangeEnding) => {
      if (isLeft) return;
      isLeft = true;
      await this.#leave(visit, ending);
    };
    return { leave, isProbe: visit.isProbe };
  }

  async #leave({ id, subject, isProbe }: Visit, { kind, retryAfterMs }: ExchangeEnding): Promise<void> {
    const { service, failuresMax, probeEveryMs, leaseMs } = this.#limits;
    const health: Health = kind === undefined ? "alive" : healthOf[kind];
    const throttleMs = kind === "throttled" ? Math.max(retryAfterMs ?? throttleMsDefault, throttleMsLeast) : "";
    const isNews =
      health === "failing" ||
      throttleMs !== "" ||
      isProbe ||
      (this.#view?.failures ?? 0) + (this.#view?.rests ?? 0) > 0;
    if (this.#limits.concurrencyMax === undefined && !isNews) return;
    const told = [id, health, throttleMs, isProbe ? 1 : 0, failuresMax, probeEveryMs, kind ?? "", rememberMs, leaseMs];
    const args = [...told, subject];
    try {
      if (!isNews && health === "alive") {
        await this.#quietly.add(id);
        return;
      }
      const { word } = this.#take(await leaveScript(this.#parts.store, this.#keys, args));
      const { log } = this.#parts;
      if (word === "throttled") log.warn("service.throttled", { service, forMs: Number(throttleMs) });
      if (word === "opened") log.error("breaker.opened", { service, kind, failures: failuresMax, probeEveryMs });
      if (word === "closed") log.info("breaker.closed", { service });
    } catch {
      // The exchange is over, and its answer matters more than this note: the lease ends by itself.
      this.#view = undefined;
    }
  }

  /** What is known and fresh enough; without Redis, nothing: whether to send is then decided by the limits alone. */
  async #seen(): Promise<View | undefined> {
    const view = this.#view;
    if (view !== undefined && this.#ageMs(view) < viewForMs) return view;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking.catch(() => this.#view);
  }

  async #look(): Promise<View> {
    return this.#take(await lookScript(this.#parts.store, this.#keys, [])).view;
  }

  #take(answer: unknown): { word: string; waitMs: number; view: View } {
    const [word, wait, throttle, probe, failures, rests] = Array.isArray(answer) ? answer : [];
    const view = {
      seenAtMs: this.#parts.clock.monotonicMs(),
      throttleMs: Number(throttle),
      probeMs: Number(probe),
      failures: Number(failures),
      rests: Number(rests),
    };
    this.#view = view;
    return { word: String(word), waitMs: Number(wait), view };
  }

  #holdOf(view: View): Hold | undefined {
    const ageMs = this.#ageMs(view);
    if (view.throttleMs > ageMs) return { heldBy: "throttle", waitMs: Math.ceil(view.throttleMs - ageMs) };
    if (view.probeMs >= 0) return { heldBy: "breaker", waitMs: Math.max(Math.ceil(view.probeMs - ageMs), 0) };
    return undefined;
  }

  #ageMs(view: View): number {
    return this.#parts.clock.monotonicMs() - view.seenAtMs;
  }

  /** Never below what was asked for; a little above, so that not all wake at once. */
  #jittered({ heldBy, waitMs }: Hold): Hold {
    const share = heldBy === "throttle" ? 0.05 : 0.25;
    // Turns lie apart by themselves, and who comes late leaves its own unused.
    const mostMs = isOwnLimit(heldBy) ? turnJitterMsMax : jitterMsMax;
    const rangeMs = Math.min(mostMs, Math.max(share * waitMs, 20));
    return { heldBy, waitMs: Math.ceil(waitMs + rangeMs * (this.#parts.random ?? Math.random)()) };
  }
}

/** The names of a gate's keys: what is known, who is inside, when requests went out, what is watched since it failed. */
export function gateKeys({ key }: Store, service: string): readonly [string, string, string, string] {
  return [key("gate", service), key("gate-inside", service), key("gate-sent", service), key("gate-rests", service)];
}
