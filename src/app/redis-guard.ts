// The guard over Redis: once a second a beat (is it the one it was?), once a minute a check (may it be trusted?). Tells the log each
// change once, tells scheduler and start journal whether they may go on, and the health server why not. Built by app.ts.
import { systemClock, withDeadline } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { errorText } from "../core/errors.ts";
import type { EventLog } from "../core/event-log.ts";
import { createSparingLog } from "../core/sparing-log.ts";
import type { Store } from "../store/redis.ts";
import { judgeRedis, type RedisFacts, readRedisFacts } from "../store/redis-facts.ts";
import { type Beat, RedisWatch } from "../store/redis-watch.ts";

/** What the guard is made of. */
export interface RedisGuardOptions {
  readonly store: Store;
  readonly log: EventLog;
  /** How often Redis is checked; once a minute unless set. */
  readonly checkEveryMs?: number;
  /** How long starts wait for a replica when all are gone; a minute unless set. */
  readonly replicasGoneMs?: number;
  /** What this process does, so that others can see that it is alive. */
  readonly roles?: readonly string[];
}

const beatEveryMs = 1_000;
const checkEveryMsDefault = 60_000;
const replicasGoneMsDefault = 60_000;
const answerWithinMs = 3_000;
const leaveWithinMs = 500;
/** Without a beat for this long, Redis counts as out of reach. */
const silenceMsMax = 5_000;
const skewMsMax = 1_000;

/** The guard. */
export class RedisGuard implements Component {
  readonly name = "redis guard";
  /** What the start journal asks. */
  readonly watch: RedisWatch;
  readonly #options: RedisGuardOptions;
  #facts: RedisFacts | undefined;
  #problems: readonly string[] = ["not checked yet"];
  #told = "";
  #warned = "";
  #skewed = false;
  #beatenAtMs = Number.NEGATIVE_INFINITY;
  #failure = "no answer yet";
  /** Since when the master that had replicas has none; undefined while it has some, or is not known to have had any. */
  #replicasGoneAtMs: number | undefined;
  /** It was not checked yet since it became another one: what the one before had says nothing of this one. */
  #isNew = false;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #busy: Promise<void> | undefined;
  #isStopped = false;
  #losses = 0;
  #endBeats: (() => void) | undefined;
  #onAnother: (lastSeenMs: number) => Promise<void> = async () => {};

  constructor(options: RedisGuardOptions) {
    this.#options = options;
    const sparing = createSparingLog(options.log, systemClock, "");
    const notReplicated = () => {
      sparing.warn("redis.not-replicated");
      // Perhaps the replica is gone for good: the next look counts them anew.
      this.#checkedAtMs = Number.NEGATIVE_INFINITY;
    };
    this.watch = new RedisWatch(options.store, { notReplicated, roles: options.roles ?? [] });
  }

  /**
   * Whom to tell, without waiting for them, when Redis is another one than this process knew and was not emptied: it may lack its newest
   * writes. `lastSeenMs`: of the last beat before, by the monotonic clock. One listener; it never throws.
   */
  whenAnother(listener: (lastSeenMs: number) => Promise<void>): void {
    this.#onAnother = listener;
  }

  /** Whether Redis is such that slots may be planned and requests may be sent. */
  isSafe(): boolean {
    return this.watch.isOpen;
  }

  /** Whether Redis did what it should within the last five seconds. */
  isUp(): boolean {
    return systemClock.monotonicMs() - this.#beatenAtMs <= silenceMsMax;
  }

  /** How often Redis was found to be another one, or to have forgotten something. */
  get losses(): number {
    return this.#losses;
  }

  /** What Redis said of itself at the last check; undefined before the first. */
  get facts(): RedisFacts | undefined {
    return this.#facts;
  }

  /** Why this process is not ready, as far as Redis goes; empty when it is. */
  reasons(): string[] {
    if (!this.isUp()) return [`Redis has not done what it should for 5 s: ${this.#failure}`];
    return [...this.#problems];
  }

  async start(): Promise<void> {
    await this.#lookOnce();
    if (this.#isStopped) return;
    this.#endBeats = systemClock.every(beatEveryMs, () => void this.#lookOnce());
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#endBeats?.();
    // Redis may be gone: then it was no orderly end either, and whoever comes next must think so.
    const leaving = (this.#busy ?? Promise.resolve()).then(() => this.watch.leave());
    await withDeadline(leaving, leaveWithinMs, () => new Error("no answer")).catch(() => {});
    leaving.catch(() => {});
  }

  /** One at a time; `stop` waits for it, so that no beat comes after the process has said that it leaves. */
  #lookOnce(): Promise<void> {
    this.#busy ??= this.#look().finally(() => {
      this.#busy = undefined;
    });
    return this.#busy;
  }

  /** Never throws: what does not work now is looked at again a second later. */
  async #look(): Promise<void> {
    try {
      const dueAtMs = this.#checkedAtMs + (this.#options.checkEveryMs ?? checkEveryMsDefault);
      if (this.#problems.length > 0 || systemClock.monotonicMs() >= dueAtMs) await this.#check();
      const beat = await this.#answer(this.watch.beat());
      const lastSeenMs = this.#beatenAtMs;
      this.#beatenAtMs = systemClock.monotonicMs();
      if (beat.isNewHere && beat.losses.every(({ kind }) => kind !== "flushed")) void this.#onAnother(lastSeenMs);
      if (beat.isAnother || beat.isNewHere || beat.losses.length > 0) this.#losses += 1;
      // Said once: what comes after it may fail.
      this.#tellBeat(beat);
      if (beat.isAnother || beat.isNewHere) {
        // Another Redis may be another kind of Redis. Until it says so, it is asked again, and needs what the one before did.
        this.#isNew = true;
        this.#checkedAtMs = Number.NEGATIVE_INFINITY;
        await this.#check();
      }
    } catch (error) {
      this.#failure = errorText(error);
    }
  }

  async #check(): Promise<void> {
    const facts = await this.#answer(readRedisFacts(this.#options.store));
    const isFirst = this.#facts === undefined || this.#isNew;
    const goneAtMs = await this.#askOfReplicas(facts, isFirst);
    this.#checkedAtMs = systemClock.monotonicMs();
    this.#facts = facts;
    const { problems, warnings } = judgeRedis(facts);
    this.#problems = problems;
    if (facts.replicas > 0 || isFirst) this.#replicasGoneAtMs = goneAtMs;
    const hadReplicas = isFirst ? goneAtMs !== undefined : this.watch.needsReplica;
    this.watch.needsReplica = facts.replicas > 0 || (hadReplicas && this.#mayBeLeft());
    this.#isNew = false;
    this.watch.isOpen = problems.length === 0;
    this.#tellCheck(facts, problems, warnings);
  }

  /**
   * Since when this master has had no replicas, as far as its other processes have noted: at its first look a process cannot know. Whoever saw them
   * last may have learned that they are gone a check later.
   */
  async #askOfReplicas({ replicas, role }: RedisFacts, isFirst: boolean): Promise<number | undefined> {
    if (role !== "master") return undefined;
    // A note that cannot be written, since Redis is full, is no reason not to go on.
    if (replicas > 0) await this.#answer(this.watch.noteReplicas()).catch(() => {});
    if (replicas > 0 || !isFirst) return undefined;
    const agoMs = await this.#answer(this.watch.replicasNotedMsAgo());
    if (agoMs === undefined) return undefined;
    return systemClock.monotonicMs() - Math.max(0, agoMs - (this.#options.checkEveryMs ?? checkEveryMsDefault));
  }

  /**
   * Whether a master that had replicas may have been left for one of them, which is the master now: then both take writes, and what
   * starts here starts there, too. Who has them no more for good is believed after a while.
   */
  #mayBeLeft(): boolean {
    const nowMs = systemClock.monotonicMs();
    this.#replicasGoneAtMs ??= nowMs;
    const isPatient = nowMs - this.#replicasGoneAtMs < (this.#options.replicasGoneMs ?? replicasGoneMsDefault);
    if (!isPatient) this.#replicasGoneAtMs = undefined;
    return isPatient;
  }

  #tellCheck(facts: RedisFacts, problems: readonly string[], warnings: readonly string[]): void {
    const { log } = this.#options;
    const problem = problems.join("; ");
    if (problem !== this.#told && problem !== "") log.error("redis.unsafe", { problem });
    if (problem === "" && this.#told !== "") log.info("redis.safe");
    this.#told = problem;
    const warning = warnings.join("; ");
    if (warning !== this.#warned && warning !== "") log.warn("redis.advised", { advice: warning });
    this.#warned = warning;
    const isSkewed = Math.abs(facts.clockAheadMs) > skewMsMax;
    if (isSkewed && !this.#skewed) log.warn("redis.clock-skewed", { aheadMs: facts.clockAheadMs });
    this.#skewed = isSkewed;
  }

  #tellBeat({ isAnother, losses }: Beat): void {
    const { log } = this.#options;
    if (isAnother) log.warn("redis.changed");
    for (const { kind, fromMs, untilMs } of losses) {
      const from = fromMs === 0 ? null : new Date(fromMs).toISOString();
      log.error("redis.loss-detected", { kind, from, until: new Date(untilMs).toISOString() });
    }
  }

  #answer<T>(promise: Promise<T>): Promise<T> {
    return withDeadline(promise, answerWithinMs, () => new Error(`no answer within ${answerWithinMs / 1_000} s`));
  }
}
