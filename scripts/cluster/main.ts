// `npm run cluster`: several replicas on one Redis against the sandbox, to try rolling restarts,
// kills and upgrades. At the end it says whether a slot was lost, a task was started twice, or no
// scheduler was ready. Everything it starts ends with it.
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { systemClock } from "../../src/core/clock.ts";
import { parseDuration } from "../../src/core/duration.ts";
import { startSandbox } from "../demo/processes.ts";
import { startPrivateRedis } from "../redis.mjs";
import { type Build, checkOut, thisBuild } from "./builds.ts";
import { Cluster } from "./cluster.ts";
import { judge, type Verdict } from "./verdict.ts";
import { View } from "./view.ts";

const prefix = "{cluster}";
const replicasMax = 20;
const usage = `npm run cluster -- [--replicas 3] [--workers 0] [--for 1m] [--rolls 2] [--upgrade-from COMMIT]

  --replicas <n>          replicas of \`syncline serve\` (default 3)
  --workers <n>           further replicas with the role worker alone; the others are schedulers alone then (default 0)
  --for <duration>        ends after this; without it, when you say stop (or after --rolls or --upgrade-from)
  --rolls <n>             restarts all replicas one after the other, so often, and ends
  --upgrade-from <commit> starts the code of that commit, rolls to this one, back, and to this one again, and ends
Orders on standard input: restart, restart N, kill N, stop. Ctrl-C stops, too.`;

const { values } = parseArgs({
  options: {
    replicas: { type: "string", default: "3" },
    workers: { type: "string", default: "0" },
    for: { type: "string" },
    rolls: { type: "string", default: "0" },
    "upgrade-from": { type: "string" },
    help: { type: "boolean", short: "h" },
  },
});

try {
  if (values.help) process.stdout.write(`${usage}\n`);
  else process.exitCode = await main();
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
// A line that waits for its end on standard input would keep the process.
process.stdin.destroy();

async function main(): Promise<number> {
  const stopping = stopRequest();
  const commit = values["upgrade-from"];
  const old = commit === undefined ? undefined : await checkOut(commit);
  const build = old ?? thisBuild;
  const { config } = build;
  const view = new View(process.stdout);
  const redis = await startPrivateRedis();
  const stops: (() => Promise<void>)[] = [() => redis.stop()];
  try {
    const sandbox = await startSandbox();
    stops.push(() => sandbox.stop());
    const environment = { REDIS_URL: redis.url, SANDBOX_URL: sandbox.baseUrl, SANDBOX_TOKEN: sandbox.token };
    const cluster = new Cluster({
      replicas: countOf("replicas", values.replicas, 1),
      workers: countOf("workers", values.workers, 0),
      build,
      config,
      prefix,
      environment,
      onEvent: (event, pod) => view.tell(event, pod),
      say: (what) => view.say(what),
    });
    stops.push(() => cluster.stop());
    view.say(`redis ${redis.url}, sandbox ${sandbox.baseUrl}, policies ${config}`);
    await cluster.start();
    view.begin(cluster);
    await play(cluster, { view, old, stopping: stopping.signal, stop: () => stopping.abort() });
    await view.end();
    const untilMs = Date.now() - 2_000;
    view.say("stopping");
    await cluster.stop();
    const verdict = await judge({ sandbox, redisUrl: redis.url, prefix, config, environment, untilMs });
    return conclude(verdict, { cluster, view });
  } finally {
    await view.end();
    for (const stop of stops.toReversed()) await stop();
  }
}

interface Play {
  readonly view: View;
  readonly old: Build | undefined;
  readonly stopping: AbortSignal;
  readonly stop: () => void;
}

/** The rolls that were asked for on the command line, then the orders, until it is time to stop. */
async function play(cluster: Cluster, { view, old, stopping, stop }: Play): Promise<void> {
  const rolls = countOf("rolls", values.rolls, 0);
  const pause = () => systemClock.sleep(3_000, stopping);
  const steps = old === undefined ? Array<Build>(rolls).fill(thisBuild) : [thisBuild, old, thisBuild];
  // A roll proves something only beside work, and the sandbox's first answers are failures.
  while (steps.length > 0 && view.items.told === 0 && !stopping.aborted) await pause();
  for (const build of steps) {
    if (stopping.aborted) return;
    await pause();
    view.say(`rolling all replicas to ${build.name}`);
    for (const index of cluster.pods.keys()) {
      if (stopping.aborted) return;
      await cluster.replace(index, build);
      // Old and new side by side for a while.
      if (old !== undefined) await pause();
    }
  }
  if (steps.length > 0) await pause();
  if (values.for !== undefined) await systemClock.sleep(parseDuration(values.for), stopping);
  else if (steps.length === 0) await obey(cluster, { view, stopping, stop });
}

/** Takes orders until one says stop, standard input ends, or a signal comes. */
function obey(cluster: Cluster, { view, stopping, stop }: Omit<Play, "old">): Promise<void> {
  view.say("orders: restart, restart N, kill N, stop");
  let last: Promise<void> = Promise.resolve();
  const order = async (line: string) => {
    const [word, number] = line.trim().split(/\s+/);
    const index = Number(number) - 1;
    if (word === "stop") stop();
    else if (word === "restart") await (number === undefined ? cluster.roll() : cluster.replace(index));
    else if (word === "kill") cluster.kill(index);
    else if (word !== "") view.say(`unknown order ${word}; there are restart, restart N, kill N and stop`);
  };
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    last = last
      .then(() => order(line))
      .catch((error: unknown) => view.say(`error: ${error instanceof Error ? error.message : String(error)}`));
  });
  return new Promise((resolve) => {
    const end = () => {
      lines.close();
      last.then(resolve, resolve);
    };
    stopping.addEventListener("abort", end, { once: true });
    if (stopping.aborted) end();
  });
}

function conclude(verdict: Verdict, { cluster, view }: { cluster: Cluster; view: View }): number {
  const { asked, without } = cluster.probes;
  const { runs, slots, outcomes, off, twice } = verdict;
  const lines = [
    "",
    "Summary",
    `  starts                       ${runs} (by the sandbox's own ledger)`,
    `  outcomes                     ${outcomes}`,
    `  slots lost                   ${off.length} of ${slots} (by syncline audit)${list(off)}`,
    `  tasks started twice          ${twice.length}${list(twice)}`,
    `  feed items told twice        ${view.items.twice.length} of ${view.items.told}${list(view.items.twice)}`,
    `  probes without a scheduler   ${without} of ${asked}`,
    `  warnings in the logs         ${[...view.troubles].map(([name, count]) => `${count} ${name}`).join(", ") || "none"}`,
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
  return off.length + twice.length + without + view.items.twice.length === 0 && runs > 0 ? 0 : 1;
}

function list(items: readonly string[]): string {
  return items.length === 0 ? "" : `: ${items.slice(0, 10).join(", ")}${items.length > 10 ? ", …" : ""}`;
}

function stopRequest(): AbortController {
  const stopping = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => stopping.abort());
  return stopping;
}

function countOf(name: string, text: string, least: number): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < least || count > replicasMax)
    throw new Error(`--${name} is ${text}: write a whole number from ${least} to ${replicasMax}`);
  return count;
}
