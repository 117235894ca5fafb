// What reading a long list costs: feeds.ts [--items N] [--item-bytes N] [--rounds N]
// [--answer-after MS] [--polls]. Not part of `npm test`.
//
// In turns, each in a process of its own and over the same pages of the same fake service: a bare
// got loop that keeps nothing, a first walk as a worker does it (mapping, hashing, the feed store
// in a private Redis, a checkpoint a page), and an audit, which reads the same items again. Then
// the polls: how many requests a walk makes after k new items, in a list that grows at its end and
// in one with the newest first.
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { BenchChild } from "./child.ts";
import { noteFigure } from "./figures.ts";
import { median, redisBytes, redisCpuMs } from "./redis-figures.ts";

const { values: given } = parseArgs({
  options: {
    items: { type: "string", default: "1000000" },
    "item-bytes": { type: "string", default: "512" },
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

const ratios = { walk: [] as number[], audit: [] as number[] };
for (let round = 1; round <= Number(given.rounds); round += 1) await compare(round);
for (const [how, some] of Object.entries(ratios))
  print(`${how} ÷ bare: ${median(some).toFixed(2)} (median of ${some.length})`);
if (given.polls) {
  await polls("grows at its end", 0);
  await polls("newest first", 1);
}
await service.stop();
redis.disconnect();
await server.stop();
process.exit(0);

async function compare(round: number): Promise<void> {
  const [answerAfterMs, itemBytes] = [Number(given["answer-after"]), Number(given["item-bytes"])];
  await service.ask("configure", { items, itemBytes, answerAfterMs, newestFirst: 0 });
  const bare = await measure("bare", reader(`round-${round}`));
  for (const how of ["walk", "audit"] as const) {
    // Each in a process of its own: what the first one compiled must not help the second.
    ratios[how].push((await measure(how, reader(`round-${round}`))) / bare);
  }
}

/** Items a second. */
async function measure(how: string, child: BenchChild): Promise<number> {
  const { cpuMs: cpuBeforeMs = 0 } = await child.ask("cpu");
  const before = { redisBytes: await redisBytes(redis), redisMs: await redisCpuMs(redis) };
  const seen = await child.ask(how);
  const { cpuMs = 0 } = await child.ask("cpu");
  if (seen["items"] !== items) throw new Error(`${how}: ${seen["items"]} items instead of ${items}`);
  const perSecond = items / ((seen["ms"] ?? 0) / 1_000);
  const grown = (await redisBytes(redis)) - before.redisBytes;
  print(
    `${how.padEnd(5)} ${items} items: ${perSecond.toFixed(0)} a second, CPU ${(((cpuMs - cpuBeforeMs) * 1_000) / items).toFixed(1)} µs an item ` +
      `(Redis ${((((await redisCpuMs(redis)) - before.redisMs) * 1_000) / items).toFixed(1)} µs, ${(grown / items).toFixed(1)} bytes), ` +
      `memory ${mib(seen["idle"])} idle, ${mib(seen["rssMax"])} at most`,
  );
  const by = how === "walk" ? {} : { by: how };
  const about = `a list, answers after ${given["answer-after"]} ms`;
  const isSlow = given["answer-after"] !== "0";
  const goal = { times: isSlow ? 0.97 : 0.6, of: "bare" };
  noteFigure({ ...by, what: about, unit: "items a second", wants: "more", value: perSecond, goal });
  if (!isSlow) {
    const costs = { ...by, wants: "less" } as const;
    const itemUs = ((cpuMs - cpuBeforeMs) * 1_000) / items;
    noteFigure({ ...costs, what: `${about}: CPU of an item`, unit: "µs", value: itemUs, goal: 14 });
    const above = ((seen["rssMax"] ?? 0) - (seen["idle"] ?? 0)) / 1_048_576;
    noteFigure({ ...costs, what: `${about}: memory above idle`, unit: "MiB", value: above, goal: 64 });
  }
  await child.stop();
  return perSecond;
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
