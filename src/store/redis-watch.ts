// Compares what this process remembers with what Redis has. app/redis-guard.ts calls `check` in
// each tick, once a second (its own #check, once a minute, judges Redis's settings); the start
// journal asks before each start; scheduler, chains and tasks/ ask what was lost.

import { Batcher } from "../core/batcher.ts";
import { systemClock } from "../core/clock.ts";
import type { Loss } from "../model/slot-record.ts";
import { processName, type Store } from "./redis.ts";
import { asList, asNumber, asOptional, asText, asTexts, asWord, batchesOf, createScript, loadLua } from "./script.ts";

const checkScript = createScript("watch/check", (answer) => {
  const [term, stamp, intents, begun, changed, losses] = asList(answer);
  const numbers = { stamp: asNumber(stamp), intents: asNumber(intents), begun: asNumber(begun) };
  const beganTerm = asWord("changed", "")(changed) === "changed";
  return { term: asText(term), ...numbers, beganTerm, losses: [...batchesOf(asTexts(losses), 3)].map(toLoss) };
});
const fenceScript = createScript("watch/fence", asWord("undecided", "loss", ""));
const lossesScript = createScript("watch/losses", (answer) =>
  answer === "undecided" ? undefined : asTexts(answer).map((loss) => toSpan(loss.split(":"))),
);
const replicasScript = createScript("watch/replicas", asOptional(asNumber));
const replicatedLua = loadLua("watch/replicated");

/** The result of a check. Instants are milliseconds UTC by Redis. */
export interface RedisCheck {
  /** This check began a new term (watch/check.lua); false where Redis was empty. */
  readonly beganTerm: boolean;
  /** The term is not that of this process's last check; false at its first one. */
  readonly isOtherTerm: boolean;
  /**
   * Spans of lost writes. `flushed`: Redis is empty. `went-back`: it forgot what this process
   * remembers. `unwitnessed`: it restarted, and a process that knew its memory is gone. `writes`:
   * it surely forgot no start; in the others, a task that could have started is not started.
   */
  readonly losses: readonly (Loss & { readonly kind: string })[];
}

/** Margin on both sides of a gap in Redis's memory. */
const lossWindowMs = 5_000;
/** How long a request waits until a Redis replica has its intent. */
const replicaWithinMs = 1_000;
/** Longer than Sentinels need to point the other replicas to the one that they promoted. */
const replicaPauseMs = 2_000;
/** How long the replicas that answered are enough: one that lags must not block all starts. */
const fewerReplicasMs = 60_000;

interface WatchOptions {
  readonly notReplicated?: (replicas: { readonly wanted: number; readonly reached: number }) => void;
  readonly roles?: readonly string[];
}

/** The watch of one process. */
export class RedisWatch {
  readonly #store: Store;
  readonly #notReplicated: (replicas: { readonly wanted: number; readonly reached: number }) => void;
  readonly #process: string;
  /** What this process remembers of the term and of three growing numbers (watch/check.lua). */
  #term = "";
  #stamp = 0;
  #intents = 0;
  #processesBegun = 0;
  /** Whether a replica had every intent on which this process has relied since its last check. */
  #isReplicated = false;
  #pausedUntilMs = 0;
  /** A WAIT blocks this connection for all commands: so one at a time. */
  readonly #replicaWaits = new Batcher<number>((intents) => this.#awaitReplicas(Math.max(...intents)));
  /** Replicas in step at the last WAIT, and how many are enough for a while. */
  #replicas = 0;
  #fewerEnough = { replicas: 0, untilMs: 0 };
  /** Whether starts are allowed; set by the guard. */
  mayStart = false;
  /** Whether an intent must reach the replicas before its request goes out. Set by the guard. */
  needsReplica = false;

  /** `notReplicated` hears of each intent that too few replicas had in time. */
  constructor(store: Store, { notReplicated, roles = [] }: WatchOptions = {}) {
    this.#store = store;
    this.#notReplicated = notReplicated ?? (() => {});
    this.#process = processName(roles);
  }

  /**
   * Checks whether Redis is the one that it was, and moves the stamp: a number that only grows, so
   * that a smaller one shows lost writes.
   */
  async check(): Promise<RedisCheck> {
    const { key } = this.#store;
    const answer = await checkScript(
      this.#store,
      [key("watch"), key("processes"), key("losses")],
      [
        this.#process,
        this.#term,
        this.#stamp,
        this.#intents,
        this.#processesBegun,
        lossWindowMs,
        this.#isReplicated ? 1 : 0,
      ],
    );
    const { term, stamp, intents, begun, beganTerm, losses } = answer;
    const isOtherTerm = this.#term !== "" && this.#term !== term;
    this.#term = term;
    this.#stamp = stamp;
    this.#processesBegun = begun;
    // With replicas, the count may hold intents that no replica has: each process remembers its
    // own.
    if (!this.needsReplica) this.#intents = intents;
    else if (isOtherTerm) this.#intents = Math.min(this.#intents, intents);
    this.#isReplicated = this.needsReplica;
    if (isOtherTerm) [this.#replicas, this.#fewerEnough] = [0, { replicas: 0, untilMs: 0 }];
    return { beganTerm, isOtherTerm, losses };
  }

  /** Notes that this process ends with nothing under way: a later loss cannot touch its starts. */
  async leave(): Promise<void> {
    await this.#store.redis.zrem(this.#store.key("processes"), this.#process);
  }

  /** The name of this process under the prefix. */
  get process(): string {
    return this.#process;
  }

  /** The term of the last check, for the scripts that permit a request. */
  get term(): string {
    return this.#term;
  }

  /**
   * Whether Redis may have forgotten a start in this span: `loss`, it may; `undecided`, unknown as
   * yet. Without it, a start that went out could be recorded as not sent.
   */
  async checkFence(span: {
    readonly slotMs: number;
    readonly startByMs: number;
  }): Promise<"undecided" | "loss" | undefined> {
    if (!this.mayAsk()) return "undecided";
    const { key } = this.#store;
    const args = [this.#term, span.slotMs, span.startByMs];
    const answer = await fenceScript(this.#store, [key("watch"), key("losses")], args);
    return answer === "" ? undefined : answer;
  }

  /**
   * What Redis may have lost since an instant, starts included; undefined while it is not known as
   * yet. A slot that comes due again after such a loss may have started.
   */
  async lossesSince(sinceMs: number): Promise<readonly Loss[] | undefined> {
    const { key } = this.#store;
    return lossesScript(this.#store, [key("watch"), key("losses")], [this.#term, sinceMs]);
  }

  /** Whether a request may ask for permission now. */
  mayAsk(): boolean {
    return this.mayStart && systemClock.monotonicMs() >= this.#pausedUntilMs;
  }

  /** Notes for later processes that this Redis has replicas. */
  async noteReplicas(): Promise<void> {
    await replicasScript(this.#store, [this.#store.key("watch")], [1]);
  }

  /** How long ago a process noted that this Redis has replicas; undefined: none since its start. */
  async replicasNotedMsAgo(): Promise<number | undefined> {
    return replicasScript(this.#store, [this.#store.key("watch")], [0]);
  }

  /** Remembers the count of intents, with the one on which a request relies now. */
  noteIntents(count: number): void {
    this.#intents = Math.max(this.#intents, count);
    if (!this.needsReplica) this.#isReplicated = false;
  }

  /**
   * Waits until the replicas have this process's intent. False: one lacks it, or Redis has
   * forgotten it; then nothing is asked for two seconds, and for a minute the other replicas are
   * enough.
   */
  async reachReplicas(intents: number): Promise<boolean> {
    if (!this.needsReplica) return true;
    return (await this.#replicaWaits.add(intents)) === true;
  }

  async #awaitReplicas(intents: number): Promise<boolean> {
    // It was refused to an earlier caller in the meantime.
    if (!this.mayAsk()) return false;
    const fewerAreEnough = systemClock.monotonicMs() < this.#fewerEnough.untilMs;
    let wanted = Math.max(1, fewerAreEnough ? this.#fewerEnough.replicas : this.#replicas);
    let { kept, inStep, reached } = await this.#askReplicas(wanted);
    if (!fewerAreEnough && reached >= wanted && inStep > reached) {
      // New replicas are in step.
      wanted = inStep;
      ({ kept, inStep, reached } = await this.#askReplicas(wanted));
    }
    this.#replicas = inStep;
    if (kept >= intents && reached >= wanted) return true;
    this.#pausedUntilMs = systemClock.monotonicMs() + replicaPauseMs;
    if (reached >= 1) this.#fewerEnough = { replicas: reached, untilMs: this.#pausedUntilMs + fewerReplicasMs };
    this.#notReplicated({ wanted, reached });
    return false;
  }

  async #askReplicas(replicas: number): Promise<{ kept: number; inStep: number; reached: number }> {
    const { redis, key } = this.#store;
    // One pipeline: a new connection may lead to a Redis whose replicas lack the intent.
    const waits = redis.pipeline().eval(replicatedLua, 1, key("watch")).wait(replicas, replicaWithinMs);
    const answers = (await waits.exec()) ?? [];
    for (const [error] of answers) if (error !== null) throw error;
    const [counts, reached] = answers.map(([, answer]) => answer);
    const [kept = 0, inStep = 0] = Array.isArray(counts) ? counts.map(Number) : [];
    return { kept, inStep, reached: Number(reached) };
  }
}

function toLoss([fromMs = "", untilMs = "", kind = ""]: readonly string[]): Loss & { readonly kind: string } {
  return { ...toSpan([fromMs, untilMs]), kind };
}

function toSpan([fromMs, untilMs]: readonly string[]): Loss {
  return { fromMs: Number(fromMs), untilMs: Number(untilMs) };
}
