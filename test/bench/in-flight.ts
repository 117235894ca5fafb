// What many started runs cost while they go on: memory, requests, CPU, worker slots. Part of `npm
// run bench`.
//
// One Syncline worker; 10,000 runs of one repository are started and followed, and none ends: both
// feeds of the repository must be read by one reader each, whoever waits. After a while of
// watching, all of them finish at once, and all outcomes are awaited.
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { silentLog } from "../../src/core/event-log.ts";
import { Producer } from "../../src/queue/producer.ts";
import { tasksOf } from "../../src/schedule/slot-tasks.ts";
import { benchPrefix, benchSet, policyOf } from "./bench-app.ts";
import { BenchChild, type Figures } from "./child.ts";
import { noteFigure } from "./figures.ts";
import { redisBytes, redisCpuMs } from "./redis-figures.ts";

const { values: given } = parseArgs({
  options: { runs: { type: "string", default: "10000" }, seconds: { type: "string", default: "60" } },
});
const runs = Number(given.runs);
const seconds = Number(given.seconds);
const neverMs = -1;
const mebibyte = 1_048_576;
const eventsKey = `${benchPrefix}:main-actions:events`;

const server = await startPrivateRedis();
const redis = new Redis(server.url);
const service = new BenchChild("fake-service.ts", []);
const { port } = await service.ask("port");
const services = { main: `http://127.0.0.1:${port}` };
await service.ask("configure", { runMs: neverMs });
const worker = new BenchChild("app-process.ts", [server.url, "20", `main=${services.main}`]);
const set = await benchSet({ services, concurrency: 20 });
const producer = new Producer({ url: server.url, prefix: benchPrefix }, silentLog);

await show("before");
const begunAtMs = performance.now();
await enqueueAll();
await until("starts", async () => (await service.ask("counts"))["starts"] ?? 0);
say(`${runs} started in ${since(begunAtMs)} s`);
await show("all started");
await watch();
await service.ask("configure", { runMs: 0 });
const finishedAtMs = performance.now();
await until("outcomes", () => redis.zcard(`${benchPrefix}:outcome-index:settled-main`));
say(`all ${runs} outcomes ${since(finishedAtMs)} s after the service finished all runs at once`);
say(`outcomes: ${JSON.stringify(await outcomes())}`);
await show("all ended");
await worker.stop();
await producer.close();
await service.stop();
redis.disconnect();
await server.stop();
process.exit(0);

async function enqueueAll(): Promise<void> {
  const policy = policyOf(set, "settled-main");
  const batch = 1_000;
  for (let from = 0; from < runs; from += batch) {
    const count = Math.min(batch, runs - from);
    const syncJobs = Array.from({ length: count }, (_, index) => from + index + 1);
    const slot = { slotMs: Date.now(), origin: "manual", covers: [] } as const;
    await producer.enqueue(tasksOf({ ...policy, action: { kind: "run", syncJobs } }, slot));
  }
}

/**
 * Looks ten times a second for worker slots that are taken, counts the steps that end in sleep, and
 * says what the whole time cost.
 */
async function watch(): Promise<void> {
  const before = await figures();
  const taken: number[] = [];
  const fromMs = performance.now();
  let steps = 0;
  let last = await newestEvent();
  while (performance.now() - fromMs < seconds * 1_000) {
    taken.push(await redis.llen(`${benchPrefix}:main-actions:active`));
    const events = await redis.xrange(eventsKey, `(${last}`, "+");
    steps += events.filter(([, fields]) => fields.includes("delayed")).length;
    last = events.at(-1)?.[0] ?? last;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const after = await figures();
  const passed = (performance.now() - fromMs) / 1_000;
  const grown = (name: string) => (after[name] ?? 0) - (before[name] ?? 0);
  const mean = taken.reduce((sum, count) => sum + count, 0) / taken.length;
  say(`${runs} in flight for ${passed.toFixed(0)} s:`);
  say(`  requests: ${((grown("lists") / passed) * 60).toFixed(0)} pages a minute, all lists`);
  for (const list of ["activities", "conflictDetails"])
    say(`  walks of ${list}: ${((grown(list) / passed) * 60).toFixed(1)} a minute`);
  say(`  steps: ${(steps / passed).toFixed(0)} a second`);
  say(`  worker slots taken: ${mean.toFixed(1)} of 20 on average, ${Math.max(...taken)} at most`);
  const about = `${runs} runs in flight`;
  noteFigure({ what: `${about}: CPU of the worker`, unit: "ms a s", wants: "less", value: grown("cpuMs") / passed });
  noteFigure({ what: `${about}: worker slots taken`, unit: "of 20", wants: "less", value: mean });
  noteFigure({ what: `${about}: memory`, unit: "MiB", wants: "less", value: (after["rss"] ?? 0) / mebibyte });
  say(`  CPU: worker ${share(grown("cpuMs"), passed)}, Redis ${share(grown("redisCpuMs"), passed)} of a core`);
}

async function newestEvent(): Promise<string> {
  const [newest] = await redis.xrevrange(eventsKey, "+", "-", "COUNT", 1);
  return newest?.[0] ?? "0-0";
}

async function figures(): Promise<Figures> {
  const walks = Object.fromEntries(
    await Promise.all(["activities", "conflictDetails"].map(async (list) => [list, await walksOf(list)] as const)),
  );
  return {
    ...(await worker.ask("cpu")),
    ...(await service.ask("counts")),
    ...walks,
    redisCpuMs: await redisCpuMs(redis),
  };
}

async function walksOf(list: string): Promise<number> {
  const [key] = await redis.keys(`${benchPrefix}:feed:${list}-*`);
  return key === undefined ? 0 : Number(await redis.hget(key, "walks"));
}

async function show(when: string): Promise<void> {
  const { rss = 0, heapUsed = 0 } = await worker.ask("cpu");
  const held = await redisBytes(redis);
  const size = (bytes: number) => `${Math.round(bytes / mebibyte)} MiB`;
  say(`${when}: worker RSS ${size(rss)} (heap ${size(heapUsed)}), Redis ${size(held)}`);
}

async function outcomes(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const text of await redis.hvals(`${benchPrefix}:outcomes:settled-main`)) {
    const { status = "?" } = JSON.parse(text) as { status?: string };
    counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
}

async function until(what: string, count: () => Promise<number>): Promise<void> {
  const limitMs = performance.now() + 900_000;
  while ((await count()) < runs) {
    if (performance.now() > limitMs) throw new Error(`not ${runs} ${what} within 15 minutes`);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

function share(cpuMs: number, passed: number): string {
  return `${(cpuMs / passed / 10).toFixed(0)} %`;
}

function since(atMs: number): string {
  return ((performance.now() - atMs) / 1_000).toFixed(1);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
