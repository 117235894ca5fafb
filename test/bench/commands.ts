// What every command that looks costs with many policies: commands.ts [--policies 10000]
// [--services 4] [--days 90] [--slots 5] [--only status,plan] [--main FILE] [--profile FOLDER].
// Policy files in a folder, a history in a private Redis; each command in a process of its own,
// then `serve` with each role, compiled as in the image, while nothing is due. --main measures
// another build, --profile keeps CPU profiles. Part of `npm run bench`.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Redis } from "ioredis";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { toTable } from "../../src/cli/table.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import type { Policy } from "../../src/config/policy-set.ts";
import { tasksOf, toRecords } from "../../src/schedule/slot-tasks.ts";
import { createChainSource, dueSlots, scheduleText } from "../../src/schedule/slots.ts";
import { History } from "../../src/store/history.ts";
import { keepPolicySet } from "../../src/store/kept-policies.ts";
import { openStore, type Store } from "../../src/store/redis.ts";
import { batchesOf } from "../../src/store/script.ts";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { liveProcess } from "../support/kept-set.ts";
import { testOutcome } from "../support/outcomes.ts";
import { noteFigure } from "./figures.ts";
import { writeDays } from "./long-memory.ts";
import { policyName, writePolicyFolder } from "./policy-folder.ts";
import { commandCalls, redisCpuMs } from "./redis-figures.ts";
import { writeFeeds } from "./web-installation.ts";

const { values: given } = parseArgs({
  options: {
    policies: { type: "string", default: "10000" },
    services: { type: "string", default: "4" },
    days: { type: "string", default: "90" },
    slots: { type: "string", default: "5" },
    only: { type: "string", default: "" },
    main: { type: "string" },
    profile: { type: "string" },
  },
});
const [cpuMax, validateCpuMax, memoryMax, startCpuMax] = [2, 1.5, 256, 3];
const connectionsMax = 12;
const idleMs = 20_000;
/** What the image sets (Dockerfile); commands set their own. */
const imageOption = "--max-semi-space-size=4";
/** A start has work left: what it tidies, what ended meanwhile, the time ahead of the role web. */
const calmAfterMs = 30_000;
const prefix = "{bench}";
const policies = Number(given.policies);
const only = given.only.split(",").filter((word) => word !== "");
const folder = mkdtempSync(join(tmpdir(), "syncline-commands-"));
const files = join(folder, "policies");
writePolicyFolder(files, policies, Date.now(), { services: Number(given.services) });
const crontab = join(folder, "crontab");
writeFileSync(crontab, Array.from({ length: policies }, (_, index) => crontabLine(index)).join(""));
const main = given.main ?? build();
const server = await startPrivateRedis();
const redis = new Redis(server.url);
const profileArgs = given.profile === undefined ? [] : ["--cpu-prof", "--cpu-prof-dir", given.profile];
const environment = {
  ...process.env,
  NODE_ENV: "production",
  BENCH_TOKEN: "bench",
  REDIS_URL: server.url,
  SYNCLINE_PREFIX: prefix,
};
await install();
const [first, follower] = [policyName(0), policyName(19)];
const commands = [
  ...["--help", "schema", "completion bash", "completion policies", `validate ${files}`, "plan", `plan ${first}`],
  ...[`plan --config ${files}`, "plan --json", "plan --dst", "plan --deleted", "plan --peaks", "plan --requests"],
  ...["plan --from 20:00 --to 06:00", "plan --from 20:00 --to 06:00 --json", "simulate --to +12h", "simulate --to +7d"],
  ...["status", "status --json", "status --limit 10000", "status --at 06:00", "status --label team=team-1"],
  ...["running", `history ${first}`, "history -n 1000", "report --since 30d", "report --since 30d --json", "digest"],
  ...[
    `explain ${first}`,
    `explain ${follower}`,
    "failed",
    "sinks",
    "audit",
    `audit ${first}`,
    "audit --label team=team-1",
  ],
  ...["changes", "feed tail activities --service service-0 --repository HR-0", "doctor"],
  ...[`import --crontab ${crontab}`, "pause --all --until 1h --reason x", "resume --all --reason x", `run ${first}`],
].filter((line) => only.length === 0 || only.includes(line.split(" ")[0] ?? ""));

const measured = commands.map(measure);
const rows = measured.map(({ cells }) => cells);
noteCommands();
process.stdout.write(`${table(["command", "CPU s", "wall s", "MiB", "printed KiB", "exit", ""], rows)}\n\n`);
if (only.length === 0 || only.includes("serve")) {
  await dropTasks();
  const served: string[][] = [];
  for (const roles of ["scheduler", "worker", "web", "scheduler,worker,web"]) served.push(await serve(roles));
  const heading = [
    "serve --roles",
    "start CPU s",
    "start s",
    "MiB",
    "idle %",
    "Redis %",
    "commands/s",
    "connections",
    "",
  ];
  process.stdout.write(`${table(heading, served)}\n`);
}
redis.disconnect();
await server.stop();
rmSync(folder, { recursive: true });

/** Compiles the program as the image has it. */
function build(): string {
  const root = fileURLToPath(new URL("../../", import.meta.url));
  execFileSync("npm", ["run", "-s", "build"], { cwd: root, stdio: "inherit" });
  return join(root, "dist/main.js");
}

/** What `serve` leaves: the set, its slots of the last days with their ends, sums, lists. */
async function install(): Promise<void> {
  const loaded = await loadPolicies(files, { variables: { BENCH_TOKEN: "bench" }, checks: policyChecks });
  if (!loaded.ok)
    throw new Error(
      loaded.problems
        .slice(0, 5)
        .map(({ message }) => message)
        .join("\n"),
    );
  const { set } = loaded;
  const store = await openStore({ url: server.url, prefix });
  await keepPolicySet(store, set, "host/1");
  const names = set.policies.map(({ name }) => name);
  await writeDays(store, names, { days: Number(given.days), runs: 24, nowMs: Date.now() });
  for (const batch of batchesOf(set.policies, 50)) await writePast(store, batch);
  await writeFeeds(store, set.policies, Date.now());
  await liveProcess(store);
  await store.close();
}

/** The newest slots of each policy, recorded and with outcomes; right before them it was new. */
async function writePast(store: Store, batch: readonly Policy[]): Promise<void> {
  const [ledger, history, nowMs] = [new SlotLedger(store), new History(store), Date.now()];
  const slots = batch.map((policy) => {
    const source = createChainSource(policy);
    return source === undefined ? [] : dueSlots(source, nowMs - 10 * 86_400_000, nowMs).slice(-Number(given.slots));
  });
  const beginsMs = slots.map(([first = nowMs]) => first - 1);
  const known = batch.map((policy, index) => {
    return { policy: policy.name, schedule: scheduleText(policy) ?? "", beginsMs: beginsMs[index] };
  });
  await ledger.openWatermarks(known, nowMs);
  const steps = batch.map((policy, index) => {
    const plans = (slots[index] ?? []).map((slotMs) => ({ slotMs, state: "started", covers: [] }) as const);
    const newWatermarkMs = slots[index]?.at(-1) ?? nowMs;
    const records = toRecords(policy, plans);
    return { policy: policy.name, expectedWatermarkMs: beginsMs[index] ?? 0, newWatermarkMs, records, tasks: [] };
  });
  await ledger.record(steps);
  const due = batch.flatMap((policy, index) => (slots[index] ?? []).map((slotMs) => ({ policy, slotMs, covers: [] })));
  const tasks = due.flatMap(({ policy, ...slot }) => tasksOf(policy, { ...slot, origin: "schedule" }));
  await Promise.all(
    tasks.map(({ id, policy, target, service, slotMs }, index) => {
      const slot = new Date(slotMs).toISOString();
      const finishedAt = new Date(slotMs + 60_000).toISOString();
      const status = index % 33 === 0 ? "failed" : "succeeded";
      return history.record(testOutcome({ taskId: id, policy, target, service, slot, finishedAt, status }));
    }),
  );
}

function crontabLine(index: number): string {
  const url = `https://sync.example.com/api/syncjobs/run(${index})`;
  return `${index % 60} ${index % 24} * * * curl -X POST "${url}"\n`;
}

/** A week simulated has a row of its own: the others are far from it. */
function noteCommands(): void {
  const note = (what: string, some: typeof measured, of: "cpuS" | "mib", goal: number) => {
    const [unit, value] = [of === "mib" ? "MiB" : "s of CPU", Math.max(...some.map((one) => one[of]))];
    if (some.length > 0) noteFigure({ what: `${policies} policies: ${what}`, unit, wants: "less", value, goal });
  };
  const byKind = Map.groupBy(
    measured,
    ({ line }) => /^validate|^simulate --to \+7d/.exec(line)?.[0] ?? "the dearest other",
  );
  for (const [what, some] of byKind) note(what, some, "cpuS", what === "validate" ? validateCpuMax : cpuMax);
  note("the largest of all", measured, "mib", memoryMax);
}

function measure(line: string) {
  // ru_maxrss of a child has the memory of its parent in it.
  const report =
    'import{readFileSync,writeSync}from"node:fs";process.on("exit",()=>{const r=process.resourceUsage();writeSync(3,r.userCPUTime+r.systemCPUTime+" "+/VmHWM:\\s+(\\d+)/.exec(readFileSync("/proc/self/status","utf8"))[1])})';
  const args = [...profileArgs, "--import", `data:text/javascript,${report}`, main, ...line.split(" ")];
  const beganMs = performance.now();
  const ended = spawnSync(process.execPath, args, {
    env: environment,
    maxBuffer: 1e9,
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  const wallS = (performance.now() - beganMs) / 1_000;
  const [cpuUs = Number.NaN, rssKib = Number.NaN] = String(ended.output[3]).split(" ").map(Number);
  const [cpuS, mib] = [cpuUs / 1e6, rssKib / 1_024];
  const isKept = cpuS <= (line.startsWith("validate") ? validateCpuMax : cpuMax) && mib <= memoryMax;
  if (ended.status !== 0) process.stderr.write(`${line}: ${String(ended.stderr).slice(0, 300)}\n`);
  const figures = [cpuS.toFixed(2), wallS.toFixed(2), mib.toFixed(0), (ended.stdout.length / 1_024).toFixed(0)];
  const cells = [line.replaceAll(folder, "…"), ...figures, String(ended.status), isKept ? "" : "missed"];
  return { line, cpuS, mib, cells };
}

/** Drops what `run` has queued: its service is not there, and a worker would try for an hour. */
async function dropTasks(): Promise<void> {
  for (const kind of ["actions", "polls"]) {
    const keys = await redis.keys(`${prefix}:service-*-${kind}:*`);
    if (keys.length > 0) await redis.del(...keys);
  }
}

/** Starts it, waits until it is ready and calm, and looks at what it costs then. */
async function serve(roles: string): Promise<string[]> {
  const beganMs = performance.now();
  const child = spawn(
    process.execPath,
    [imageOption, ...profileArgs, main, "serve", "--config", files, "--roles", roles, "--web-port", "0"],
    {
      env: environment,
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const ended = once(child, "exit");
  for await (const chunk of child.stdout.iterator({ destroyOnReturn: false }))
    if (`${chunk}`.includes("serve.ready")) break;
  child.stdout.resume();
  const [startMs, startCpu] = [performance.now() - beganMs, cpuSeconds(child.pid)];
  await new Promise((resolve) => setTimeout(resolve, calmAfterMs));
  const [cpu, redisMs, calls] = [cpuSeconds(child.pid), await redisCpuMs(redis), await callsOf()];
  await new Promise((resolve) => setTimeout(resolve, idleMs));
  const idle = ((cpuSeconds(child.pid) - cpu) / idleMs) * 100_000;
  const redisShare = (((await redisCpuMs(redis)) - redisMs) / idleMs) * 100;
  const perSecond = ((await callsOf()) - calls) / (idleMs / 1_000);
  const opened = await connections();
  const mib = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1_024;
  child.kill("SIGTERM");
  await ended;
  const noted = { wants: "less" } as const;
  const about = `${policies} policies: serve --roles ${roles}`;
  noteFigure({ ...noted, what: `${about}: start`, unit: "s of CPU", value: startCpu, goal: startCpuMax });
  noteFigure({ ...noted, what: `${about}: idle`, unit: "% of a core", value: idle, goal: 1 });
  noteFigure({ ...noted, what: `${about}: connections`, unit: "", value: opened, goal: connectionsMax });
  const figures = [startCpu.toFixed(2), (startMs / 1_000).toFixed(2), mib.toFixed(0), idle.toFixed(2)];
  const isCalm = idle <= 1 && perSecond <= 100 && opened <= connectionsMax;
  const isKept = startCpu <= startCpuMax && mib <= memoryMax && isCalm;
  return [roles, ...figures, redisShare.toFixed(2), perSecond.toFixed(0), `${opened}`, isKept ? "" : "missed"];
}

/** How many connections Redis has, but for this process's. */
async function connections(): Promise<number> {
  return (
    String(await redis.call("CLIENT", "LIST"))
      .trim()
      .split("\n").length - 1
  );
}

/** CPU of a process so far; a tick is 10 ms. */
function cpuSeconds(pid = 0): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

async function callsOf(): Promise<number> {
  return [...(await commandCalls(redis)).values()].reduce((sum, calls) => sum + calls, 0);
}

function table(heading: readonly string[], cells: readonly (readonly string[])[]): string {
  return toTable(heading, cells, { colours: false, columns: undefined });
}
