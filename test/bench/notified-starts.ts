// Whether a receiver that is down delays starts, and whether every outcome reaches it afterwards.
// Two workers side by side on one Redis, with policies of which each outcome is told: the receiver
// of `up` answers, that of `down` is not there.
//
// outcomes to both (10,000) ─▶ pairs of rounds: latency of single starts of `up`, of `down`, … ─▶ kill -9 of both ─▶ as many pairs again
//   ─▶ the receiver comes back ─▶ everything arrived? once at least, in order of each policy, the same body each time
//
// Latency: from the adding of a task to the arrival of its request at the service. The ratio is p99
// ÷ p99 of two rounds side by side.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { silentLog } from "../../src/core/event-log.ts";
import { Producer } from "../../src/queue/producer.ts";
import { tasksOf } from "../../src/schedule/slot-tasks.ts";
import { Receiver } from "../support/receiver.ts";
import { BenchChild } from "./child.ts";
import { notifiedSet, policiesCount } from "./notified-set.ts";
import { median, monotonicMs, quantile } from "./redis-figures.ts";

const { values: given } = parseArgs({
  options: {
    outcomes: { type: "string", default: "10000" },
    pairs: { type: "string", default: "10" },
    starts: { type: "string", default: "200" },
    every: { type: "string", default: "20" },
  },
});
const outcomes = Number(given.outcomes);
const pairs = Number(given.pairs);
const starts = Number(given.starts);
const addedMs = new Map<string, number>();
const everyMs = Number(given.every);

/** One worker, its receiver, and how many outcomes it has had. */
interface Side {
  readonly name: string;
  readonly prefix: string;
  readonly hook: Receiver;
  readonly hookUrl: string;
  readonly producer: Producer;
  worker: BenchChild;
  asked: number;
}

const folder = mkdtempSync(join(tmpdir(), "syncline-bench-"));
const secretFile = join(folder, "secret");
writeFileSync(secretFile, `whsec_${Buffer.alloc(32, 1).toString("base64")}`);
const server = await startPrivateRedis();
const redis = new Redis(server.url);
const service = new BenchChild("fake-service.ts", []);
const serviceUrl = `http://127.0.0.1:${(await service.ask("port"))["port"]}`;
const set = await notifiedSet({ serviceUrl, hookUrl: "http://127.0.0.1:1/", secretFile });
let added = 0;
const up = await createSide("up");
const down = await createSide("down");
const sides = [up, down] as const;
await down.hook.stop();

for (const side of sides) await fill(side);
const ratios: number[] = [];
const latencies = { up: [] as number[], down: [] as number[] };
for (const half of [0, 1]) {
  for (const side of sides) await round(side);
  for (let pair = 0; pair < pairs / 2; pair += 1) await measure(pair + half);
  if (half === 0) await killBoth();
}
await rest(up);
const waiting = await redis.llen(`${down.prefix}:sink.hook:wait`);
const back = new Receiver();
const backAtMs = performance.now();
await back.start(Number(new URL(down.hookUrl).port));
await back.until(() => new Set(back.accepted).size >= down.asked);
const tookMs = performance.now() - backAtMs;
report();
for (const { worker, producer } of sides) {
  await worker.stop();
  await producer.close();
}
await service.stop();
await up.hook.stop();
await back.stop();
redis.disconnect();
await server.stop();
rmSync(folder, { recursive: true });
process.exit();

async function createSide(name: string): Promise<Side> {
  const prefix = `bench-${name}`;
  const hook = await new Receiver().start();
  const producer = new Producer({ url: server.url, prefix }, silentLog);
  const worker = await startWorker({ prefix, hookUrl: hook.url });
  return { name, prefix, hook, hookUrl: hook.url, producer, worker, asked: 0 };
}

async function startWorker({ prefix, hookUrl }: Pick<Side, "prefix" | "hookUrl">): Promise<BenchChild> {
  const worker = new BenchChild("notified-app.ts", [server.url, prefix, serviceUrl, hookUrl, secretFile]);
  await worker.ask("cpu");
  return worker;
}

/**
 * Policies take turns, and none begins before its last one is over: their order is that of their
 * slots.
 */
async function add(side: Side, count: number): Promise<void> {
  const slotMs = Date.now();
  const tasks = Array.from({ length: count }, () => {
    added += 1;
    const policy = set.policies[side.asked % policiesCount];
    if (policy === undefined) throw new Error("no policy");
    side.asked += 1;
    return tasksOf({ ...policy, action: { kind: "run", syncJobs: [added] } }, { slotMs, origin: "manual", covers: [] });
  });
  for (const { id } of tasks.flat()) addedMs.set(id, monotonicMs());
  await side.producer.enqueue(tasks.flat());
}

async function fill(side: Side): Promise<void> {
  while (side.asked < outcomes) {
    await add(side, policiesCount);
    await over(side);
  }
  await service.ask("forget");
  await rest(side);
}

/** Waits until every start has its outcome. */
async function over(side: Side): Promise<void> {
  await until(async () => {
    const indexes = set.policies.map(({ name }) => redis.zcard(`${side.prefix}:outcome-index:${name}`));
    return (await Promise.all(indexes)).reduce((sum, count) => sum + count, 0) >= side.asked;
  }, `outcomes of ${side.name}`);
}

/** Waits until what can be told is told. */
async function rest(side: Side): Promise<void> {
  await over(side);
  if (side === up) await until(async () => new Set(up.hook.accepted).size >= up.asked, "notices");
  else await until(async () => (await queued()) >= down.asked, "notices that wait");
}

async function queued(): Promise<number> {
  const key = `${down.prefix}:sink.hook`;
  const [wait, active, delayed] = await Promise.all([
    redis.llen(`${key}:wait`),
    redis.llen(`${key}:active`),
    redis.zcard(`${key}:delayed`),
  ]);
  return wait + active + delayed;
}

async function until(holds: () => Promise<boolean>, what: string): Promise<void> {
  const giveUpMs = performance.now() + 300_000;
  while (!(await holds())) {
    if (performance.now() > giveUpMs) throw new Error(`${what}: not there after 5 minutes`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Latencies of one round in milliseconds. */
async function round(side: Side): Promise<number[]> {
  for (let count = 0; count < starts; count += 1) {
    const adding = add(side, 1);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
    await adding;
  }
  await rest(side);
  const arrivals = Object.entries(await service.ask("arrivals"));
  const seen = arrivals.map(([id, atMs]) => atMs - (addedMs.get(id) ?? Number.NaN));
  addedMs.clear();
  await service.ask("forget");
  if (seen.length !== starts) throw new Error(`${seen.length} of ${starts} starts arrived`);
  return seen;
}

/** Two rounds side by side; the order changes, so that whatever drifts favours neither. */
async function measure(pair: number): Promise<void> {
  const order = pair % 2 === 0 ? [up, down] : [down, up];
  const seen = new Map<Side, number[]>();
  for (const side of order) seen.set(side, await round(side));
  latencies.up.push(...(seen.get(up) ?? []));
  latencies.down.push(...(seen.get(down) ?? []));
  ratios.push(quantile(seen.get(down) ?? [], 0.99) / quantile(seen.get(up) ?? [], 0.99));
}

/** Both, so that both go on equally cold. */
async function killBoth(): Promise<void> {
  for (const side of sides) {
    process.kill(side.worker.pid, "SIGKILL");
    side.worker = await startWorker(side);
  }
}

function report(): void {
  const byId = Map.groupBy(back.received, ({ id }) => id);
  const first = [...byId.values()].map(([one]) => JSON.parse(one?.body ?? ""));
  const byPolicy = Map.groupBy(first, ({ partitionkey }) => String(partitionkey));
  const inOrder = [...byPolicy.values()].every((all) => {
    const slots = all.map(({ data }) => String(data.slot));
    return slots.every((slot, index) => index === 0 || slot >= (slots[index - 1] ?? ""));
  });
  const sameBody = [...byId.values()].every((all) => new Set(all.map(({ body }) => body)).size === 1);
  const tasks = new Set(first.map(({ data }) => data.taskId)).size;
  const show = (all: readonly number[]) =>
    `p50 ${quantile(all, 0.5).toFixed(1)} ms, p99 ${quantile(all, 0.99).toFixed(1)} ms`;
  const sorted = ratios.toSorted((a, b) => a - b).map((one) => one.toFixed(2));
  const pooled = quantile(latencies.down, 0.99) / quantile(latencies.up, 0.99);
  const lines = [
    `outcomes while the receiver was down: ${down.asked} of ${policiesCount} policies, ${waiting} notices waiting at the end; workers killed: 1`,
    `arrived: ${tasks} of ${down.asked}; twice: ${back.received.length - byId.size}; in order of each policy: ${inOrder}; the same body each time: ${sameBody}`,
    `all of them ${(tookMs / 1_000).toFixed(0)} s after it was back`,
    `start latency, receiver up: ${show(latencies.up)}; down: ${show(latencies.down)} (${ratios.length} pairs of ${starts} starts, one every ${everyMs} ms)`,
    `p99 down ÷ p99 up: ${median(ratios).toFixed(2)} (median of the pairs; ${sorted[0]}–${sorted.at(-1)}), ${pooled.toFixed(2)} (all rounds together)`,
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  if (tasks < down.asked || !inOrder || !sameBody) process.exitCode = 1;
}
