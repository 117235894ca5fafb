// How fast starts go out: Syncline with every promise on, against a bare BullMQ + got worker
// without any. Part of `npm run bench`.
//
// Every contender is a process of its own, on the same private Redis and the same fake service (a
// process too), with the same concurrency. They take turns: A B C A B C …, each round a bulk of
// tasks added by this process; a round ends when the queue holds all of them as completed, which
// for Syncline is after the outcome stands in the history and in the log. Ratios are of the
// medians. `bare`: got as it is, with kept connections. `bare-fresh`: got with one connection a
// request. Syncline opens one for each start, too, but before the request is made. `graphile`:
// graphile-worker with got, on a private PostgreSQL, where it is installed (graphile-peer.ts).
import { parseArgs } from "node:util";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { silentLog } from "../../src/core/event-log.ts";
import { Producer } from "../../src/queue/producer.ts";
import { queueName, taskOptions } from "../../src/queue/queues.ts";
import { tasksOf } from "../../src/schedule/slot-tasks.ts";
import { bareQueue } from "./bare-queue.ts";
import { benchPrefix, benchSet, policyOf } from "./bench-app.ts";
import { BenchChild } from "./child.ts";
import { noteFigure } from "./figures.ts";
import { graphileMissing } from "./graphile-peer.ts";
import { commandCalls, median, redisCpuMs } from "./redis-figures.ts";

const { values: given } = parseArgs({
  options: {
    starts: { type: "string", default: "500" },
    rounds: { type: "string", default: "15" },
    concurrency: { type: "string", default: "20" },
    /**
     * How long the service takes for an answer, in milliseconds; several, with commas between, are
     * measured one after the other.
     */
    "answer-after": { type: "string", default: "0" },
    /** `accepted`, as the peers do, or `settled`: every run is followed to its end. */
    until: { type: "string", default: "accepted" },
    only: { type: "string" },
    commands: { type: "boolean", default: false },
  },
});
const isWanted = (name: string) => given.only === undefined || given.only.split(",").includes(name);
const missing = graphileMissing();
const peers = ["bare", "bare-fresh", ...(missing === undefined ? ["graphile"] : [])].filter(isWanted);
const tableHead = `| service answers after | syncline, starts/s | ${peers.join(" | ")} | ${peers.map((peer) => `÷ ${peer} (middle half)`).join(" | ")} |
|---|${"--:|".repeat(1 + 2 * peers.length)}`;
const starts = Number(given.starts);
const rounds = Number(given.rounds);
const concurrency = Number(given.concurrency);
/** What starts a second should be at least, against each peer. */
const goal = 0.8;

interface Contender {
  readonly name: string;
  readonly child: BenchChild;
  /** How many of its tasks are over. */
  readonly done: () => Promise<number>;
  readonly add: (round: number) => Promise<unknown>;
}

interface Round {
  readonly perSecond: number;
  readonly cpuMs: number;
  readonly redisCpuMs: number;
  readonly sent: number;
  readonly run: number;
}

const server = await startPrivateRedis();
const redis = new Redis(server.url);
const service = new BenchChild("fake-service.ts", []);
const { port } = await service.ask("port");
const serviceUrl = `http://127.0.0.1:${port}`;
const producer = new Producer({ url: server.url, prefix: benchPrefix }, silentLog);
const set = await benchSet({ services: { main: serviceUrl }, concurrency });
if (missing !== undefined) process.stdout.write(`graphile-worker is not measured: ${missing}\n`);
const contenders = [
  ...(isWanted("syncline") ? [syncline()] : []),
  ...peers.map((peer) => (peer === "graphile" ? graphile() : bare(peer))),
];
await Promise.all(contenders.map(({ child }) => child.ask("cpu")));

let added = 0;
const summary: string[] = [];
const ratiosOf = new Map(peers.map((peer) => [peer, new Map<number, number>()]));
for (const answerAfterMs of given["answer-after"].split(",").map(Number)) {
  await service.ask("configure", { answerAfterMs, runMs: 0 });
  summary.push(report(await compare(), answerAfterMs));
}
if (summary.length > 1) process.stdout.write(`\n${[tableHead, ...summary].join("\n")}\n`);
for (const peer of peers) {
  const told = [...(ratiosOf.get(peer) ?? [])].map(([ms, ratio]) => `${ms} ms ${ratio >= goal ? "yes" : "no"}`);
  process.stdout.write(`at least ${goal} of ${peer} where the service answers after: ${told.join(", ")}\n`);
}
for (const { child } of contenders) await child.stop();
await producer.close();
await service.stop();
redis.disconnect();
await server.stop();
process.exit(0);

function child(name: string): BenchChild {
  return new BenchChild("start-contender.ts", [name, server.url, serviceUrl, String(concurrency)]);
}

function syncline(): Contender {
  const policy = policyOf(set, `${given.until}-main`);
  return {
    name: "syncline",
    child: child("syncline"),
    done: () => redis.zcard(`${benchPrefix}:${queueName("main", "actions")}:completed`),
    add: (round) => {
      const syncJobs = Array.from({ length: starts }, (_, index) => round * starts + index + 1);
      const slot = { slotMs: Date.now(), origin: "manual", covers: [] } as const;
      return producer.enqueue(tasksOf({ ...policy, action: { kind: "run", syncJobs } }, slot));
    },
  };
}

function bare(name: string): Contender {
  const queue = new Queue(bareQueue(name), { connection: { url: server.url }, prefix: benchPrefix });
  return {
    name,
    child: child(name),
    done: () => redis.zcard(`${benchPrefix}:${bareQueue(name)}:completed`),
    add: (round) =>
      queue.addBulk(
        Array.from({ length: starts }, (_, index) => ({
          name: "run",
          data: { target: String(round * starts + index + 1) },
          opts: { ...taskOptions, jobId: `run-${round}-${index}` },
        })),
      ),
  };
}

function graphile(): Contender {
  const worker = new BenchChild("peers/graphile.mjs", [serviceUrl, String(concurrency)]);
  return {
    name: "graphile",
    child: worker,
    done: async () => (await worker.ask("done"))["done"] ?? 0,
    add: (round) => worker.ask("add", { from: round * starts + 1, to: (round + 1) * starts }),
  };
}

/** All rounds of all contenders, in turns. The first round warms up and is not counted. */
async function compare(): Promise<ReadonlyMap<string, Round[]>> {
  const results = new Map<string, Round[]>(contenders.map(({ name }) => [name, []]));
  for (let round = 0; round <= rounds; round += 1, added += 1) {
    for (const contender of contenders) {
      const result = await measure(contender, added);
      if (round > 0) results.get(contender.name)?.push(result);
    }
  }
  return results;
}

async function measure({ name, child, done, add }: Contender, round: number): Promise<Round> {
  const wanted = (round + 1) * starts;
  const startsBefore = (await service.ask("counts"))["starts"] ?? 0;
  const before = { ...(await child.ask("cpu")), ...(await child.ask("sent")) };
  await redis.config("RESETSTAT");
  const redisBefore = await redisCpuMs(redis);
  const atMs = performance.now();
  await add(round);
  let looks = 0;
  while ((await done()) < wanted) {
    looks += 1;
    if (performance.now() - atMs > 120_000) throw new Error(`${name}: ${starts} starts take more than two minutes`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const seconds = (performance.now() - atMs) / 1_000;
  const redisAfter = await redisCpuMs(redis);
  const calls = await commandCalls(redis);
  const after = { ...(await child.ask("cpu")), ...(await child.ask("sent")) };
  const arrived = ((await service.ask("counts"))["starts"] ?? 0) - startsBefore;
  if (arrived !== starts) throw new Error(`${name}: ${arrived} starts arrived instead of ${starts}`);
  await service.ask("forget");
  if (given.commands && round % (rounds + 1) === rounds) {
    const top = [...calls].sort(([, a], [, b]) => b - a).slice(0, 24);
    process.stdout.write(
      `${name}: ${top.map(([command, count]) => `${command} ${(count / starts).toFixed(2)}`).join(", ")}\n`,
    );
  }
  // Without those of the looks, which go to another server where the peer has one.
  const run = Math.max(0, [...calls.values()].reduce((sum, count) => sum + count, 0) - looks);
  return {
    perSecond: starts / seconds,
    cpuMs: ((after["cpuMs"] ?? 0) - (before["cpuMs"] ?? 0)) / starts,
    redisCpuMs: (redisAfter - redisBefore) / starts,
    sent: ((after["sent"] ?? 0) - (before["sent"] ?? 0)) / starts,
    run: run / starts,
  };
}

/** Prints what was measured; answers the line of the summary. */
function report(results: ReadonlyMap<string, Round[]>, answerAfterMs: number): string {
  const of = (name: string, figure: keyof Round) => median((results.get(name) ?? []).map((round) => round[figure]));
  process.stdout.write(
    `${rounds} rounds of ${starts} starts each, concurrency ${concurrency}, service answers after ${answerAfterMs} ms, ` +
      `follow until ${given.until}; medians\n`,
  );
  for (const { name } of contenders) {
    const all = (results.get(name) ?? []).map(({ perSecond }) => Math.round(perSecond));
    const about = `starts until ${given.until}, answers after ${answerAfterMs} ms`;
    const isHeld = name === "syncline" && given.until === "accepted" && answerAfterMs > 0;
    const aimed = isHeld ? { goal: { times: goal, of: "bare" } } : {};
    noteFigure({ what: about, unit: "a second", wants: "more", by: name, value: of(name, "perSecond"), ...aimed });
    noteFigure({ what: `${about}: CPU of one`, unit: "ms", wants: "less", by: name, value: of(name, "cpuMs") });
    process.stdout.write(
      `${name.padEnd(11)} ${of(name, "perSecond").toFixed(0).padStart(5)} starts/s (${Math.min(...all)}–${Math.max(...all)}), ` +
        `CPU ${of(name, "cpuMs").toFixed(2)} ms a start (Redis ${of(name, "redisCpuMs").toFixed(2)} ms), ` +
        `Redis commands a start: ${of(name, "sent").toFixed(1)} sent, ${of(name, "run").toFixed(1)} run\n`,
    );
  }
  const cells = peers.map((peer) => {
    const ratios = (results.get(peer) ?? []).map(
      ({ perSecond }, index) => (results.get("syncline")?.[index]?.perSecond ?? Number.NaN) / perSecond,
    );
    const sorted = ratios.toSorted((a, b) => a - b);
    const at = (share: number) => (sorted[Math.round((sorted.length - 1) * share)] ?? Number.NaN).toFixed(2);
    ratiosOf.get(peer)?.set(answerAfterMs, median(ratios));
    const cell = `${median(ratios).toFixed(2)} (${at(0.25)}–${at(0.75)})`;
    const cpu = (of("syncline", "cpuMs") / of(peer, "cpuMs")).toFixed(2);
    process.stdout.write(`syncline ÷ ${peer}: ${cell}, the middle half of the rounds in brackets; CPU ${cpu} times\n`);
    return cell;
  });
  const { format } = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
  const speeds = ["syncline", ...peers].map((name) => format(of(name, "perSecond")));
  return `| ${answerAfterMs} ms | ${[...speeds, ...cells].join(" | ")} |`;
}
