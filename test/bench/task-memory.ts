// What a task costs in Redis, from its start to what is kept of it: task-memory.ts [--tasks 2000].
// A private Redis, the real app, a service that costs nothing. Prints the bytes of each family of
// keys, a task; the table of docs/running.md is made of it.
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { silentLog } from "../../src/core/event-log.ts";
import { Producer } from "../../src/queue/producer.ts";
import { tasksOf } from "../../src/schedule/slot-tasks.ts";
import { benchPrefix, benchSet, policyOf } from "./bench-app.ts";
import { BenchChild } from "./child.ts";

const { values: given } = parseArgs({ options: { tasks: { type: "string", default: "2000" } } });
const tasks = Number(given.tasks);
const withinMs = 300_000;
const neverMs = -1;

for (const until of ["accepted", "settled"]) await measure(until);

/**
 * Starts as many runs as are asked for, weighs them while they are followed and after they have
 * ended.
 */
async function measure(until: string): Promise<void> {
  const server = await startPrivateRedis();
  const redis = new Redis(server.url);
  const service = new BenchChild("fake-service.ts", []);
  const { port } = await service.ask("port");
  await service.ask("configure", { runMs: neverMs });
  const services = { main: `http://127.0.0.1:${port}` };
  const worker = new BenchChild("app-process.ts", [server.url, "20", `main=${services.main}`]);
  const producer = new Producer({ url: server.url, prefix: benchPrefix }, silentLog);
  const policy = policyOf(await benchSet({ services, concurrency: 20 }), `${until}-main`);
  const syncJobs = Array.from({ length: tasks }, (_, index) => index + 1);
  const slot = { slotMs: Date.now(), origin: "manual", covers: [] } as const;
  await producer.enqueue(tasksOf({ ...policy, action: { kind: "run", syncJobs } }, slot));
  await reached(async () => (await service.ask("counts"))["starts"] ?? 0);
  if (until === "settled") await weigh(redis, "follow until settled, in flight");
  await service.ask("configure", { runMs: 0 });
  await reached(() => redis.zcard(`${benchPrefix}:outcome-index:${until}-main`));
  await weigh(redis, `follow until ${until}, ended`);
  await worker.stop();
  await producer.close();
  await service.stop();
  redis.disconnect();
  await server.stop();
}

async function weigh(redis: Redis, when: string): Promise<void> {
  const bytes = new Map<string, number>();
  for await (const keys of redis.scanStream({ match: `${benchPrefix}*`, count: 1_000 })) {
    for (const key of keys as string[]) {
      const family = familyOf(key);
      bytes.set(family, (bytes.get(family) ?? 0) + Number(await redis.memory("USAGE", key, "SAMPLES", 0)));
    }
  }
  const total = [...bytes.values()].reduce((sum, one) => sum + one, 0);
  process.stdout.write(`${when}: ${Math.round(total / tasks)} B a task, over ${tasks}\n`);
  for (const [family, sum] of [...bytes].toSorted(([, a], [, b]) => b - a)) {
    const each = Math.round(sum / tasks);
    if (each > 0) process.stdout.write(`  ${family}: ${each} B\n`);
  }
}

/** `bench:start:TASK` → `start`, `bench:main-actions:TASK` → `main-actions, a job`. */
function familyOf(key: string): string {
  const [, family = "", ...rest] = key.split(":");
  return rest.some((part) => part.includes("__")) ? `${family}, of each task` : [family, ...rest].join(":");
}

async function reached(count: () => Promise<number>): Promise<void> {
  const limitMs = performance.now() + withinMs;
  while ((await count()) < tasks) {
    if (performance.now() > limitMs) throw new Error(`not ${tasks} within ${withinMs / 1_000} s`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
