// `npm run trial:alerts`: a real Prometheus with the chart's rules over two releases of real processes, 200 policies each. Things are
// broken one after the other; it prints which alerts fired when, and exits 1 unless each cause was one page. A minute of the rules is two
// seconds here, so the eight minutes that it takes stand for four hours. Uses loopback ports only.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseAllDocuments } from "yaml";
import { findHelm } from "../../scripts/helm.mjs";
import { findPrometheus } from "../../scripts/promtool.mjs";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { parseFault } from "../../src/sandbox/faults.ts";
import { startSandbox } from "../../src/sandbox/sandbox.ts";

const root = resolve(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "syncline-alert-trial-"));
const children = new Set<ChildProcess>();

/** Rules as the chart renders them, with a second for each minute; waits that are numbers in an expression shrink likewise. */
async function rulesOf(release: string): Promise<object[]> {
  const values = ["redis.url=redis://r", "metrics.prometheusRule.enabled=true"].flatMap((one) => ["--set", one]);
  const files = ["--set-json", 'policies={"files":{"a.yaml":"x"}}'];
  const args = ["template", release, join(root, "helm/syncline"), "--namespace", "sync", ...values, ...files];
  const text = execFileSync(await findHelm(), args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const objects = parseAllDocuments(text).map((document) => document.toJS());
  const { groups } = objects.find((object) => object?.kind === "PrometheusRule").spec;
  const secondsOf = (minutes: string) => 2 * Number(minutes);
  const shrunk = JSON.stringify(groups)
    .replace(/\[(\d+)m\]/g, (_, minutes) => `[${secondsOf(minutes)}s]`)
    .replace(/"for":"(\d+)m"/g, (_, minutes) => `"for":"${secondsOf(minutes)}s"`)
    .replace(/ < (60|90) /g, " < 8 ")
    .replace(/ > 600 /g, " > 20 ")
    .replace(/ > 900 /g, " > 30 ")
    .replace(/ < 1800/g, " < 60");
  return JSON.parse(shrunk);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const address = server.address();
  await new Promise((done) => server.close(done));
  return typeof address === "object" && address !== null ? address.port : 0;
}

function start(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): ChildProcess {
  const child = spawn(command, args, { cwd: folder, env: { ...process.env, ...env }, stdio: "ignore" });
  children.add(child);
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  children.delete(child);
  const ended = new Promise((done) => child.once("exit", done));
  if (child.exitCode === null && child.kill("SIGKILL")) await ended;
}

const main = await startSandbox({ activities: 5, repositories: ["HR"] });
const calmMain = await startSandbox({ activities: 5, repositories: ["HR"] });
const other = await startSandbox({ activities: 5, repositories: ["HR"] });
const redis = await startPrivateRedis();
const calmRedis = await startPrivateRedis();

function policyFile(mainUrl = main.baseUrl): string {
  const policies = Array.from({ length: 200 }, (_, index) => {
    const service = index % 4 === 0 ? "other" : "main";
    return `  - { name: p${index}, service: ${service}, repository: HR, poll: { list: approvals }, schedule: { every: 10s, spread: 5s }, catchUp: ${index % 10 === 0 ? "none" : "latest"}, catchUpWindow: 5s }`;
  });
  return `apiVersion: syncline/v1\nservices:\n  main: { baseUrl: "${mainUrl}", token: { env: MAIN } }\n  other: { baseUrl: "${other.baseUrl}", token: { env: OTHER } }\npolicies:\n${policies.join("\n")}\n`;
}

const ports = {
  scheduler: await freePort(),
  worker: await freePort(),
  calm: await freePort(),
  prometheus: await freePort(),
};
const files = { hurt: join(folder, "hurt.yaml"), calm: join(folder, "calm.yaml") };
writeFileSync(files.hurt, policyFile());
writeFileSync(files.calm, policyFile(calmMain.baseUrl));

function serve(who: "scheduler" | "worker" | "calm"): ChildProcess {
  const [url, file] = who === "calm" ? [calmRedis.url, files.calm] : [redis.url, files.hurt];
  const roles = who === "calm" ? [] : ["--roles", who];
  const health = ["--health-port", String(ports[who]), "--health-host", "127.0.0.1"];
  return start(
    process.execPath,
    [join(root, "src/main.ts"), "serve", "--config", file, "--drain", "2s", ...health, ...roles],
    {
      REDIS_URL: url,
      MAIN: who === "calm" ? calmMain.token : main.token,
      OTHER: other.token,
      SYNCLINE_LOG_LEVEL: "error",
    },
  );
}

const running = { scheduler: serve("scheduler"), worker: serve("worker"), calm: serve("calm") };

const target = (who: "scheduler" | "worker" | "calm", release: string) => ({
  targets: [`127.0.0.1:${ports[who]}`],
  labels: { job: `${release}-syncline`, namespace: "sync", pod: who },
});
const targets = [target("scheduler", "hurt"), target("worker", "hurt"), target("calm", "calm")];
writeFileSync(join(folder, "targets.json"), JSON.stringify(targets));
for (const release of ["hurt", "calm"])
  writeFileSync(
    join(folder, `${release}-rules.yaml`),
    JSON.stringify({ groups: (await rulesOf(release)).map((group) => ({ ...group, name: release })) }),
  );
writeFileSync(
  join(folder, "prometheus.yaml"),
  JSON.stringify({
    global: { scrape_interval: "2s", scrape_timeout: "2s", evaluation_interval: "1s" },
    rule_files: ["hurt-rules.yaml", "calm-rules.yaml"],
    scrape_configs: [{ job_name: "syncline", file_sd_configs: [{ files: ["targets.json"] }] }],
  }),
);
mkdirSync(join(folder, "data"));
start(await findPrometheus(), [
  "--config.file=prometheus.yaml",
  "--storage.tsdb.path=data",
  `--web.listen-address=127.0.0.1:${ports.prometheus}`,
]);

interface Phase {
  readonly name: string;
  /** The one critical alert, or warning, that tells it; none when all is well. */
  readonly page?: string;
  readonly seconds: number;
  readonly begin: () => unknown;
  readonly end: () => unknown;
}

const revive = (who: "scheduler" | "worker") => {
  running[who] = serve(who);
};
const nothing = () => {};
const phases: readonly Phase[] = [
  { name: "all is well", seconds: 40, begin: nothing, end: nothing },
  {
    name: "one service of two is down",
    page: "SynclineBreakerOpen",
    seconds: 30,
    begin: () => main.setFaults([parseFault("503")]),
    end: () => main.setFaults([]),
  },
  {
    name: "the token is refused",
    page: "SynclineAuthFailing",
    seconds: 30,
    begin: () => main.setFaults([parseFault("401")]),
    end: () => main.setFaults([]),
  },
  {
    name: "a service throttles",
    page: "SynclineServiceThrottled",
    seconds: 30,
    begin: () => main.setFaults([parseFault("429,retryAfter=3")]),
    end: () => main.setFaults([]),
  },
  {
    name: "the policy files are wrong",
    page: "SynclineConfigRejected",
    seconds: 45,
    begin: () => writeFileSync(files.hurt, "apiVersion: nonsense\n"),
    end: () => writeFileSync(files.hurt, policyFile()),
  },
  {
    name: "no worker",
    page: "SynclineNoWorker",
    seconds: 30,
    begin: () => end(running.worker),
    end: () => revive("worker"),
  },
  {
    name: "no scheduler",
    page: "SynclineNoScheduler",
    seconds: 30,
    begin: () => end(running.scheduler),
    end: () => revive("scheduler"),
  },
  {
    name: "Redis hangs",
    page: "SynclineRedisDown",
    seconds: 30,
    begin: () => process.kill(redis.pid, "SIGSTOP"),
    end: () => process.kill(redis.pid, "SIGCONT"),
  },
  {
    name: "all pods are gone",
    page: "SynclineDown",
    seconds: 22,
    begin: () => Promise.all([end(running.scheduler), end(running.worker)]),
    end: () => (["scheduler", "worker"] as const).forEach(revive),
  },
];
const restSeconds = 28;

interface Firing {
  readonly metric: Readonly<Record<string, string>>;
  readonly values: readonly (readonly [number, string])[];
}

async function firing(fromMs: number, toMs: number): Promise<Firing[]> {
  const query = new URLSearchParams({
    query: 'ALERTS{alertstate="firing"}',
    start: String(fromMs / 1_000),
    end: String(toMs / 1_000),
    step: "1",
  });
  const answer = await fetch(`http://127.0.0.1:${ports.prometheus}/api/v1/query_range?${query}`);
  const { data }: { data: { result: Firing[] } } = JSON.parse(await answer.text());
  return data.result;
}

const wrong: string[] = [];
const shown = {
  alert: (metric: Firing["metric"]) =>
    `${metric["alertname"]} ${metric["severity"]} ${metric["job"]} ${metric["service"] ?? ""}`,
};
try {
  await sleep(20_000);
  const told = new Map<string, number[]>();
  const beganMs = Date.now();
  const marks: { readonly phase: Phase; readonly fromMs: number }[] = [];
  for (const phase of phases) {
    marks.push({ phase, fromMs: Date.now() });
    await phase.begin();
    await sleep(phase.seconds * 1_000);
    await phase.end();
    await sleep(restSeconds * 1_000);
  }
  const endedMs = Date.now();
  const all = await firing(beganMs, endedMs);
  for (const { metric, values } of all) {
    const at = told.get(shown.alert(metric)) ?? [];
    told.set(
      shown.alert(metric),
      [...at, ...values.map(([second]) => second)].toSorted((a, b) => a - b),
    );
  }
  for (const [index, { phase, fromMs }] of marks.entries()) {
    const toMs = marks[index + 1]?.fromMs ?? endedMs;
    process.stdout.write(`${phase.name}\n`);
    const began = [...told].flatMap(([alert, seconds]) => {
      // A gap of two evaluations is another page.
      const firsts = seconds.filter((second, at) => at === 0 || second - (seconds[at - 1] ?? 0) > 2);
      return firsts
        .filter((second) => second * 1_000 >= fromMs && second * 1_000 < toMs)
        .map((second) => ({ alert, second, seconds }));
    });
    for (const { alert, second, seconds } of began.toSorted((a, b) => a.second - b.second)) {
      const last = seconds.find((one, at) => one >= second && (seconds[at + 1] ?? Number.POSITIVE_INFINITY) - one > 2);
      process.stdout.write(
        `  ${alert}: after ${Math.round(second - fromMs / 1_000)} s, for ${Math.round((last ?? second) - second + 1)} s\n`,
      );
    }
    const pages = began.filter(({ alert }) => alert.includes(" critical ")).map(({ alert }) => alert.split(" ")[0]);
    const isToldOnce = began.filter(({ alert }) => alert.startsWith(`${phase.page} `)).length === 1;
    if (phase.page === undefined ? began.length > 0 : !isToldOnce || pages.some((page) => page !== phase.page))
      wrong.push(`${phase.name}: ${began.map(({ alert }) => alert.trim()).join(", ") || "nothing"}`);
  }
  const foreign = [...told.keys()].filter((alert) => alert.includes(" calm-syncline"));
  if (foreign.length > 0) wrong.push(`the release that was well: ${foreign.join(", ")}`);
} finally {
  await Promise.all([...children].map(end));
  await Promise.all([main.stop(), calmMain.stop(), other.stop(), redis.stop(), calmRedis.stop()]);
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(wrong.length === 0 ? "each cause was one page\n" : `WRONG\n  ${wrong.join("\n  ")}\n`);
process.exitCode = wrong.length === 0 ? 0 : 1;
