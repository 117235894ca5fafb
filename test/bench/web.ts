// What the pages and the API cost with many policies and a long memory: web.ts [--policies 10000]
// [--days 400] [--rounds 10]. Part of `npm run bench`.
import { rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { openStore } from "../../src/store/redis.ts";
import { createToken } from "../../src/web/tokens.ts";
import { benchPrefix } from "./bench-app.ts";
import { BenchChild } from "./child.ts";
import { noteFigure } from "./figures.ts";
import { commandCalls, median } from "./redis-figures.ts";
import { viewPaths, webSet, writeInstallation } from "./web-installation.ts";

const { values: given } = parseArgs({
  options: {
    policies: { type: "string", default: "10000" },
    days: { type: "string", default: "400" },
    rounds: { type: "string", default: "10" },
    only: { type: "string", default: "" },
  },
});
const [policies, days, rounds] = [Number(given.policies), Number(given.days), Number(given.rounds)];
/** Longer than what was read for one request is kept for the next one. */
const staleMs = 1_600;
/** So much CPU an idle web server takes at most within `staleMs`. */
const idleMs = 100;
const callers = Array.from({ length: 16 }, (_, index) =>
  createToken({ name: `caller-${index}`, scope: "read", services: [] }),
);

let asked = 0;

const server = await startPrivateRedis();
const redis = new Redis(server.url);
const store = await openStore({ url: server.url, prefix: benchPrefix });
const set = webSet(policies);
await writeInstallation(store, set, { days, slots: 744 });
const tokens = join(tmpdir(), `syncline-bench-tokens-${process.pid}`);
writeFileSync(tokens, callers.map(({ line }) => `${line}\n`).join(""));
const web = new BenchChild("web-process.ts", [server.url, given.policies, tokens]);
const { port = 0 } = await web.ask("port");
await untilIdle();
await measureViews();
await web.stop();
await store.close();
redis.disconnect();
await server.stop();
rmSync(tokens);

/** Once it listens, the web server works the time ahead out, at leisure. */
async function untilIdle(): Promise<void> {
  const cpu = async () => (await web.ask("cpu"))["cpuMs"] ?? 0;
  for (let [beforeMs, nowMs] = [0, await cpu()]; nowMs - beforeMs > idleMs; ) {
    await new Promise((resolve) => setTimeout(resolve, staleMs));
    [beforeMs, nowMs] = [nowMs, await cpu()];
  }
}

/** Each view once, then again and again when what it read is kept no more. */
async function measureViews(): Promise<void> {
  const views = viewPaths(set).filter((path) => path.includes(given.only));
  const samples = new Map<string, Sample[]>(views.map((path) => [path, []]));
  for (let round = 0; round <= rounds; round += 1) {
    for (const path of views) {
      await new Promise((resolve) => setTimeout(resolve, staleMs));
      samples.get(path)?.push(await measure(path));
    }
  }
  say(
    `${policies} policies, ${days} days; CPU in ms: the first, then the median of ${rounds}; longest: without a turn`,
  );
  say("| view | first | then | longest | KiB | commands: first | then |");
  say("|---|--:|--:|--:|--:|--:|--:|");
  const dearest = Math.max(...[...samples.values()].flatMap((some) => some.slice(1).map(({ cpuMs }) => cpuMs)));
  noteFigure({
    what: "the dearest page or answer, once warm: CPU",
    unit: "ms",
    wants: "less",
    value: dearest,
    goal: 300,
  });
  for (const [path, [first, ...rest]] of samples) {
    const of = (what: keyof Sample) => median(rest.map((sample) => sample[what])).toFixed(0);
    const kib = ((first?.bytes ?? 0) / 1_024).toFixed(0);
    say(
      `| ${path} | ${first?.cpuMs.toFixed(0)} | ${of("cpuMs")} | ${of("longestMs")} | ${kib} | ${first?.commands} | ${of("commands")} |`,
    );
  }
}

interface Sample {
  readonly cpuMs: number;
  readonly longestMs: number;
  readonly bytes: number;
  readonly commands: number;
}

async function measure(path: string): Promise<Sample> {
  await web.ask("blocked");
  const { cpuMs: beforeMs = 0 } = await web.ask("cpu");
  const callsBefore = await calls();
  const bytes = await get(path);
  const commands = (await calls()) - callsBefore;
  const { cpuMs = 0 } = await web.ask("cpu");
  const { longest: longestMs = 0 } = await web.ask("blocked");
  return { cpuMs: cpuMs - beforeMs, longestMs, bytes, commands };
}

/** Commands that Redis ran, without this look. */
async function calls(): Promise<number> {
  const all = await commandCalls(redis);
  return [...all].reduce((sum, [name, count]) => (name === "info" ? sum : sum + count), 0);
}

/** The bytes of the body on the wire. */
function get(path: string): Promise<number> {
  asked += 1;
  const { token = "" } = callers[asked % callers.length] ?? {};
  const headers = { authorization: `Bearer ${token}`, "accept-encoding": "gzip" };
  return new Promise((resolve, reject) => {
    const call = request({ host: "127.0.0.1", port, path, headers }, (answer) => {
      let bytes = 0;
      answer.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      answer.on("end", () => {
        // It is being worked out.
        if (answer.headers["refresh"] !== undefined) resolve(get(path));
        else if (answer.statusCode === 200) resolve(bytes);
        else reject(new Error(`${path} was answered with ${answer.statusCode}`));
      });
    });
    call.on("error", reject);
    call.end();
  });
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
