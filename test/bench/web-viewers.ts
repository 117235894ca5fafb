// What viewers cost Redis, and the starts: web-viewers.ts [--policies 10000] [--seconds 20]
// [--blocks 4] [--shared]. Part of `npm run bench`. One Redis; the web server, a worker, the
// service and the viewers are processes of their own. Single starts come at an even pace, in turn
// beside nothing, beside 64 viewers and 50 requests a second, and beside the same of a plain
// server. Redis and the workers have one core, the role web and its viewers the other, as if apart;
// with --shared all take both, and the web server is to be compared with the plain one.
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import * as z from "zod";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { silentLog } from "../../src/core/event-log.ts";
import { Producer } from "../../src/queue/producer.ts";
import { tasksOf } from "../../src/schedule/slot-tasks.ts";
import { History } from "../../src/store/history.ts";
import { openStore } from "../../src/store/redis.ts";
import { createToken } from "../../src/web/tokens.ts";
import { testOutcome } from "../support/outcomes.ts";
import { benchPrefix, benchSet, policyOf } from "./bench-app.ts";
import { BenchChild } from "./child.ts";
import { noteFigure } from "./figures.ts";
import { commandCalls, median, monotonicMs, quantile, redisCpuMs } from "./redis-figures.ts";
import { webSet, writeInstallation } from "./web-installation.ts";

const { values: given } = parseArgs({
  options: {
    policies: { type: "string", default: "10000" },
    seconds: { type: "string", default: "20" },
    blocks: { type: "string", default: "4" },
    every: { type: "string", default: "20" },
    shared: { type: "boolean", default: false },
  },
});
const [blockMs, blocks, startEveryMs] = [Number(given.seconds) * 1_000, Number(given.blocks), Number(given.every)];
/** What stands beside the starts of a block. */
const kinds = ["nothing", "the web server", "a plain server"] as const;
type Kind = (typeof kinds)[number];
const webName = "web";
const viewersCount = 64;
const [slowUs, slowShown] = [1_000, 5];
/** Pages are told every two seconds, also as a block ends: what that costs is counted with it. */
const settleMs = 600;
const arriveWithinMs = 60_000;
const callers = Array.from({ length: 16 }, (_, index) =>
  createToken({ name: `caller-${index}`, scope: "read", services: [] }),
);
const files = ["lines", "tokens"].map((name) => join(tmpdir(), `syncline-bench-${name}-${process.pid}`));
const [lines = "", tokens = ""] = files;
writeFileSync(lines, callers.map(({ line }) => `${line}\n`).join(""));
writeFileSync(tokens, callers.map(({ token }) => token).join("\n"));

// Children take over the core that this process has when they begin.
if (!given.shared) bindTo(0);
const server = await startPrivateRedis();
const redis = new Redis(server.url);
const store = await openStore({ url: server.url, prefix: benchPrefix });
await writeInstallation(store, webSet(Number(given.policies)), { days: 30, slots: 30 });
await redis.call("ACL", "SETUSER", webName, "on", "nopass", "~*", "&*", "+@all");
const service = new BenchChild("fake-service.ts", []);
const baseUrl = `http://127.0.0.1:${(await service.ask("port"))["port"]}`;
const policy = policyOf(await benchSet({ services: { main: baseUrl }, concurrency: 8 }), "accepted-main");
const worker = new BenchChild("app-process.ts", [server.url, "8", `main=${baseUrl}`]);
if (!given.shared) bindTo(1);
const web = new BenchChild("web-process.ts", [server.url.replace("//", `//${webName}:any@`), given.policies, lines]);
const webPort = (await web.ask("port"))["port"] ?? 0;
const plain = new BenchChild("plain-web-process.ts", [`${webPort}`, tokens]);
const plainPort = (await plain.ask("port"))["port"] ?? 0;
const viewers = new BenchChild("web-viewers-process.ts", [tokens]);
if (!given.shared) bindTo(0);
const producer = new Producer({ url: server.url, prefix: benchPrefix }, silentLog);
await worker.ask("cpu");
const addedMs = new Map<string, number>();
const history = new History(store);
/** An entry of SLOWLOG: number, time, microseconds, words, address and name. */
const slowSchema = z.tuple([z.number(), z.number(), z.number(), z.array(z.string()), z.string(), z.string()]);
let jobs = 0;
let ended = 0;

await redis.config("SET", "slowlog-log-slower-than", slowUs);
await redis.config("SET", "slowlog-max-len", 10_000);
await block("nothing", blockMs / 2);
await countCommands();
await compareStarts();
await showSlow();
for (const child of [viewers, plain, web, worker, service]) await child.stop();
await producer.close();
await store.close();
redis.disconnect();
await server.stop();
for (const file of files) rmSync(file);
process.exit(0);

/** Binds this process, and the children that it begins from now on, to one core. */
function bindTo(core: number): void {
  execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", `${core}`, `${process.pid}`]);
}

/** What a block cost Redis. `changes`: how many each viewer heard of. */
interface Watched {
  readonly viewers: number;
  readonly commands: number;
  readonly changes: number;
  readonly pages: number;
}

/**
 * An outcome a second, and so the same changes to show, before no viewer, one and 64. A look takes
 * about so long that pages hear of each change in one block and not in the other: both are told.
 */
async function countCommands(): Promise<void> {
  const found: Watched[] = [];
  // The first one makes the web server read all states; it is not counted.
  for (const count of [1, 0, 1, viewersCount]) {
    await viewers.ask("begin", { at: webPort, viewers: count, isOne: 1 });
    await redis.config("RESETSTAT");
    for (let second = 0; second < blockMs / 1_000; second += 1) {
      ended += 1;
      await history.recordAlone(testOutcome({ taskId: `x__run__42__${ended}`, policy: "x" }));
      await delay(1_000);
    }
    await delay(settleMs);
    const figures = await viewers.ask("end");
    const commands = [...(await commandCalls(redis)).values()].reduce((sum, calls) => sum + calls, 0);
    const { pagesRead: pages = 0, changes: heard = 0 } = figures;
    found.push({ viewers: count, commands, changes: heard / Math.max(1, count), pages });
  }
  found.shift();
  const [none, one, all] = found;
  for (const { viewers: count, commands, changes, pages } of found)
    say(
      `${count} viewers of one page: ${commands} commands in ${blockMs / 1_000} s, ${changes.toFixed(1)} changes heard of, ${pages} pages read`,
    );
  const beyond = (of: Watched | undefined) => (of?.commands ?? 0) - (none?.commands ?? 0);
  const ratio = beyond(all) / beyond(one);
  const ofEach = (ratio * (one?.changes ?? 0)) / (all?.changes ?? 0);
  say(`64 viewers ÷ one, beyond none: ${ratio.toFixed(2)}; for each change heard of: ${ofEach.toFixed(2)}`);
}

/** The kinds take turns, each round from another one on. */
async function compareStarts(): Promise<void> {
  const all = new Map<Kind, number[]>(kinds.map((kind) => [kind, []]));
  const rounds: Record<Kind, number>[] = [];
  // How often pages hear of a change, which the plain server tells as often.
  let { changes } = await block("the web server", blockMs / 2);
  changes *= 2;
  for (let round = 0; round < blocks; round += 1) {
    const p99 = new Map<Kind, number>();
    for (const turn of kinds.keys()) {
      const kind = kinds[(round + turn) % kinds.length] ?? "nothing";
      const found = await block(kind, blockMs, changes);
      if (kind === "the web server") changes = found.changes;
      all.get(kind)?.push(...found.latencies);
      p99.set(kind, quantile(found.latencies, 0.99));
      say(`${round + 1}, ${kind}: ${found.told}`);
    }
    rounds.push(Object.fromEntries(p99) as Record<Kind, number>);
  }
  for (const [kind, latencies] of all)
    say(
      `beside ${kind}: p50 ${quantile(latencies, 0.5).toFixed(2)} ms, p99 ${quantile(latencies, 0.99).toFixed(2)} ms of ${latencies.length} starts`,
    );
  for (const [kind, latencies] of all) {
    const by = kind === "the web server" ? {} : { by: kind };
    const goal = { times: 1.1, of: given.shared ? "a plain server" : "nothing" };
    noteFigure({
      ...by,
      what: "p99 of a start beside 64 viewers",
      unit: "ms",
      wants: "less",
      value: quantile(latencies, 0.99),
      goal,
    });
  }
  const compare = (over: Kind, under: Kind) => {
    const ratio = (share: number) => quantile(all.get(over) ?? [], share) / quantile(all.get(under) ?? [], share);
    const each = rounds.map((round) => round[over] / round[under]);
    const shown = each.map((one) => one.toFixed(2)).join(" ");
    say(
      `${over} ÷ ${under}: p99 ${ratio(0.99).toFixed(2)} (rounds ${shown}, median ${median(each).toFixed(2)}), p50 ${ratio(0.5).toFixed(2)}`,
    );
  };
  compare("the web server", "nothing");
  compare("a plain server", "nothing");
  compare("the web server", "a plain server");
  // The noise of the machine, next to what the rounds show.
  const drift = rounds.slice(1).map(({ nothing }, index) => nothing / (rounds[index]?.nothing ?? Number.NaN));
  say(`nothing ÷ nothing of the round before: ${drift.map((one) => one.toFixed(2)).join(" ")}`);
}

/** Which commands of the web server kept Redis busy for more than a millisecond. */
async function showSlow(): Promise<void> {
  const all = z.array(slowSchema).parse(await redis.call("SLOWLOG", "GET", "-1"));
  const clients = String(await redis.call("CLIENT", "LIST")).split("\n");
  const own = clients.filter((line) => line.includes(` user=${webName} `)).map((line) => / addr=(\S+)/.exec(line)?.[1]);
  const slow = all.filter(([, , , , address]) => own.includes(address)).toSorted((a, b) => b[2] - a[2]);
  say(`commands of the web server that took Redis more than ${slowUs / 1_000} ms: ${slow.length}`);
  for (const [, , tookUs, words] of slow.slice(0, slowShown))
    say(`${(tookUs / 1_000).toFixed(1)} ms: ${words.join(" ").slice(0, 100)}`);
}

/** Starts at an even pace for so long, with viewers of a server of this kind beside them. */
async function block(kind: Kind, forMs: number, changes = 0) {
  const everyMs = Math.round(forMs / Math.max(1, changes));
  if (kind === "a plain server") await plain.ask("begin", { everyMs });
  const at = kind === "a plain server" ? plainPort : webPort;
  await viewers.ask("begin", kind === "nothing" ? {} : { at, viewers: viewersCount, perSecond: 50 });
  const before = await cpuOfAll();
  const beganMs = monotonicMs();
  let count = 0;
  for (; monotonicMs() - beganMs < forMs; count += 1) {
    jobs += 1;
    const tasks = tasksOf(
      { ...policy, action: { kind: "run", syncJobs: [jobs] } },
      { slotMs: Date.now(), origin: "manual", covers: [] },
    );
    for (const { id } of tasks) addedMs.set(id, monotonicMs());
    await Promise.all([producer.enqueue(tasks), delay(startEveryMs)]);
  }
  const tookMs = monotonicMs() - beganMs;
  const after = await cpuOfAll();
  const shares = after.map(([name, ms], index) => `${name} ${share(ms - (before[index]?.[1] ?? 0), tookMs)}`);
  const {
    pagesRead = 0,
    unchanged = 0,
    listsRead = 0,
    failed = 0,
    changes: heard = 0,
    bytes = 0,
  } = await viewers.ask("end");
  const read = `${pagesRead} pages (${unchanged} unchanged) and ${listsRead} lists, ${Math.round(bytes / 1_024)} KiB, ${failed} failed`;
  const told = `${kind === "nothing" ? "" : `${read}; `}of a core ${shares.join(", ")}`;
  return { latencies: await latenciesOf(count), changes: heard / viewersCount, told };
}

/** CPU of each process but this one, in milliseconds. */
async function cpuOfAll(): Promise<(readonly [name: string, ms: number])[]> {
  const children = { worker, web, "plain server": plain, viewers, service };
  const asked = Object.entries(children).map(
    async ([name, child]) => [name, (await child.ask("cpu"))["cpuMs"] ?? 0] as const,
  );
  return [["Redis", await redisCpuMs(redis)], ...(await Promise.all(asked))];
}

function share(ms: number, ofMs: number): string {
  return `${((ms / ofMs) * 100).toFixed(0)} %`;
}

async function latenciesOf(count: number): Promise<number[]> {
  const found: number[] = [];
  for (const untilMs = monotonicMs() + arriveWithinMs; found.length < count; ) {
    for (const [id, atMs] of Object.entries(await service.ask("arrivals")))
      found.push(atMs - (addedMs.get(id) ?? Number.NaN));
    if (monotonicMs() > untilMs) throw new Error(`${found.length} of ${count} starts arrived`);
  }
  return found;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
