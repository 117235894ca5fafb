// Everything that Syncline does with a Redis, once: store, scripts, queue, worker, guard. For tests
// of ways to set Redis up.

import { RedisGuard } from "../../src/app/redis-guard.ts";
import type { Delivery, DeliveryVerdict } from "../../src/model/notice.ts";
import { parseTask } from "../../src/model/task.ts";
import { done, snooze } from "../../src/model/verdict.ts";
import { createConsumer } from "../../src/queue/consumer.ts";
import { createNoticeConsumer } from "../../src/queue/notice-consumer.ts";
import { NoticeQueues } from "../../src/queue/notice-queues.ts";
import { Producer } from "../../src/queue/producer.ts";
import { queueName } from "../../src/queue/queues.ts";
import { WorkerConnections } from "../../src/queue/worker-connections.ts";
import { tasksOf } from "../../src/schedule/slot-tasks.ts";
import { Changes } from "../../src/store/changes.ts";
import { FailedTasks } from "../../src/store/failed-tasks.ts";
import { FeedStore } from "../../src/store/feed-store.ts";
import { History } from "../../src/store/history.ts";
import { Leases } from "../../src/store/leases.ts";
import { Pauses } from "../../src/store/pauses.ts";
import { openStore, type RedisTarget, redisTimeMs, type Store } from "../../src/store/redis.ts";
import { SinkStore } from "../../src/store/sink-store.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { StartJournal } from "../../src/store/start-journal.ts";
import { journalTask } from "./journal-task.ts";
import { testOutcome } from "./outcomes.ts";
import { testPolicy } from "./policies.ts";
import { noticeOf } from "./receiver.ts";
import { until } from "./redis-servers.ts";
import { TestLog } from "./test-log.ts";

/** What lives on a Redis until `stop`. */
export interface Fixture {
  readonly target: RedisTarget;
  readonly connections: WorkerConnections;
  readonly store: Store;
  readonly guard: RedisGuard;
  readonly journal: StartJournal;
  readonly log: TestLog;
  readonly producer: Producer;
  /**
   * Puts a task into the queue and waits until a worker has done it, at its second call. Answers
   * its id.
   */
  work(): Promise<string>;
  stop(): Promise<void>;
}

/** Opens the store, starts the guard and a worker. */
export async function openFixture(target: RedisTarget): Promise<Fixture> {
  const log = new TestLog();
  const store = await openStore(target);
  const guard = new RedisGuard({ store, log, checkEveryMs: 500 });
  await guard.start();
  const producer = new Producer(target, log);
  const seen = new Set<string>();
  const connections = new WorkerConnections(target, log);
  const consumer = createConsumer({
    connections,
    queue: queueName("main", "actions"),
    concurrency: 2,
    takeOverAfterMs: 10_000,
    drainMs: 3_000,
    clockAheadMs: () => guard.clockAheadMs,
    log,
    process: async (item) => {
      const { id } = parseTask(item);
      if (!seen.has(id)) {
        seen.add(id);
        return snooze((await redisTimeMs(store)) + 50);
      }
      log.info("task.finished", { taskId: id });
      return done;
    },
    endAbandoned: async () => true,
  });
  await consumer.start();
  return {
    target,
    connections,
    store,
    guard,
    log,
    producer,
    journal: new StartJournal(store, guard.watch),
    work: async () => {
      const tasks = tasksOf(testPolicy(), { slotMs: Date.now(), origin: "manual", covers: [] });
      const id = tasks[0]?.id ?? "";
      await producer.enqueue(tasks);
      await log.until((event) => event.event === "task.finished" && event["taskId"] === id);
      return id;
    },
    stop: async () => {
      await consumer.stop();
      await connections.stop();
      await producer.close();
      await guard.stop();
      await store.close();
    },
  };
}

/** Does everything once; throws when anything of it is refused. */
export async function useEverything(fixture: Fixture): Promise<void> {
  const { store, journal, producer, work } = fixture;
  const nowMs = await redisTimeMs(store);
  const id = await work();
  const find = () => producer.find({ service: "main", kind: "run", id });
  await until(find, (task) => task?.state === "completed");
  await producer.pending("main");
  const walk = { v: 1, kind: "feed-walk", service: "main", repository: null, list: "activities" } as const;
  await producer.walk(walk, { hurry: true });
  const intent = { startByMs: nowMs + 60_000, slotMs: nowMs, baseline: "" };
  // A replica that is slow to take the intent in leaves it undecided, and the claim is taken anew.
  const ask = async () => {
    await journal.claim(id, "me");
    return journal.beginSending(journalTask(id), "me", intent);
  };
  const permission = await until(ask, (answer) => answer !== "undecided");
  if (permission !== "permitted") throw new Error(`not permitted: ${permission}`);
  await journal.noteConfirmed(journalTask(id), "evidence");
  const ledger = new SlotLedger(store);
  const policy = { policy: "nightly", schedule: "every 5 s" };
  const mark = (await ledger.openWatermarks([policy], nowMs)).get("nightly")?.watermarkMs ?? 0;
  const records = [{ slotMs: nowMs, state: "skipped", detail: "paused" } as const];
  const step = { policy: "nightly", expectedWatermarkMs: mark, newWatermarkMs: mark + 1, records, tasks: [] };
  await ledger.record([step]);
  await ledger.confirmQueued([step]);
  await ledger.unqueued(nowMs);
  await ledger.slots("nightly", 10);
  await ledger.holdings("nightly");
  await ledger.policies();
  await ledger.drop(["nightly"]);
  const feed = { service: "main", repository: null, list: "activities" } as const;
  const book = new FeedStore(store);
  const facts = { syncJobId: "42", startedAtMs: undefined, finished: true, succeeded: true, label: undefined };
  await book.takeIn(feed, { generation: 0 }, { items: [{ id: "a", fingerprint: "f", ...facts }], sinceSeq: 0 });
  await book.endWalk(feed, { startedAtMs: nowMs, count: 1, whole: true });
  await book.failWalk(feed, "gone", { beganAtMs: 0, waitMs: 0 });
  await book.denyWalk(feed, { beganAtMs: 0, waitMs: 0 });
  await book.status(feed);
  await book.discoveredSince(feed, 0);
  await book.addWaiter(feed, id, { nowMs, untilMs: nowMs + 1_000 });
  await book.waiting(feed, nowMs);
  await book.leave(feed, id);
  const history = new History(store);
  const failure = testOutcome({ taskId: id, status: "failed" });
  await history.record(failure);
  await history.outcomes(failure.policy, [id]);
  await history.newest(10);
  await history.keptSinceMs(failure.policy);
  await history.tidy(new Set());
  const leases = new Leases(store);
  await leases.acquire({ id, service: "main", repository: null, target: "42" }, id);
  await leases.release({ service: "main", repository: null, target: "42" }, id);
  const pauses = new Pauses(store);
  await pauses.set({ scope: "all", name: "", note: "test", actor: "me", untilMs: null });
  await pauses.end({ scope: "all", name: "" }, "me");
  await pauses.all();
  await useSinks(fixture);
}

/** What sinks, the failed list and the record of changes do. */
export async function useSinks({ store, target, connections, log }: Fixture): Promise<void> {
  const queues = new NoticeQueues(target, log);
  const process = async ({ notice }: Delivery): Promise<DeliveryVerdict> =>
    notice.id === "bad" ? { verdict: "failed", reason: "no" } : { verdict: "later", reason: "full", afterMs: 50 };
  const common = { connections, sink: "ops", queues, takeOverAfterMs: 5_000, drainMs: 3_000, log };
  const consumer = createNoticeConsumer({ ...common, process, gaveUp: () => {} });
  await queues.add("ops", [noticeOf("bad"), noticeOf("good")], 1);
  await queues.add("ops", [noticeOf("good")], 10);
  await consumer.start();
  await until(
    () => queues.backlog("ops"),
    ({ failed, waiting }) => failed === 1 && waiting === 1,
  );
  await consumer.stop();
  await queues.release("ops");
  if ((await queues.failed("ops", 10)).length !== 1) throw new Error("the failed delivery is not seen");
  await queues.replay("ops", "bad");
  await queues.discard("ops", "bad");
  await queues.forget("ops");
  await queues.close();
  const sinks = new SinkStore(store);
  await sinks.noteSeen(["ops"]);
  await sinks.countDropped("ops", 1);
  await sinks.unseenFor(1_000);
  await sinks.forget("ops");
  const failed = new FailedTasks(store);
  const failure = testOutcome({ taskId: "nightly__run__42__1", status: "failed" });
  await failed.beginReplay(failure, 1);
  await failed.takeOff(failure);
  await failed.all();
  const changes = new Changes(store);
  const change = { actor: "me", what: "pause", subject: "all policies", reason: null, before: null, after: null };
  const begun = await changes.add({ ...change, isBegun: true });
  await changes.end(begun, { v: 1, at: begun.at, ...change });
  await changes.newest(1);
}
