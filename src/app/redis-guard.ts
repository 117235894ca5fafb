// Guards against a Redis that lost data: a tick each second (is it the same Redis?), a check each
// minute (may it be trusted?). It tells scheduler and start journal whether they may go on, and the
// health server why not. Built by app.ts.
import { systemClock, withTimeLimit } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { errorText, stackOf, UsageError } from "../core/errors.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import { isRedisOutage } from "../core/redis-outage.ts";
import { announceOwner, foreignOwner, type Store } from "../store/redis.ts";
import { judgeRedis, type RedisFacts, readRedisFacts } from "../store/redis-facts.ts";
import { type RedisCheck, RedisWatch } from "../store/redis-watch.ts";

/** What the guard needs. */
export interface RedisGuardOptions {
  readonly store: Store;
  readonly log: EventLog;
  /** How often Redis is checked; default one minute. */
  readonly checkEveryMs?: number;
  /** How long starts wait for a replica when all are gone; default one minute. */
  readonly replicasGoneMs?: number;
  /** The roles of this process, written under the prefix as a sign of life. */
  readonly roles?: readonly string[];
  /** The owner of this process's policies. Without it the guard does not look for other owners. */
  readonly owner?: string | undefined;
}

const tickEveryMs = 1_000;
const checkEveryMsDefault = 60_000;
const replicasGoneMsDefault = 60_000;
const answerWithinMs = 3_000;
const leaveWithinMs = 500;
/** Without a tick for this long, Redis counts as unreachable. */
const silenceMsMax = 5_000;
const noAnswer = "no answer yet";
/** A clock that differs from that of Redis by more is told of. */
export const skewMsMax = 1_000;
/** A clock that moved by more than this between two checks was set, not slewed. */
const clockSetMsMin = 100;

/** How far the wall clock is before the monotonic one. */
function wallLeadMs(): number {
  return systemClock.nowMs() - systemClock.monotonicMs();
}

/** Watches one Redis for this process. */
export class RedisGuard implements Component {
  readonly name = "redis guard";
  /** The start journal asks this watch before it sends. */
  readonly watch: RedisWatch;
  readonly #options: RedisGuardOptions;
  #facts: RedisFacts | undefined;
  #problems: readonly string[] = ["not checked yet"];
  #loggedProblem = "";
  #loggedWarning = "";
  #skewed = false;
  #tickedAtMs = Number.NEGATIVE_INFINITY;
  #failure = noAnswer;
  /** Since when a master that had replicas has had none; undefined otherwise or when not known. */
  #replicasGoneAtMs: number | undefined;
  /** True until the first check after a switch: the facts are of the former Redis. */
  #isNew = false;
  /**
   * Until then replicas are looked for each second: the master had some and has none, and after a
   * failover the old master comes back soon.
   */
  #awaitsReplicasUntilMs = Number.NEGATIVE_INFINITY;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  /** The wall clock's lead at the last check: it moves when the clock is set, or in a suspend. */
  #wallLeadMs = 0;
  #busy: Promise<void> | undefined;
  #isStopped = false;
  /** Which other owners were seen, and why they block this process; empty when none do. */
  #foreign = "";
  /** Whether Redis has named the holder of the prefix; without an owner it is not asked. */
  #isHolderKnown: boolean;
  #others: readonly string[] = [];
  #changes = 0;
  #endTicks: (() => void) | undefined;
  #onAnother: (lastSeenMs: number) => Promise<void> = async () => {};

  constructor(options: RedisGuardOptions) {
    this.#options = options;
    this.#isHolderKnown = options.owner === undefined;
    const limitedLog = createRateLimitedLog(options.log, systemClock, "");
    const notReplicated = (replicas: { readonly wanted: number; readonly reached: number }) => {
      limitedLog.warn("redis.not-replicated", replicas);
      // The replica may be gone for ever: the next check counts replicas anew.
      this.#checkedAtMs = Number.NEGATIVE_INFINITY;
    };
    this.watch = new RedisWatch(options.store, { notReplicated, roles: options.roles ?? [] });
  }

  /**
   * Sets the one listener for another Redis that was not emptied: its newest writes may be missing.
   * `lastSeenMs`: the last tick before, by the monotonic clock. It never throws.
   */
  whenAnotherRedis(listener: (lastSeenMs: number) => Promise<void>): void {
    this.#onAnother = listener;
  }

  /** Whether the scheduler may plan and workers may send. */
  isSafe(): boolean {
    return this.watch.mayStart;
  }

  /** Whether Redis answered within the last five seconds. */
  isUp(): boolean {
    return systemClock.monotonicMs() - this.#tickedAtMs <= silenceMsMax;
  }

  /** How often Redis was found to be another one, or to have lost keys. */
  get changes(): number {
    return this.#changes;
  }

  /** What Redis reported at the last check; undefined before the first. */
  get facts(): RedisFacts | undefined {
    return this.#facts;
  }

  /** How far this machine's clock is ahead of Redis's; 0 before the first check. */
  get clockAheadMs(): number {
    return this.#facts?.clockAheadMs ?? 0;
  }

  /** Why Redis keeps this process from being ready; empty when it does not. */
  reasons(): string[] {
    if (!this.isUp()) return [`Redis has not done what it should for 5 s: ${this.#failure}`];
    return [...this.#problems];
  }

  /** Whether another owner holds the prefix, or may: then the tasks here are not this process's. */
  get mayBeForeign(): boolean {
    return !this.#isHolderKnown || this.#foreign !== "";
  }

  /** How many other owners have processes under this prefix. */
  get foreignOwners(): number {
    return this.#others.length;
  }

  /** @throws UsageError when another owner uses the prefix: this process would take its tasks. */
  async start(): Promise<void> {
    await this.#tickOnce();
    if (this.#isStopped) return;
    if (this.#foreign !== "") throw new UsageError(this.#foreign);
    this.#endTicks = systemClock.every(tickEveryMs, () => void this.#tickOnce());
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#endTicks?.();
    // If Redis is gone, the next process must not take this for an orderly end.
    const leaving = (this.#busy ?? Promise.resolve()).then(() => this.watch.leave());
    await withTimeLimit(leaving, leaveWithinMs, () => new Error("no answer")).catch(() => {});
    leaving.catch(() => {});
  }

  /** Runs one tick at a time. `stop` waits for it, so none follows its farewell. */
  #tickOnce(): Promise<void> {
    this.#busy ??= this.#tick().finally(() => {
      this.#busy = undefined;
    });
    return this.#busy;
  }

  /** Never throws: a failed tick is repeated a second later. */
  async #tick(): Promise<void> {
    try {
      const dueAtMs = this.#checkedAtMs + (this.#options.checkEveryMs ?? checkEveryMsDefault);
      await this.#askOwners();
      const isClockSet = Math.abs(wallLeadMs() - this.#wallLeadMs) > clockSetMsMin;
      const nowMs = systemClock.monotonicMs();
      // Starts wait until a check finds that the replicas are gone for ever.
      const isPatient = this.#facts?.replicas === 0 && this.watch.needsReplica;
      const isSoon = this.#problems.length > 0 || isPatient || nowMs < this.#awaitsReplicasUntilMs || isClockSet;
      if (isSoon || nowMs >= dueAtMs) await this.#check();
      // By the deadline of the store: the watch takes in a late answer, whose news would be lost.
      const tick = await this.watch.check();
      const lastSeenMs = this.#tickedAtMs;
      this.#tickedAtMs = systemClock.monotonicMs();
      this.#failure = noAnswer;
      if (tick.isOtherTerm && tick.losses.every(({ kind }) => kind !== "flushed")) void this.#onAnother(lastSeenMs);
      if (tick.beganTerm || tick.isOtherTerm || tick.losses.length > 0) this.#changes += 1;
      // Logged before the next steps, which may fail.
      this.#logTick(tick);
      if (tick.beganTerm || tick.isOtherTerm) {
        // Another Redis may be configured differently. Until its first check succeeds, the former
        // rules hold.
        this.#isNew = true;
        this.#checkedAtMs = Number.NEGATIVE_INFINITY;
        await this.#check();
      }
    } catch (error) {
      const failure = errorText(error);
      // Such as a key of the wrong type: nothing starts until an operator repairs it, and it is no
      // outage.
      const isBug = error instanceof Error && error.name === "ReplyError" && !isRedisOutage(error);
      if (isBug && failure !== this.#failure) this.#options.log.error("bug.caught", { stack: stackOf(error) });
      this.#failure = failure;
    }
  }

  /** The first owner goes on and warns of the other. Every later owner plans and starts nothing. */
  async #askOwners(): Promise<void> {
    const { owner, store, log } = this.#options;
    if (owner === undefined) return;
    const { holder = owner, others } = await this.#answer(announceOwner(store, owner));
    const foreign = holder === owner ? "" : foreignOwner([holder, owner]);
    this.#isHolderKnown = true;
    const known = this.#others.join();
    this.#others = [holder, ...others].filter((one) => one !== owner);
    if (this.#others.length > 0 && this.#others.join() !== known)
      log.error("owner.foreign", { owner, holder, others: this.#others.join(", ") });
    if (foreign === this.#foreign) return;
    this.#foreign = foreign;
    this.#checkedAtMs = Number.NEGATIVE_INFINITY;
  }

  async #check(): Promise<void> {
    const leadMs = wallLeadMs();
    const facts = await this.#answer(readRedisFacts(this.#options.store));
    this.#wallLeadMs = leadMs;
    const isFirst = this.#facts === undefined || this.#isNew;
    const goneAtMs = await this.#readReplicasGone(facts, isFirst);
    this.#checkedAtMs = systemClock.monotonicMs();
    if (facts.replicas === 0 && (this.#facts?.replicas ?? 0) > 0)
      this.#awaitsReplicasUntilMs = this.#checkedAtMs + this.#replicasGoneMs;
    this.#facts = facts;
    const { problems: faults, warnings } = judgeRedis(facts);
    const problems = this.#foreign === "" ? faults : [...faults, this.#foreign];
    this.#problems = problems;
    if (facts.replicas > 0 || isFirst) this.#replicasGoneAtMs = goneAtMs;
    const hadReplicas = isFirst ? goneAtMs !== undefined : this.watch.needsReplica;
    this.watch.needsReplica = facts.replicas > 0 || (hadReplicas && this.#mayBeLeft());
    this.#isNew = false;
    this.watch.mayStart = problems.length === 0;
    this.#logCheck(facts, problems, warnings);
  }

  /** Since when this master has had no replicas, as other processes noted it. */
  async #readReplicasGone({ replicas, role }: RedisFacts, isFirst: boolean): Promise<number | undefined> {
    if (role !== "master") return undefined;
    // When Redis is full, the note cannot be written. The check goes on without it.
    if (replicas > 0) await this.#answer(this.watch.noteReplicas()).catch(() => {});
    if (replicas > 0 || !isFirst) return undefined;
    const agoMs = await this.#answer(this.watch.replicasNotedMsAgo());
    if (agoMs === undefined) return undefined;
    // A note may be up to one check old.
    return systemClock.monotonicMs() - Math.max(0, agoMs - (this.#options.checkEveryMs ?? checkEveryMsDefault));
  }

  get #replicasGoneMs(): number {
    return this.#options.replicasGoneMs ?? replicasGoneMsDefault;
  }

  /** Whether a failover may have replaced this master: then both masters could start. */
  #mayBeLeft(): boolean {
    const nowMs = systemClock.monotonicMs();
    this.#replicasGoneAtMs ??= nowMs;
    const isPatient = nowMs - this.#replicasGoneAtMs < this.#replicasGoneMs;
    // After a while the replicas count as gone for ever.
    if (!isPatient) this.#replicasGoneAtMs = undefined;
    return isPatient;
  }

  #logCheck(facts: RedisFacts, problems: readonly string[], warnings: readonly string[]): void {
    const { log } = this.#options;
    const problem = problems.join("; ");
    if (problem !== this.#loggedProblem && problem !== "") log.error("redis.unsafe", { problem });
    if (problem === "" && this.#loggedProblem !== "") log.info("redis.safe");
    this.#loggedProblem = problem;
    const warning = warnings.join("; ");
    if (warning !== this.#loggedWarning && warning !== "") log.warn("redis.warning", { advice: warning });
    this.#loggedWarning = warning;
    const isSkewed = Math.abs(facts.clockAheadMs) > skewMsMax;
    if (isSkewed && !this.#skewed) log.warn("redis.clock-skewed", { aheadMs: facts.clockAheadMs });
    this.#skewed = isSkewed;
  }

  #logTick({ beganTerm, losses }: RedisCheck): void {
    const { log } = this.#options;
    if (beganTerm) log.warn("redis.changed");
    for (const { kind, fromMs, untilMs } of losses) {
      const from = fromMs === 0 ? null : new Date(fromMs).toISOString();
      const until = new Date(untilMs).toISOString();
      if (kind === "writes") log.warn("redis.writes-lost", { from, until });
      else log.error("redis.loss-detected", { kind, from, until });
    }
  }

  #answer<T>(promise: Promise<T>): Promise<T> {
    return withTimeLimit(promise, answerWithinMs, () => new Error(`no answer within ${answerWithinMs / 1_000} s`));
  }
}
