// Watches over Redis's memory: what this process remembers of it, held against what Redis has. Beaten once a second by
// app/redis-guard.ts, asked by the start journal before each request. Decides nothing about tasks.
import { systemClock } from "../core/clock.ts";
import { Gathered } from "../core/gathered.ts";
import { processName } from "./presence.ts";
import type { Store } from "./redis.ts";
import { beatScript, fenceScript, replicasScript } from "./watch-scripts.ts";

/** What a beat found. Instants are milliseconds UTC by Redis. */
export interface Beat {
  /** Redis is another process, or another machine, than at the last beat of anybody. */
  readonly isAnother: boolean;
  /** The same, than at the last beat of this process; false at its first. */
  readonly isNewHere: boolean;
  /** What was written in these intervals may be lost: tasks that could have started in them are not started. Most often none. */
  readonly losses: readonly Loss[];
}

/**
 * A gap in Redis's memory, with `lossWindowMs` on both sides; `fromMs` 0: everything before. `flushed`: it was emptied; `went-back`: it
 * forgot what this process remembers; `unwitnessed`: it was started anew, and some process that could say what it had known is gone.
 */
interface Loss {
  readonly kind: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** What may be lost around a gap in Redis's memory, on both sides of it. Design §7: redisLossWindow. */
const lossWindowMs = 5_000;
/** How long a request waits for a replica to have its intent. */
const replicaWithinMs = 1_000;
/** How long nothing is asked after a replica did not answer. */
const replicaPauseMs = 2_000;

/** The watch of one process. */
export class RedisWatch {
  readonly #store: Store;
  readonly #notReplicated: () => void;
  readonly #process: string;
  #term = "";
  #stamp = 0;
  #intents = 0;
  #pausedUntilMs = 0;
  /** A wait stands in the way of everything else on this connection: one at a time, for all who have written before it. */
  readonly #replicaWaits = new Gathered<number>((intents) => this.#awaitReplica(Math.max(...intents)));
  /** Whether starts are allowed at all: false until the first check, and while Redis is unsafe. Set by the guard. */
  isOpen = false;
  /** Whether an intent must have reached a replica before its request goes out. Set by the guard. */
  needsReplica = false;

  /** `notReplicated` is told of each intent that no replica had in time; `roles`: what this process does, for presence.ts. */
  constructor(
    store: Store,
    { notReplicated, roles = [] }: { readonly notReplicated?: () => void; readonly roles?: readonly string[] } = {},
  ) {
    this.#store = store;
    this.#notReplicated = notReplicated ?? (() => {});
    this.#process = processName(roles);
  }

  /** Looks whether Redis is the one it was, and moves the stamp. */
  async beat(): Promise<Beat> {
    const { key } = this.#store;
    const answer = await beatScript(
      this.#store,
      [key("watch"), key("processes"), key("losses")],
      [this.#process, this.#term, this.#stamp, this.#intents, lossWindowMs],
    );
    const [term = "", stamp = "", intents = "", changed, ...found] = Array.isArray(answer) ? answer.map(String) : [];
    const isNewHere = this.#term !== "" && this.#term !== term;
    this.#term = term;
    this.#stamp = Number(stamp);
    this.#intents = Number(intents);
    const losses: Loss[] = [];
    for (let at = 0; at + 2 < found.length; at += 3)
      losses.push({ fromMs: Number(found[at]), untilMs: Number(found[at + 1]), kind: found[at + 2] ?? "" });
    return { isAnother: changed === "changed", isNewHere, losses };
  }

  /** Says that this process ends in order and has nothing under way: a later loss cannot be one of its starts. */
  async leave(): Promise<void> {
    await this.#store.redis.zrem(this.#store.key("processes"), this.#process);
  }

  /** The keys and the memory that the script needs which permits a request. */
  fence(): { readonly keys: readonly string[]; readonly term: string } {
    const { key } = this.#store;
    return { keys: [key("watch"), key("losses")], term: this.#term };
  }

  /**
   * Whether Redis may have forgotten a start that could have happened in this time: `loss`, it may; `hold`, nobody knows yet;
   * undefined, it has not. Without it, what looks as if nothing had been sent may be told of a start that was.
   */
  async shut(span: { readonly slotMs: number; readonly startByMs: number }): Promise<"hold" | "loss" | undefined> {
    if (!this.mayAsk()) return "hold";
    const { keys, term } = this.fence();
    const answer = await fenceScript(this.#store, keys, [term, span.slotMs, span.startByMs]);
    return answer === "hold" || answer === "loss" ? answer : undefined;
  }

  /** Whether a request may be asked for now. */
  mayAsk(): boolean {
    return this.isOpen && systemClock.monotonicMs() >= this.#pausedUntilMs;
  }

  /** Notes for processes that come later that this Redis has replicas now. */
  async noteReplicas(): Promise<void> {
    await replicasScript(this.#store, [this.#store.key("watch")], [1]);
  }

  /** How long ago (ms, by Redis) any process noted that this Redis had replicas; undefined when none did since it was started. */
  async replicasNotedMsAgo(): Promise<number | undefined> {
    const answer = await replicasScript(this.#store, [this.#store.key("watch")], [0]);
    return typeof answer === "number" ? answer : undefined;
  }

  /** Remembers how many intents there are. */
  noteIntents(count: number): void {
    this.#intents = Math.max(this.#intents, count);
  }

  /**
   * Waits until a replica has what this process has written; `intents`: the count that its own intent came with. False: none has, or Redis
   * has forgotten the intent; for two seconds nothing more is asked. Always true where none is needed.
   */
  async reachReplica(intents: number): Promise<boolean> {
    if (!this.needsReplica) return true;
    return (await this.#replicaWaits.add(intents)) === true;
  }

  async #awaitReplica(intents: number): Promise<boolean> {
    // Those who came while others waited in vain.
    if (!this.mayAsk()) return false;
    const { redis, key } = this.#store;
    // In one pipeline with a key of ours: in a cluster it goes to the node that has the intent. Behind a new connection may be another
    // Redis, with replicas that have all of it and not the intent.
    const answers = (await redis.pipeline().hget(key("watch"), "intents").wait(1, replicaWithinMs).exec()) ?? [];
    for (const [error] of answers) if (error !== null) throw error;
    const [kept = 0, reached = 0] = answers.map(([, answer]) => Number(answer));
    if (kept >= intents && reached >= 1) return true;
    this.#pausedUntilMs = systemClock.monotonicMs() + replicaPauseMs;
    this.#notReplicated();
    return false;
  }
}
