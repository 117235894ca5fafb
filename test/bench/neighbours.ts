// Whether a service that hangs on every request delays the starts of another one (P7). Part of `npm run bench`.
//
// One Syncline worker, three services: `main` and `other` answer. Rounds alternate: with `third` full of tasks and hanging, and
// with `third` idle (or `--control well`). In each of them single starts of `main` and `other` are added at an even pace. Latency: from the adding to the arrival of the request at the service. The ratio is p99 ÷ p99 of two rounds
// side by side; two rounds of the same kind, compared in the same way, show how much of that is noise.
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { silentLog } from "../../src/core/event-log.ts";
import { Producer } from "../../src/queue/producer.ts";
import { tasksOf } from "../../src/schedule/slot-tasks.ts";
import { benchPrefix, benchSet, policyOf } from "./bench-app.ts";
import { BenchChild } from "./child.ts";
import { median } from "./redis-figures.ts";

const { values: given } = parseArgs({
  options: {
    rounds: { type: "string", default: "6" },
    starts: { type: "string", default: "200" },
    /** What a round is compared with: `idle`, the third service has nothing to do, or `well`, it does the same tasks and answers. */
    control: { type: "string", default: "idle" },
    every: { type: "string", default: "30" },
  },
});
const rounds = Number(given.rounds);
const starts = Number(given.starts);
const everyMs = Number(given.every);
const fill = 200;
const names = ["main", "other", "third"];

const server = await startPrivateRedis();
const children = names.map(() => new BenchChild("fake-service.ts", []));
const ports = await Promise.all(children.map((child) => child.ask("port")));
const services = Object.fromEntries(names.map((name, index) => [name, `http://127.0.0.1:${ports[index]?.["port"]}`]));
const third = children[2];
if (third === undefined) throw new Error("no third service");
const set = await benchSet({ services, concurrency: 8 });
const worker = new BenchChild("app-process.ts", [server.url, "8", ...names.map((name) => `${name}=${services[name]}`)]);
await worker.ask("cpu");
const producer = new Producer({ url: server.url, prefix: benchPrefix }, silentLog);
const redis = new Redis(server.url);
let jobs = 0;

await round(false);
const well: number[][] = [];
const hanging: number[][] = [];
for (let count = 0; count < rounds; count += 1) {
  // The order changes, so that whatever drifts does not favour one of them.
  const kinds = count % 2 === 0 ? [false, true] : [true, false];
  for (const isHanging of kinds) (isHanging ? hanging : well).push(await round(isHanging));
}
report();
await worker.stop();
await producer.close();
for (const child of children) await child.stop();
redis.disconnect();
await server.stop();
process.exit(0);

/** Latencies of one round in milliseconds. */
async function round(isHanging: boolean): Promise<number[]> {
  await third?.ask("configure", { hang: isHanging ? 1 : 0 });
  if (isHanging || given.control === "well") await add("third", fill);
  for (const child of children.slice(0, 2)) await child.ask("forget");
  for (let count = 0; count < starts; count += 1) {
    const started = add(count % 2 === 0 ? "main" : "other", 1);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
    await started;
  }
  const latencies: number[] = [];
  const untilMs = performance.now() + 60_000;
  while (latencies.length < starts) {
    for (const child of children.slice(0, 2)) latencies.push(...Object.values(await child.ask("latencies")));
    if (performance.now() > untilMs) throw new Error(`${latencies.length} of ${starts} starts arrived`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await rest(isHanging);
  return latencies;
}

/** The next round begins with empty queues; what hangs is let go of, and answers. */
async function rest(isHanging: boolean): Promise<void> {
  if (isHanging) await third?.ask("configure", { hang: 0 });
  await third?.ask("drop");
  const untilMs = performance.now() + 120_000;
  while ((await busy()) > 0) {
    if (performance.now() > untilMs) throw new Error("the queues do not get empty");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function busy(): Promise<number> {
  const counts = await Promise.all(
    names.flatMap((name) => [
      redis.llen(`${benchPrefix}:${name}-actions:wait`),
      redis.llen(`${benchPrefix}:${name}-actions:active`),
      redis.zcard(`${benchPrefix}:${name}-actions:delayed`),
    ]),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** The slot is the instant of adding, which the service finds in the idempotency key. */
async function add(name: string, count: number): Promise<void> {
  const syncJobs = Array.from({ length: count }, () => {
    jobs += 1;
    return jobs;
  });
  const policy = { ...policyOf(set, `accepted-${name}`), action: { kind: "run", syncJobs } } as const;
  await producer.enqueue(tasksOf(policy, { slotMs: Date.now(), origin: "manual", covers: [] }));
}

function report(): void {
  const p99 = well.map((latencies, index) => ({ well: at(latencies, 0.99), hanging: at(hanging[index] ?? [], 0.99) }));
  const line = (label: string, all: readonly number[][]) =>
    process.stdout.write(
      `third service ${label}: start latency p50 ${at(all.flat(), 0.5)} ms, p99 ${at(all.flat(), 0.99)} ms; ` +
        `p99 by round ${all.map((latencies) => at(latencies, 0.99)).join(", ")}\n`,
    );
  process.stdout.write(`${rounds} pairs of rounds, ${starts} starts each, one every ${everyMs} ms\n`);
  line(given.control.padEnd(7), well);
  line("hanging", hanging);
  const ratio = median(p99.map((pair) => pair.hanging / pair.well));
  const pooled = at(hanging.flat(), 0.99) / at(well.flat(), 0.99);
  const noise = well.slice(1).map((latencies, index) => at(latencies, 0.99) / at(well[index] ?? [], 0.99));
  const spread = noise.toSorted((a, b) => a - b).map((one) => one.toFixed(2));
  process.stdout.write(
    `p99 hanging ÷ p99 ${given.control}: ${ratio.toFixed(2)} (median of the pairs), ${pooled.toFixed(2)} (all rounds together); ` +
      `${given.control} ÷ the ${given.control} one before: ${spread[0] ?? "-"}–${spread.at(-1) ?? "-"}\n`,
  );
}

function at(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
