// How long `status` and `report` take over a long memory, and what it costs in Redis: reports.ts
// [--policies 5000] [--days 400] [--runs 1]. A private Redis with as many days of each policy as
// the recorder would have left; then the commands, each in a process of its own.
import { execFileSync } from "node:child_process";
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { batchesOf } from "../../src/store/batches.ts";
import { outcomeDay } from "../../src/store/day-summaries.ts";
import { History } from "../../src/store/history.ts";
import { openStore } from "../../src/store/redis.ts";
import { keepSet } from "../support/kept-set.ts";
import { testOutcome } from "../support/outcomes.ts";
import { testPolicy } from "../support/policies.ts";
import { redisBytes } from "./redis-figures.ts";

const { values: given } = parseArgs({
  options: {
    policies: { type: "string", default: "5000" },
    days: { type: "string", default: "400" },
    runs: { type: "string", default: "1" },
  },
});
const [policies, days, runs] = [Number(given.policies), Number(given.days), Number(given.runs)];
const dayMs = 86_400_000;
const nowMs = Date.now();
const server = await startPrivateRedis();
const redis = new Redis(server.url);
const prefix = "{bench}";
const store = await openStore({ url: server.url, prefix });
const names = Array.from({ length: policies }, (_, index) => `contracts-nightly-${index}`);
await keepSet(
  store,
  names.map((name) => testPolicy({ name })),
);
const emptyBytes = await redisBytes(redis);
await history();
const statesBytes = (await redisBytes(redis)) - emptyBytes;
await seedDays();
const bytes = (await redisBytes(redis)) - emptyBytes - statesBytes;
say(
  `${policies} policies, ${days} days of ${runs}: ${(bytes / 1_048_576).toFixed(0)} MiB, ${(bytes / policies / days).toFixed(0)} B a policy and day`,
);
say(`a state: ${await redis.memory("USAGE", `${prefix}:policy-state:${names[0]}`, "SAMPLES", 0)} B`);
for (const args of [
  ["report", "--since", "30d"],
  ["report", "--since", "200d"],
  ["report", "--since", "30d", "--json"],
  ["status"],
])
  command(args);
await store.close();
redis.disconnect();
await server.stop();

/** One outcome a policy, so that each has a state. */
async function history(): Promise<void> {
  const written = new History(store);
  for (const batch of batchesOf(names, 100))
    await Promise.all(batch.map((policy) => written.record(outcomeOf(policy, nowMs - days * dayMs, 0))));
}

/** Days as lua/include/day-summary.lua writes them: 100 different ones, a policy at a time. */
async function seedDays(): Promise<void> {
  const texts = Array.from({ length: 100 }, (_, seed) => dayText(seed));
  const dates = Array.from({ length: days }, (_, day) => new Date(nowMs - day * dayMs).toISOString().slice(0, 10));
  const months = [...Map.groupBy(dates.entries(), ([, date]) => date.slice(0, 7))];
  for (const [index, policy] of names.entries()) {
    const pipeline = redis.pipeline();
    for (const [month, some] of months) {
      const fields = some.flatMap(([day, date]) => [date.slice(8), texts[(index + day * 7) % texts.length] ?? ""]);
      pipeline.hset(store.key("days", policy, month), ...fields);
    }
    await pipeline.exec();
  }
}

function dayText(seed: number): string {
  const counts = new Map<string, number>();
  for (let run = 0; run < runs; run += 1) {
    const { change } = outcomeDay(store, outcomeOf("seeded", nowMs, seed + run * 13), "UTC");
    for (const [, name = "", count] of change.slice(2).matchAll(/([A-Za-z]+)(\d+)/g))
      counts.set(
        name,
        name === "L" ? Math.max(counts.get(name) ?? 0, Number(count)) : (counts.get(name) ?? 0) + Number(count),
      );
  }
  return [...counts].map(([name, count]) => `${name}${count}`).join("");
}

/** Of 33, one fails and one finds conflicts; durations vary by a third around a minute. */
function outcomeOf(policy: string, slotMs: number, seed: number) {
  const status = seed % 33 === 0 ? "failed" : seed % 33 === 1 ? "conflicts" : "succeeded";
  const at = new Date(slotMs).toISOString();
  const durationMs = 45_000 + ((seed * 7_919) % 30_000);
  return testOutcome({ taskId: `${policy}__run__42__${slotMs}`, policy, slot: at, finishedAt: at, status, durationMs });
}

function command(args: readonly string[]): void {
  const wrap = [
    "-f",
    "%e s, CPU %U s, %M KiB",
    process.execPath,
    "src/main.ts",
    ...args,
    "--redis-url",
    server.url,
    "--prefix",
    prefix,
  ];
  let printed = 0;
  try {
    printed = execFileSync("/usr/bin/time", wrap, { maxBuffer: 1e9, stdio: ["ignore", "pipe", "inherit"] }).length;
  } catch {
    // `status` ends with exit code 1: no process is alive here.
  }
  say(`  ${args.join(" ")}: ${printed} B printed`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
