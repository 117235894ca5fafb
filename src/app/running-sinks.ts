// The running sinks: every process takes notices in; a worker delivers them, each sink from its own
// queue. Built by app.ts.
//
//   outbox (notifier) ─ enqueue ─▶ queue of the sink (BullMQ) ─▶ consumer, one delivery at a time ─▶ sink ─▶ receiver
//                                               └─given up or refused─▶ failed list of the queue (`syncline failed`)
//
// A sink that is removed, or that only newer policies name, keeps its queue. It resumes when the
// sink is there; after seven days the queue is dropped.
import { isDeepStrictEqual } from "node:util";
import type { PolicySet, SinkSettings } from "../config/policy-set.ts";
import { policyLimits } from "../config/rules/policy-limits.ts";
import { Batcher } from "../core/batcher.ts";
import { systemClock, withTimeLimit } from "../core/clock.ts";
import type { Component } from "../core/component.ts";
import { createRateLimitedLog, type EventLog } from "../core/event-log.ts";
import type { EnqueueNotices, Notice } from "../model/notice.ts";
import { createDeliveryProcess, createSink, type SinkInForce } from "../notify/process-delivery.ts";
import type { Metrics } from "../ops/metrics.ts";
import { createNoticeConsumer } from "../queue/notice-consumer.ts";
import { NoticeQueues } from "../queue/notice-queues.ts";
import type { WorkerConnections } from "../queue/worker-connections.ts";
import type { RedisTarget, Store } from "../store/redis.ts";
import { SinkStore } from "../store/sink-store.ts";

/** What the running sinks need. */
export interface RunningSinksOptions {
  readonly set: Pick<PolicySet, "sinks">;
  readonly redis: RedisTarget;
  readonly connections: WorkerConnections;
  readonly store: Store;
  readonly log: EventLog;
  /** Only a worker delivers; every process takes notices in. */
  readonly roles: readonly string[];
  readonly takeOverAfterMs: number;
  readonly drainMs: number;
  /** A stand-in hands over only: deliveries wait for `serve`. */
  readonly isStandIn?: boolean;
  /** Whether another owner holds the prefix, or may: its notices are not delivered here. */
  readonly mayBeForeign?: () => boolean;
  readonly metrics?: Pick<Metrics, "add"> | undefined;
}

interface RunningSink extends SinkInForce {
  /** undefined where nothing is delivered. */
  readonly consumer: Component | undefined;
}

/** Deliveries are short, so a dead worker's delivery is taken over sooner than a task. */
const takeOverAfterMsMax = 30_000;
const drainMsMax = 3_000;
const stopMsMax = 4_000;
const seenEveryMs = 60_000;
const startAgainMs = 5_000;
/** Longer than a delivery takes, even one that its watchdog ends. */
const oldSinkMs = 70_000;
/** How often dropped notices are logged. */
const droppedQuietMs = 60_000;
const keptUnseenMs = 7 * 86_400_000;

/** Takes notices in, and in a worker delivers them. */
export class RunningSinks implements Component {
  readonly name = "sinks";
  readonly #options: RunningSinksOptions;
  readonly #queues: NoticeQueues;
  readonly #sinkStore: SinkStore;
  readonly #dropped: DroppedNotices;
  readonly #limitedLog: EventLog;
  readonly #running = new Map<string, RunningSink>();
  /** Each adds one batch at a time, so that parallel calls keep their order. */
  readonly #batchers = new Map<string, Batcher<readonly Notice[]>>();
  readonly #background = new Set<Promise<void>>();
  readonly #delivers: boolean;
  readonly #stopping = new AbortController();
  #isStarted = false;
  #endTicks: (() => void) | undefined;

  constructor(options: RunningSinksOptions) {
    this.#options = options;
    this.#delivers = options.roles.includes("worker") && options.isStandIn !== true;
    this.#queues = new NoticeQueues(options.redis, options.log);
    this.#sinkStore = new SinkStore(options.store);
    this.#dropped = new DroppedNotices(options.log);
    this.#limitedLog = createRateLimitedLog(options.log, systemClock, "sink");
    for (const settings of options.set.sinks.values()) this.#add(settings);
  }

  /** The queues, for gauges and for the failed list. */
  get queues(): NoticeQueues {
    return this.#queues;
  }

  /** Hands notices to sinks (see EnqueueNotices): one step a sink, all sinks in parallel. */
  readonly enqueue: EnqueueNotices = async (addressed) => {
    const bySink = Map.groupBy(addressed, ({ sink }) => sink);
    const given = [...bySink].map(([sink, group]) =>
      this.#give(
        sink,
        group.map(({ notice }) => notice),
      ),
    );
    await Promise.all(given);
  };

  /** The consumers. They stop beside the services, which still hand over their last notices. */
  readonly deliveries: Component = {
    name: "deliveries",
    start: async () => {
      this.#isStarted = true;
      if (this.#delivers) {
        this.#inBackground(this.#registerSinks());
        this.#endTicks = systemClock.every(seenEveryMs, () => this.#inBackground(this.#registerSinks()));
      }
      // Not awaited: a failing sink must not fail the start.
      for (const { consumer } of this.#running.values()) this.#begin(consumer);
    },
    stop: async () => {
      this.#stopping.abort();
      this.#endTicks?.();
      const consumers = [...this.#running.values()].map(({ consumer }) => consumer?.stop());
      const stopping = Promise.all([...consumers, ...this.#background]);
      await withTimeLimit(stopping, stopMsMax, () => new Error("still busy")).catch(() => {
        // Another worker takes over what was running. `stop` does not wait for a Redis that does
        // not answer.
        stopping.catch(() => {});
        this.#options.log.warn("queue.drain-incomplete", { queue: "sinks" });
      });
    },
  };

  async start(): Promise<void> {
    // Taking in needs no start: its connections open at the first notice.
  }

  async stop(): Promise<void> {
    if (!this.#stopping.signal.aborted) await this.deliveries.stop();
    for (const { sink } of this.#running.values()) sink.close();
    this.#dropped.flush();
    await this.#queues.close();
  }

  /** Adopts settings. Running deliveries end with the old ones; other sinks try at once. */
  adopt(sinks: PolicySet["sinks"]): void {
    for (const [name, running] of this.#running) {
      const settings = sinks.get(name);
      if (settings === undefined) this.#remove(name, running);
      else if (!isDeepStrictEqual(settings, running.settings)) this.#change(running, settings);
    }
    for (const [name, settings] of sinks) {
      if (this.#running.has(name)) continue;
      this.#release(name);
      this.#begin(this.#add(settings).consumer);
    }
    if (this.#delivers && this.#isStarted) this.#inBackground(this.#registerSinks());
  }

  async #give(name: string, notices: readonly Notice[]): Promise<void> {
    if (!this.#running.has(name)) {
      this.#limitedLog.warn("sink.not-configured", { sink: name, count: notices.length });
    }
    // Those that a worker has, it registers itself.
    if (!this.#running.has(name) || this.#options.isStandIn === true) await this.#sinkStore.noteSeen([name]);
    const line = this.#batchers.get(name) ?? new Batcher((groups) => this.#put(name, groups.flat()));
    this.#batchers.set(name, line);
    await line.add(notices);
  }

  async #put(name: string, notices: readonly Notice[]): Promise<void> {
    const queueMax = this.#running.get(name)?.settings.queueMax ?? policyLimits.sinkQueueMax;
    const dropped = new Set((await this.#queues.add(name, notices, queueMax)).map(({ id }) => id));
    for (const notice of notices) if (!dropped.has(notice.id)) this.#logQueued(name, notice);
    if (dropped.size === 0) return this.#dropped.hadRoom(name);
    this.#dropped.dropped(name, dropped.size);
    this.#options.metrics?.add("syncline_sink_dropped_total", { sink: name }, dropped.size);
    // The count is only information. If it fails, the caller must not hand all notices over again.
    await this.#sinkStore.countDropped(name, dropped.size).catch(() => {});
  }

  #logQueued(sink: string, { id, kind, policy, service, title }: Notice): void {
    this.#options.log.info("notice.queued", { sink, kind, policy, service, title, id });
  }

  #add(settings: SinkSettings): RunningSink {
    const { name } = settings;
    const { connections, log, takeOverAfterMs, drainMs, metrics } = this.#options;
    const consumer = this.#delivers
      ? createNoticeConsumer({
          connections,
          sink: name,
          queues: this.#queues,
          takeOverAfterMs: Math.min(takeOverAfterMs, takeOverAfterMsMax),
          drainMs: Math.min(drainMs, drainMsMax),
          log,
          process: createDeliveryProcess({
            name,
            current: () => this.#running.get(name),
            mayBeForeign: this.#options.mayBeForeign,
            log,
            onDelivery: (deliveryResult) =>
              metrics?.add("syncline_sink_deliveries_total", { sink: name, deliveryResult }),
          }),
          gaveUp: ({ notice }, ending) =>
            log.error("sink.gave-up", { sink: name, notice: notice.id, policy: notice.policy, ...ending }),
        })
      : undefined;
    const running = { settings, sink: createSink(settings), consumer };
    this.#running.set(name, running);
    return running;
  }

  #change(before: RunningSink, settings: SinkSettings): void {
    this.#running.set(settings.name, { ...before, settings, sink: createSink(settings) });
    this.#inBackground(this.#closeLater(before));
    this.#release(settings.name);
  }

  /** A delivery under way ends with the settings that it began with. */
  async #closeLater({ sink }: RunningSink): Promise<void> {
    await systemClock.sleep(oldSinkMs, this.#stopping.signal);
    sink.close();
  }

  #release(name: string): void {
    if (this.#delivers) this.#inBackground(this.#queues.release(name));
  }

  #remove(name: string, running: RunningSink): void {
    this.#running.delete(name);
    this.#inBackground(this.#closeLater(running));
    if (running.consumer !== undefined) this.#inBackground(running.consumer.stop());
  }

  #begin(consumer: Component | undefined): void {
    if (consumer !== undefined && this.#isStarted) this.#inBackground(this.#startAtLast(consumer));
  }

  /** Retries until the consumer runs: an unanswering Redis must not leave a sink without one. */
  async #startAtLast(consumer: Component): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        return await consumer.start();
      } catch (error) {
        this.#limitedLog.warn("sink.change-failed", { sink: consumer.name, message: String(error) });
        await systemClock.sleep(startAgainMs, this.#stopping.signal);
      }
    }
  }

  /** Writes which sinks there are, and drops the queues of sinks that were removed long ago. */
  async #registerSinks(): Promise<void> {
    await this.#sinkStore.noteSeen([...this.#running.keys()]);
    for (const name of await this.#sinkStore.unseenFor(keptUnseenMs)) {
      const { waiting, failed } = await this.#queues.backlog(name);
      await this.#queues.forget(name);
      await this.#sinkStore.forget(name);
      this.#options.log.warn("sink.forgotten", { sink: name, waiting, failed });
    }
  }

  #inBackground(work: Promise<void>): void {
    const noted = work
      .catch((error: unknown) => this.#limitedLog.warn("sink.change-failed", { sink: "", message: String(error) }))
      .finally(() => this.#background.delete(noted));
    this.#background.add(noted);
  }
}

interface DropCount {
  unlogged: number;
  total: number;
  loggedAtMs: number;
}

/**
 * Logs notices that a sink's queue had no room for: at the first, then once a minute with their
 * number, and when there is room again. The sum of the lines is exact.
 */
class DroppedNotices {
  readonly #log: EventLog;
  readonly #sinks = new Map<string, DropCount>();

  constructor(log: EventLog) {
    this.#log = log;
  }

  /** Counts notices without room. */
  dropped(sink: string, count: number): void {
    const nowMs = systemClock.monotonicMs();
    const dropped = this.#sinks.get(sink) ?? { unlogged: 0, total: 0, loggedAtMs: Number.NEGATIVE_INFINITY };
    dropped.unlogged += count;
    dropped.total += count;
    this.#sinks.set(sink, dropped);
    if (nowMs - dropped.loggedAtMs < droppedQuietMs) return;
    dropped.loggedAtMs = nowMs;
    this.#write(sink, dropped);
  }

  /** Notes that all notices had room. */
  hadRoom(sink: string): void {
    const dropped = this.#sinks.get(sink);
    if (dropped === undefined) return;
    this.#write(sink, dropped);
    this.#sinks.delete(sink);
    this.#log.info("sink.has-room", { sink, dropped: dropped.total });
  }

  /** Logs what is not logged yet. */
  flush(): void {
    for (const [sink, dropped] of this.#sinks) this.#write(sink, dropped);
  }

  #write(sink: string, dropped: DropCount): void {
    if (dropped.unlogged > 0) this.#log.error("sink.dropped", { sink, count: dropped.unlogged });
    dropped.unlogged = 0;
  }
}
