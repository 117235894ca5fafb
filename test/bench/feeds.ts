// What reading a long list costs: feeds.ts [--items N] [--rounds N] [--answer-after MS]. Not part
// of `npm test`.
//
// In turns, each in a process of its own and over the same pages of the same fake service: one
// whole walk as a worker does it (mapping, hashing, the feed book in a private Redis, a checkpoint
// a page) and a bare got loop that keeps nothing. Then the polls: how many requests a walk makes
// after k new items, in a list that grows at its end and in one with the newest first.
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { BenchChild } from "./child.ts";
import { median, redisBytes, redisCpuMs } from "./redis-figures.ts";

const { values: given } = parseArgs({
  options: {
    items: { type: "string", default: "1000000" },
    rounds: { type: "string", default: "1" },
    "answer-after": { type: "string", default: "0" },
    polls: { type: "boolean", default: false },
  },
});
const items = Number(given.items);
const mib = (bytes = 0) => `${(bytes / 1_048_576).toFixed(0)} MiB`;
const print = (line: string) => process.stdout.write(`${line}\n`);

const server = await startPrivateRedis();
const redis = new Redis(server.url);
const service = new BenchChild("long-list.ts", []);
const { port } = await service.ask("port");
const serviceUrl = `http://127.0.0.1:${port}`;
const reader = (name: string) => new BenchChild("list-reader.ts", [serviceUrl, server.url, name]);
const requests = async () => (await service.ask("counts"))["requests"] ?? 0;

const ratios: number[] = [];
for (let round = 1; round <= Number(given.rounds); round += 1) await compare(round);
print(`walk ÷ bare: ${median(ratios).toFixed(2)} (median of ${ratios.length})`);
if (given.polls) {
  await polls("grows at its end", 0);
  await polls("newest first", 1);
}
await service.stop();
redis.disconnect();
await server.stop();
process.exit(0);

async function compare(round: number): Promise<void> {
  await service.ask("configure", { items, answerAfterMs: Number(given["answer-after"]), newestFirst: 0 });
  const rates = new Map<string, number>();
  for (const how of ["bare", "walk"]) {
    const child = reader(`round-${round}`);
    const { cpuMs: cpuBeforeMs = 0 } = await child.ask("cpu");
    const before = { redisBytes: await redisBytes(redis), redisMs: await redisCpuMs(redis) };
    const seen = await child.ask(how);
    const { cpuMs = 0 } = await child.ask("cpu");
    if (seen["items"] !== items) throw new Error(`${how}: ${seen["items"]} items instead of ${items}`);
    const perSecond = items / ((seen["ms"] ?? 0) / 1_000);
    rates.set(how, perSecond);
    const grown = (await redisBytes(redis)) - before.redisBytes;
    print(
      `${how.padEnd(4)} ${items} items: ${perSecond.toFixed(0)} a second, CPU ${(((cpuMs - cpuBeforeMs) * 1_000) / items).toFixed(1)} µs an item ` +
        `(Redis ${((((await redisCpuMs(redis)) - before.redisMs) * 1_000) / items).toFixed(1)} µs, ${(grown / items).toFixed(1)} bytes), ` +
        `memory ${mib(seen["idle"])} idle, ${mib(seen["rssMax"])} at most`,
    );
    await child.stop();
  }
  ratios.push((rates.get("walk") ?? Number.NaN) / (rates.get("bare") ?? Number.NaN));
}

async function polls(what: string, newestFirst: number): Promise<void> {
  await redis.flushall();
  let there = items;
  const child = reader(`polls-${newestFirst}`);
  const walk = async (fresh: number): Promise<number> => {
    there += fresh;
    await service.ask("configure", { items: there, newestFirst, answerAfterMs: 0 });
    const before = await requests();
    const seen = await child.ask("walk");
    if (seen["items"] !== there) throw new Error(`${what}: ${seen["items"]} items instead of ${there}`);
    return (await requests()) - before;
  };
  await walk(0);
  // What the order is shows only while the list grows.
  for (let round = 0; round < 3; round += 1) await walk(1);
  for (const fresh of [0, 1, 50, 100, 250, 1_000]) {
    const made = await walk(fresh);
    const most = 2 + Math.ceil(fresh / 100);
    print(
      `poll, ${what}, ${items} items, ${fresh} new: ${made} requests (goal ${most})${made > most ? " MISSED" : ""}`,
    );
  }
  await child.stop();
}
