// The two connections that all workers of a process share: one for commands, and one on which one
// blocking read (BZPOPMIN) waits for jobs of all queues. BullMQ alone opens two for each queue and
// asks each queue for jobs every five seconds.
//
// The seam is the `backendFactory` of BullMQ's Worker. What is relied on, and held against each new
// version by test/redis/queue/worker-connections.test.ts:
// - Where jobs may be taken, PREFIX:QUEUE:marker holds a marker. Its score is 0, or when the next
//   delayed job is due. One worker pops it, takes what there is, and leaves a marker for the rest.
// - A worker that found nothing calls `waitForJob`, and again only after its end. After null or
//   score 0 it looks for a job, at a later score then, at Infinity not. `disconnectBlocking` ends
//   the wait of a worker that closes, and `close` comes when its jobs have ended.
// - A backend that does not own its connections leaves them open.
import { randomUUID } from "node:crypto";
import {
  type KeysMap,
  type Processor,
  type QueueBaseOptions,
  RedisQueueBackend,
  Worker,
  type WorkerOptions,
} from "bullmq";
import { systemClock, withTimeLimit } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import { createRedisClient, type RedisClient, type RedisTarget } from "../store/connect.ts";
import { backendParts, SharedConnection } from "./queues.ts";

/** How often a worker looks unasked: a marker is lost with the process that popped it. */
const lookEveryMs = 8_000;
/** How long one read blocks; less than the silence after which a connection is replaced. */
const readMs = 5_000;
const answerWithinMs = 2_000;
const againAfterMs = 1_000;
const stopWithinMs = 500;
/** A process that is killed may leave its wake-up behind. */
const wakeKeptMs = 60_000;

interface Marker {
  readonly member: string;
  readonly score: number;
}

/** The end of a wait after which the worker does not look for a job. */
const closing: Marker = { member: "", score: Number.POSITIVE_INFINITY };

/** One worker that waits for a job. */
interface Waiter {
  readonly markerKey: string;
  /** Ends the wait; null: look for a job. */
  readonly end: (marker: Marker | null) => void;
}

/** Opens workers, all on the same connections, and closes these after them. */
export class WorkerConnections implements Component {
  readonly name = "worker connections";
  readonly #target: RedisTarget;
  readonly #log: EventLog;
  readonly #wakeKey: string;
  /** In the order in which they began to wait. */
  readonly #waiters = new Set<Waiter>();
  #commands: RedisClient | undefined;
  #connection: SharedConnection | undefined;
  #reader: RedisClient | undefined;
  #reading = Promise.resolve();
  /** The marker keys that the read under way covers; undefined: none is under way. */
  #covered: ReadonlySet<string> | undefined;
  #isWoken = false;
  #isClosed = false;

  constructor(target: RedisTarget, log: EventLog) {
    this.#target = target;
    this.#log = createRateLimitedLog(log, systemClock, "queue");
    this.#wakeKey = `${target.prefix}:wake:${randomUUID()}`;
  }

  /** Opens a worker, which takes jobs at once. */
  open(queue: string, processor: Processor, options: Omit<WorkerOptions, "connection" | "prefix">): Worker {
    const { prefix } = this.#target;
    const drainDelay = lookEveryMs / 1_000;
    return new Worker(queue, processor, { ...options, connection: this.commands, prefix, drainDelay }, (name, given) =>
      this.#backend(name, given),
    );
  }

  /** Connects with the first worker. */
  async start(): Promise<void> {}

  /** Closes the connections. A marker that still comes goes back. */
  async stop(): Promise<void> {
    this.#isClosed = true;
    for (const { end } of this.#waiters) end(closing);
    if (this.#covered !== undefined) {
      this.#wake();
      await withTimeLimit(this.#reading, stopWithinMs, () => new Error("no answer")).catch(() => {});
    }
    this.#reader?.disconnect();
    this.#commands?.disconnect();
  }

  /** The connection for commands. */
  get commands(): RedisClient {
    this.#commands ??= createRedisClient(this.#target, "worker");
    return this.#commands;
  }

  /** Waits until the queue has a marker, or until its worker must look without one. */
  async wait(keys: KeysMap, forMs: number, signal: AbortSignal): Promise<Marker | null> {
    if (this.#isClosed || signal.aborted) return closing;
    const { promise, resolve } = Promise.withResolvers<Marker | null>();
    const waiter: Waiter = {
      markerKey: keys["marker"] ?? "",
      end: (marker) => {
        this.#waiters.delete(waiter);
        endLooks();
        resolve(marker);
      },
    };
    // Not a sleep: the end of one makes two exceptions with their stacks, at each wait.
    const endLooks = systemClock.every(forMs, () => {
      this.#lookUnasked(waiter, keys, forMs).catch(() => waiter.end(null));
    });
    const onClosing = () => waiter.end(closing);
    signal.addEventListener("abort", onClosing, { once: true });
    this.#waiters.add(waiter);
    this.#cover(waiter);
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", onClosing);
    }
  }

  /** Leaves a marker for a worker that waits: it looks for a job. */
  mark(markerKey: string, score: string | number = 0, member = "0"): void {
    this.commands.zadd(markerKey, "NX", score, member).catch((error: unknown) => this.#onError(error));
  }

  #backend(name: string, options: QueueBaseOptions): WorkerBackend {
    this.#connection ??= new SharedConnection(this.commands, (error) => this.#onError(error));
    return new WorkerBackend(this, ...backendParts(this.#connection, name, options));
  }

  /** Ends a wait when its worker must look. Where nothing stands in the queue, it need not. */
  async #lookUnasked(waiter: Waiter, keys: KeysMap, forMs: number): Promise<void> {
    const places = ["wait", "paused", "prioritized", "delayed"].map((place) => keys[place] ?? "");
    // After a shorter time a delayed job is due.
    if (forMs >= lookEveryMs && (await this.commands.exists(...places)) === 0) return;
    waiter.end(null);
  }

  /** Sees to it that a read covers this worker's queue. */
  #cover({ markerKey }: Waiter): void {
    if (this.#covered === undefined) this.#reading = this.#read();
    else if (!this.#covered.has(markerKey) && !this.#isWoken) this.#wake();
  }

  /** Makes the read under way end. */
  #wake(): void {
    this.#isWoken = true;
    const wake = [this.commands.zadd(this.#wakeKey, 0, "0"), this.commands.pexpire(this.#wakeKey, wakeKeptMs)];
    // Without Redis no marker comes either, and the next read covers all.
    Promise.all(wake).catch(() => {});
  }

  /** Reads as long as workers wait, for all of them at once. */
  async #read(): Promise<void> {
    while (this.#waiters.size > 0 && !this.#isClosed) {
      // Who waits longest comes first: a busy queue does not keep others from their marker.
      this.#covered = new Set([...this.#waiters].map(({ markerKey }) => markerKey));
      this.#isWoken = false;
      try {
        const popped = await this.#pop([...this.#covered, this.#wakeKey]);
        if (popped !== null) this.#give(popped);
      } catch (error) {
        if (this.#isClosed) break;
        this.#onError(error);
        await systemClock.sleep(againAfterMs);
      }
    }
    this.#covered = undefined;
  }

  /** @throws when Redis refuses, or says nothing over a connection that stands: it is replaced. */
  async #pop(keys: readonly string[]): Promise<[key: string, member: string, score: string] | null> {
    this.#reader ??= this.#openReader();
    const reader = this.#reader;
    const reading = reader.bzpopmin(...keys, readMs / 1_000);
    const silence = new Error("Command timed out: BZPOPMIN");
    try {
      for (;;) {
        const answer = await withTimeLimit(reading, readMs + answerWithinMs, () => silence).catch((error: unknown) => {
          // ioredis sends the read again as soon as it is connected.
          if (error === silence && reader.status !== "ready") return undefined;
          throw error;
        });
        if (answer !== undefined) return answer;
      }
    } catch (error) {
      this.#reader = undefined;
      reader.disconnect();
      this.#lookAll();
      throw error;
    }
  }

  #openReader(): RedisClient {
    const reader = createRedisClient(this.#target, "worker");
    reader.on("error", (error: Error) => this.#onError(error));
    // An answer may be lost with its connection.
    reader.on("close", () => this.#lookAll());
    return reader;
  }

  #lookAll(): void {
    for (const { end } of this.#waiters) end(null);
  }

  #give([key, member, score]: readonly [key: string, member: string, score: string]): void {
    if (key === this.#wakeKey) return;
    const waiter = [...this.#waiters].find(({ markerKey }) => markerKey === key);
    if (waiter !== undefined) waiter.end({ member, score: Number(score) });
    // Its worker has begun to work meanwhile, or has stopped. Another process's may wait.
    else this.mark(key, score, member);
  }

  #onError(error: unknown): void {
    if (!this.#isClosed) this.#log.warn("queue.unreachable", { queue: "all", message: String(error) });
  }
}

/** BullMQ's access to one queue, for a worker on shared connections. */
class WorkerBackend extends RedisQueueBackend {
  readonly #shared: WorkerConnections;
  readonly #closing = new AbortController();

  constructor(shared: WorkerConnections, ...parts: ConstructorParameters<typeof RedisQueueBackend>) {
    super(...parts);
    this.#shared = shared;
  }

  override get maximumBlockTimeout(): number {
    return lookEveryMs / 1_000;
  }

  override waitForJob(blockTimeoutS: number): Promise<Marker | null> {
    return this.#shared.wait(this.keys, blockTimeoutS * 1_000, this.#closing.signal);
  }

  override async disconnectBlocking(): Promise<void> {
    this.#closing.abort();
  }

  /** A stopped worker's knowledge is lost, such as when the next job is due: another one looks. */
  override async close(): Promise<void> {
    this.#shared.mark(this.keys["marker"] ?? "");
  }

  /** Asks with one command whether anything could have stalled: BullMQ takes seven. */
  override async moveStalledJobsToWait(): Promise<string[]> {
    const places = ["active", "stalled"].map((place) => this.keys[place] ?? "");
    return (await this.#shared.commands.exists(...places)) === 0 ? [] : super.moveStalledJobsToWait();
  }
}
