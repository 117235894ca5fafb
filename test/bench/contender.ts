// One contender of the schedule benchmark, in a process of its own: contender.ts REDIS_URL NAME
// POLICIES. Started by schedule.ts.
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import cron from "node-cron";
import { silentLog } from "../../src/core/event-log.ts";
import { Producer } from "../../src/queue/producer.ts";
import { Scheduler } from "../../src/schedule/scheduler.ts";
import { openStore } from "../../src/store/redis.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { testPolicy } from "../support/policies.ts";
import { noteFigure } from "./figures.ts";
import { median } from "./redis-figures.ts";

const [url = "", contender = "", count = "10000"] = process.argv.slice(2);
const policies = Number(count);
const prefix = `bench-${contender}`;
const queueName = "main-actions";
const target = { url, prefix };
const rounds = 3;
const roundMs = 10_000;
const timezone = "Europe/Vienna";

// 59 ways to write "every ten seconds", so that no contender profits from there being one
// expression only.
const expressionOf = (index: number) => `*/10 0-${index % 59},${(index % 59) + 1}-59 * * * *`;
const indexes = Array.from({ length: policies }, (_, index) => index);

const redis = new Redis(url);

const contenders: Record<string, () => Promise<() => Promise<unknown>>> = {
  syncline: async () => {
    const store = await openStore(target);
    const producer = new Producer(target, silentLog);
    await producer.pending("main");
    const scheduler = new Scheduler({
      policies: indexes.map((index) =>
        testPolicy({
          name: `policy-${index}`,
          schedule: {
            kind: "cron",
            expressions: [expressionOf(index)],
            timezone,
            dst: { gap: "next", overlap: "first" },
            spreadMs: 0,
          },
        }),
      ),
      ledger: new SlotLedger(store),
      enqueue: (tasks) => producer.enqueue(tasks),
      log: silentLog,
    });
    await scheduler.runOnce();
    await scheduler.start();
    return async () => {
      await scheduler.stop();
      await producer.close();
      await store.close();
    };
  },
  "node-cron": async () => {
    const queue = new Queue(queueName, { connection: { url }, prefix });
    await queue.waitUntilReady();
    const tasks = indexes.map((index) =>
      cron.schedule(
        expressionOf(index),
        ({ date }) => queue.add("run", { policy: index }, { jobId: `policy-${index}__${date.getTime()}` }),
        { timezone, suppressMissedWarning: true },
      ),
    );
    return async () => {
      for (const task of tasks) await task.destroy();
      await queue.close();
    };
  },
  "job-schedulers": async () => {
    const queue = new Queue(queueName, { connection: { url }, prefix });
    for (const index of indexes) {
      await queue.upsertJobScheduler(
        `policy-${index}`,
        { pattern: expressionOf(index), tz: timezone },
        { name: "run", data: { policy: index } },
      );
    }
    // Without a worker no delayed job ever becomes a waiting one.
    const worker = new Worker(queueName, async () => {}, { connection: { url }, prefix, concurrency: 50 });
    await worker.waitUntilReady();
    return async () => {
      await worker.close();
      await queue.close();
    };
  },
};

const setUp = contenders[contender];
if (setUp === undefined) throw new Error(`no contender ${contender}`);
const setUpAtMs = Date.now();
const tearDown = await setUp();
const readyAtMs = Date.now();
await redis.hset(`${prefix}:${queueName}:meta`, "opts.maxLenEvents", "10000000");
const firstMs = Math.ceil((readyAtMs + 2_000) / roundMs) * roundMs;
const cpu = await cpuOver(firstMs - Date.now() - 500, firstMs + rounds * roundMs - Date.now() - 500);
await report();
await tearDown();
redis.disconnect();

async function cpuOver(fromMs: number, untilMs: number): Promise<number> {
  await sleep(fromMs);
  const before = process.cpuUsage();
  await sleep(untilMs - fromMs);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000_000;
}

function sleep(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

async function report(): Promise<void> {
  const bySlot = await delaysBySlot();
  const [p99s, queued]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    const delays = (bySlot.get(firstMs + round * roundMs) ?? []).sort((a, b) => a - b);
    const at = (share: number) => delays[Math.min(delays.length - 1, Math.floor(delays.length * share))] ?? Number.NaN;
    p99s.push(at(0.99));
    queued.push(delays.length);
    process.stdout.write(
      `${contender.padEnd(15)} round ${round + 1}: ${delays.length} of ${policies} queued, ms from due to queued: p50 ${at(0.5)}, p99 ${at(0.99)}, max ${delays.at(-1)}\n`,
    );
  }
  const noted = { wants: "less", by: contender } as const;
  noteFigure({
    ...noted,
    what: "due slots: lost of those due at once",
    unit: "slots",
    value: policies - Math.min(...queued),
    goal: 0,
  });
  noteFigure({ ...noted, what: "due slots: p99 until queued", unit: "ms", value: median(p99s) });
  noteFigure({ ...noted, what: "due slots: CPU a round", unit: "s", value: cpu / rounds });
  const memory = Math.round(process.memoryUsage().rss / 1_048_576);
  process.stdout.write(
    `${contender.padEnd(15)} set-up ${((readyAtMs - setUpAtMs) / 1_000).toFixed(1)} s, CPU ${(cpu / rounds).toFixed(2)} s a round, ${memory} MiB\n\n`,
  );
}

/**
 * Delays by slot, from the stream of the queue's events: an entry's id begins with Redis's time in
 * milliseconds.
 */
async function delaysBySlot(): Promise<Map<number, number[]>> {
  const delays = new Map<number, number[]>();
  let from = "-";
  for (;;) {
    const entries = await redis.xrange(`${prefix}:${queueName}:events`, from, "+", "COUNT", 5_000);
    for (const [id, fields] of entries) {
      const event = new Map(
        fields.flatMap((field, index) => (index % 2 === 0 ? [[field, fields[index + 1]]] : [])) as [string, string][],
      );
      if (event.get("event") !== "waiting") continue;
      const number = Number(/(\d+)$/.exec(event.get("jobId") ?? "")?.[1]);
      const slotMs = number < 100_000_000_000 ? number * 1_000 : number;
      const queuedMs = Number(id.split("-", 1)[0]);
      const known = delays.get(slotMs);
      if (known === undefined) delays.set(slotMs, [queuedMs - slotMs]);
      else known.push(queuedMs - slotMs);
    }
    const last = entries.at(-1)?.[0];
    if (last === undefined || entries.length < 5_000) return delays;
    from = `(${last}`;
  }
}
