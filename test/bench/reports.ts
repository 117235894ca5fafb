// How long `status` and `report` take over a long memory, and what it costs in Redis: reports.ts
// [--policies 5000] [--days 400] [--runs 1]. A private Redis with as many days of each policy as
// the recorder would have left; then the commands, each in a process of its own.
import { spawnSync } from "node:child_process";
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { openStore } from "../../src/store/redis.ts";
import { keepSet } from "../support/kept-set.ts";
import { testPolicy } from "../support/policies.ts";
import { writeDays, writeEnds } from "./long-memory.ts";
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
await writeEnds(
  store,
  names.map((name) => ({ name })),
  nowMs - days * dayMs,
);
const statesBytes = (await redisBytes(redis)) - emptyBytes;
await writeDays(store, names, { days, runs, nowMs });
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
  const { stdout } = spawnSync("/usr/bin/time", wrap, { maxBuffer: 1e9, stdio: ["ignore", "pipe", "inherit"] });
  say(`  ${args.join(" ")}: ${stdout.length} B printed`);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
