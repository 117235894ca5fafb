// What viewers cost Redis, and the starts: part of `npm run bench:web`. [--policies 10000]
// [--seconds 20] [--blocks 4]. One Redis; the web server, a worker, the service and the viewers are
// processes of their own. Blocks with 64 viewers and 50 requests a second take turns with blocks
// without; single starts come at an even pace in both.
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
import { BenchChild, type Figures } from "./child.ts";
import { commandCalls, median, monotonicMs, quantile } from "./redis-figures.ts";
import { webSet, writeInstallation } from "./web-installation.ts";

const { values: given } = parseArgs({
  options: {
    policies: { type: "string", default: "10000" },
    seconds: { type: "string", default: "20" },
    blocks: { type: "string", default: "4" },
    every: { type: "string", default: "20" },
  },
});
const [blockMs, blocks, everyMs] = [Number(given.seconds) * 1_000, Number(given.blocks), Number(given.every)];
const webName = "web";
const [slowUs, slowShown] = [1_000, 5];
const arriveWithinMs = 60_000;
const callers = Array.from({ length: 16 }, (_, index) =>
  createToken({ name: `caller-${index}`, scope: "read", services: [] }),
);
const files = ["lines", "tokens"].map((name) => join(tmpdir(), `syncline-bench-${name}-${process.pid}`));
const [lines = "", tokens = ""] = files;
writeFileSync(lines, callers.map(({ line }) => `${line}\n`).join(""));
writeFileSync(tokens, callers.map(({ token }) => token).join("\n"));

const server = await startPrivateRedis();
const redis = new Redis(server.url);
const store = await openStore({ url: server.url, prefix: benchPrefix });
await writeInstallation(store, webSet(Number(given.policies)), { days: 30, slots: 30 });
await redis.call("ACL", "SETUSER", webName, "on", "nopass", "~*", "&*", "+@all");
const service = new BenchChild("fake-service.ts", []);
const baseUrl = `http://127.0.0.1:${(await service.ask("port"))["port"]}`;
const policy = policyOf(await benchSet({ services: { main: baseUrl }, concurrency: 8 }), "accepted-main");
const worker = new BenchChild("app-process.ts", [server.url, "8", `main=${baseUrl}`]);
const web = new BenchChild("web-process.ts", [server.url.replace("//", `//${webName}:any@`), given.policies, lines]);
const viewers = new BenchChild("web-viewers-process.ts", [`${(await web.ask("port"))["port"]}`, tokens]);
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
await block({}, blockMs / 2);
await countCommands();
await compareStarts();
await showSlow();
for (const child of [viewers, web, worker, service]) await child.stop();
await producer.close();
await store.close();
redis.disconnect();
await server.stop();
for (const file of files) rmSync(file);
process.exit(0);

/** An outcome a second, and so the same changes to show, before no viewer, one and 64. */
async function countCommands(): Promise<void> {
  const found: { readonly viewers: number; readonly commands: number; readonly pages: number }[] = [];
  // The first one makes the web server read all states; it is not counted.
  for (const count of [1, 0, 1, 64]) {
    await viewers.ask("begin", { viewers: count, isOne: 1 });
    await redis.config("RESETSTAT");
    for (let second = 0; second < blockMs / 1_000; second += 1) {
      ended += 1;
      await history.recordAlone(testOutcome({ taskId: `x__run__42__${ended}`, policy: "x" }));
      await delay(1_000);
    }
    const figures = await viewers.ask("end");
    const commands = [...(await commandCalls(redis)).values()].reduce((sum, calls) => sum + calls, 0);
    found.push({ viewers: count, commands, pages: figures["pagesRead"] ?? 0 });
  }
  found.shift();
  const [none, one, all] = found.map(({ commands }) => commands);
  for (const { viewers: count, commands, pages } of found)
    say(`${count} viewers of one page: ${commands} commands in ${blockMs / 1_000} s, ${pages} pages read`);
  say(`64 viewers ÷ one, beyond none: ${(((all ?? 0) - (none ?? 0)) / ((one ?? 0) - (none ?? 0))).toFixed(2)}`);
}

async function compareStarts(): Promise<void> {
  const [alone, watched]: number[][] = [[], []];
  const pairs: number[] = [];
  for (let pair = 0; pair < blocks; pair += 1) {
    const without = await block({}, blockMs);
    const beside = await block({ viewers: 64, perSecond: 50 }, blockMs);
    alone?.push(...without.latencies);
    watched?.push(...beside.latencies);
    pairs.push(quantile(beside.latencies, 0.99) / quantile(without.latencies, 0.99));
    const { pagesRead = 0, listsRead = 0, failed = 0 } = beside.figures;
    say(
      `pair ${pair + 1}: ${pagesRead} pages, ${listsRead} lists, ${failed} failed; the web server took ${(beside.webShare * 100).toFixed(0)} % of a core`,
    );
  }
  const show = (values: readonly number[] = []) =>
    `p50 ${quantile(values, 0.5).toFixed(2)} ms, p99 ${quantile(values, 0.99).toFixed(2)} ms of ${values.length} starts`;
  say(`without: ${show(alone)}`);
  say(`with 64 viewers and 50 requests a second: ${show(watched)}`);
  const ratio = (share: number) => (quantile(watched ?? [], share) / quantile(alone ?? [], share)).toFixed(2);
  say(
    `p99 ÷ p99: ${ratio(0.99)}; of the pairs ${pairs.map((one) => one.toFixed(2)).join(" ")}, median ${median(pairs).toFixed(2)}; p50 ÷ p50: ${ratio(0.5)}`,
  );
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

/** Starts at an even pace for so long, with what `load` says beside them. */
async function block(load: Figures, forMs: number) {
  await viewers.ask("begin", load);
  const { cpuMs: beforeMs = 0 } = await web.ask("cpu");
  const beganMs = monotonicMs();
  let count = 0;
  for (; monotonicMs() - beganMs < forMs; count += 1) {
    jobs += 1;
    const tasks = tasksOf(
      { ...policy, action: { kind: "run", syncJobs: [jobs] } },
      { slotMs: Date.now(), origin: "manual", covers: [] },
    );
    for (const { id } of tasks) addedMs.set(id, monotonicMs());
    await Promise.all([producer.enqueue(tasks), delay(everyMs)]);
  }
  const { cpuMs = 0 } = await web.ask("cpu");
  const webShare = (cpuMs - beforeMs) / (monotonicMs() - beganMs);
  const figures = await viewers.ask("end");
  return { latencies: await latenciesOf(count), figures, webShare };
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
