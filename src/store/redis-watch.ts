// Watches over Redis's memory: what this process remembers of it, held against what Redis has. Beaten once a second by
// app/redis-guard.ts, asked by the start journal before each request. Decides nothing about tasks.
import { randomUUID } from "node:crypto";
import { systemClock } from "../core/clock.ts";
import type { Store } from "./redis.ts";
import { beatScript } from "./watch-scripts.ts";

/** What a beat found. Instants are milliseconds UTC by Redis. */
export interface Beat {
  /** Redis is another process, or another machine, than at the last beat of anybody. */
  readonly isAnother: boolean;
  /** What was written in this interval may be lost: tasks that were due in it are not started. undefined: nothing new. */
  readonly loss: { readonly kind: string; readonly fromMs: number; readonly untilMs: number } | undefined;
}

/** What may be lost around a gap in Redis's memory, on both sides of it. Design §7: redisLossWindow. */
const lossWindowMs = 5_000;
/** How long nothing starts after Redis became another one: every process beats meanwhile, and says what it remembers. */
const holdMs = 3_000;
/** How long a request waits for a replica to have its intent. */
const replicaWithinMs = 1_000;
/** How long nothing is asked after a replica did not answer. */
const replicaPauseMs = 2_000;

/** The watch of one process. */
export class RedisWatch {
  readonly #store: Store;
  readonly #notReplicated: () => void;
  readonly #process = randomUUID();
  #stamp = 0;
  #intents = 0;
  #losses = 0;
  #pausedUntilMs = 0;
  /** Whether starts are allowed at all: false until the first check, and while Redis is unsafe. Set by the guard. */
  isOpen = false;
  /** Whether an intent must have reached a replica before its request goes out. Set by the guard. */
  needsReplica = false;

  /** `notReplicated` is told of each intent that no replica had in time. */
  constructor(store: Store, notReplicated: () => void = () => {}) {
    this.#store = store;
    this.#notReplicated = notReplicated;
  }

  /** Looks whether Redis is the one it was, and moves the stamp. */
  async beat(): Promise<Beat> {
    const { key } = this.#store;
    const answer = await beatScript(
      this.#store,
      [key("watch"), key("processes"), key("losses")],
      [this.#process, this.#stamp, this.#intents, this.#losses, lossWindowMs, holdMs],
    );
    const [stamp = "", intents = "", losses = "", changed, from = "", until = "", kind = ""] = toTexts(answer);
    this.#stamp = Math.max(this.#stamp, Number(stamp));
    this.noteIntents(Number(intents));
    this.#losses = Number(losses);
    return {
      isAnother: changed === "changed",
      loss: kind === "" ? undefined : { kind, fromMs: Number(from), untilMs: Number(until) },
    };
  }

  /** Says that this process ends in order and has nothing under way: a later loss cannot be one of its starts. */
  async leave(): Promise<void> {
    await this.#store.redis.zrem(this.#store.key("processes"), this.#process);
  }

  /** The keys and the memory that the script needs which permits a request. */
  fence(): { readonly keys: readonly string[]; readonly intents: number } {
    const { key } = this.#store;
    return { keys: [key("watch"), key("losses")], intents: this.#intents };
  }

  /** Whether a request may be asked for now. */
  mayAsk(): boolean {
    return this.isOpen && systemClock.monotonicMs() >= this.#pausedUntilMs;
  }

  /** Remembers how many intents there are. */
  noteIntents(count: number): void {
    this.#intents = Math.max(this.#intents, count);
  }

  /** Waits until a replica has what this process has written. False: none has; for two seconds nothing more is asked. Always true where none is needed. */
  async reachReplica(): Promise<boolean> {
    if (!this.needsReplica) return true;
    const { redis, key } = this.#store;
    // In one pipeline with a key of ours: in a cluster it goes to the node that has the intent.
    const answers = await redis.pipeline().hget(key("watch"), "runId").wait(1, replicaWithinMs).exec();
    const [error, reached] = answers?.[1] ?? [new Error("no answer"), 0];
    if (error !== null) throw error;
    if (Number(reached) >= 1) return true;
    this.#pausedUntilMs = systemClock.monotonicMs() + replicaPauseMs;
    this.#notReplicated();
    return false;
  }
}

function toTexts(answer: unknown): string[] {
  return Array.isArray(answer) ? answer.map(String) : [];
}
