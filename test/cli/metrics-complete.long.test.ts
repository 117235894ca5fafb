// Every metric of the table at a real `serve`: one service by OAuth 2 that asks for patience, sinks
// that take and that do not, a pause.
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findPromtool } from "../../scripts/promtool.mjs";
import { closedLabels, isNameLabel, isOpenLabel, shownLabel } from "../../src/ops/metric-labels.ts";
import { type MetricFacts, metricTable } from "../../src/ops/metric-table.ts";
import { parseFault } from "../../src/sandbox/faults.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { runHere } from "../support/commands-here.ts";
import { parseMetrics, type Sample, sumOf } from "../support/metrics-text.ts";
import { Syncline } from "../support/processes.ts";
import { Receiver } from "../support/receiver.ts";
import { ownFolder, startServer, until } from "../support/redis-servers.ts";

const table = Object.entries<MetricFacts>(metricTable);

let sandbox: Sandbox;
let issuer: Server;
let receiver: Receiver;
let serve: Syncline;
/** A scheduler without a worker, on a prefix of its own: there tasks wait. */
let lonely: Syncline;
let environment: Record<string, string>;
let folder: string;

const mapping =
  'mapping: { activity: { id: item.activityId, syncJobId: item.syncJobId, finished: \'item.state in ["Finished", "Failed"]\', succeeded: item.state == "Finished" } }';
const schedule = "schedule: { every: 1s }";

/** The policy file; `more` are further sinks, and `told` the sinks of the policy that runs. */
function policies(more = "", told = "{ sink: taking, on: [every] }, { sink: stuck, on: [every] }"): string {
  const { port } = issuer.address() as AddressInfo;
  const oauth2 = `token: { oauth2: { tokenUrl: "http://127.0.0.1:${port}/", clientId: c, clientSecretFile: secret } }`;
  return `apiVersion: syncline/v1
services:
  main: { baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN }, limits: { concurrency: 4 }, ${mapping} }
  other: { baseUrl: "${sandbox.baseUrl}", ${oauth2} }
sinks:
  taking: { file: { path: notices.jsonl } }
  stuck: { webhook: { url: "${receiver.url}", format: slack } }
${more}
policies:
  - { name: runs, service: main, repository: HR, run: { syncJobs: [1] }, schedule: { every: 3s }, follow: { deadline: 20s }, notify: [${told}] }
  - { name: polls, service: other, repository: HR, poll: { list: approvals }, ${schedule} }
  - { name: paused, service: main, repository: HR, poll: { list: approvals }, ${schedule} }
`;
}

async function scrape(from = serve): Promise<Sample[]> {
  const { port } = await from.until(({ event }) => event === "health.listening");
  return parseMetrics(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
}

beforeAll(async () => {
  const redis = await startServer();
  sandbox = await startSandbox({ runMs: [100, 200], activities: 5, repositories: ["HR"] });
  receiver = await new Receiver().start();
  receiver.answer = () => ({ status: 503 });
  issuer = createServer((_, answer) => {
    answer.setHeader("content-type", "application/json");
    answer.end(JSON.stringify({ access_token: sandbox.token, token_type: "bearer", expires_in: 3600 }));
  }).listen(0, "127.0.0.1");
  await once(issuer, "listening");
  folder = ownFolder();
  writeFileSync(join(folder, "secret"), "canary-client-secret");
  writeFileSync(join(folder, "policies.yaml"), policies());
  environment = { REDIS_URL: redis.url, TEST_TOKEN: sandbox.token };
  const config = ["--config", join(folder, "policies.yaml")];
  const paused = await runHere(["pause", "paused", ...config, "--reason", "for the gauge"], environment);
  expect(paused).toMatchObject({ code: 0 });
  const args = [...config, "--drain", "2s", "--health-port", "0"];
  const web = ["--roles", "scheduler,worker,web", "--web-port", "0"];
  serve = new Syncline(["serve", ...args, "--health-host", "127.0.0.1", ...web], environment);
  const alone = ["--roles", "scheduler", "--prefix", "{lonely}"];
  lonely = new Syncline(["serve", ...args, "--health-host", "127.0.0.1", ...alone], environment);
  await Promise.all([serve, lonely].map((one) => one.until(({ event }) => event === "serve.ready")));
});

afterAll(async () => {
  for (const one of [serve, lonely]) one.kill("SIGKILL");
  issuer.close();
  await Promise.all([sandbox.stop(), receiver.stop()]);
});

// Other tests may keep the machine busy.
describe("/metrics of syncline serve", () => {
  it("has a series of every metric of the table, sinks included", async () => {
    await serve.until(({ event, policy }) => event === "task.finished" && policy === "polls");
    const { url } = await serve.until(({ event }) => event === "web.listening");
    expect((await fetch(`${url}api/v1/me`)).status).toBe(200);
    const seen = new Set<string>();
    let wasAskedForPatience = false;
    const has = (samples: readonly Sample[], name: string, labels = {}) => (sumOf(samples, name, labels) ?? 0) > 0;
    await until(
      async () => {
        const samples = await scrape();
        for (const { name } of [...samples, ...(await scrape(lonely))])
          seen.add(name.replace(/_(bucket|sum|count)$/, ""));
        if (!wasAskedForPatience && seen.has("syncline_token_expiry_timestamp_seconds")) {
          sandbox.setFaults([parseFault("429,op=GetApprovals,first=1,retryAfter=30")]);
          wasAskedForPatience = true;
        }
        return samples;
      },
      (samples) =>
        table.every(([name]) => seen.has(name)) &&
        has(samples, "syncline_sink_deliveries_total", { sink: "taking", result: "delivered" }) &&
        has(samples, "syncline_sink_deliveries_total", { sink: "stuck", result: "retried" }) &&
        has(samples, "syncline_sink_queue", { sink: "stuck" }) &&
        has(samples, "syncline_sink_oldest_timestamp_seconds", { sink: "stuck" }) &&
        has(samples, "syncline_notices_total", { kind: "outcome" }),
      60_000,
    ).catch((error: unknown) => {
      throw new Error(`without a series: ${table.flatMap(([name]) => (seen.has(name) ? [] : [name])).join(", ")}`, {
        cause: error,
      });
    });
  });

  it("is clean for Prometheus's own check", async () => {
    const { port } = await serve.until(({ event }) => event === "health.listening");
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const check = spawnSync(await findPromtool(), ["check", "metrics"], { input: text, encoding: "utf8" });
    expect([check.status, check.stdout, check.stderr]).toEqual([0, "", ""]);
  });

  it("has no label and no value that the table does not name", async () => {
    const samples = (await scrape()).filter(({ name }) => !/^syncline_(nodejs|process)_/.test(name));
    const strange = samples.flatMap(({ name, labels }) => {
      const facts = new Map(table).get(name) ?? new Map(table).get(name.replace(/_(bucket|sum|count)$/, ""));
      const known = new Map(facts?.labels.map((label) => [shownLabel(label), label]));
      return Object.entries(labels).filter(([shown, value]) => {
        const label = known.get(shown);
        if (shown === "le" && facts?.type === "histogram") return false;
        if (label === undefined) return true;
        const values: readonly string[] =
          isOpenLabel(label) || isNameLabel(label)
            ? ["", "main", "other", "taking", "stuck", "runs", "polls", "paused", "GET /api/v1/me"]
            : closedLabels[label];
        return !values.includes(value);
      });
    });
    expect(strange).toEqual([]);
  });

  it("counts a sink that a reload brought under its own name, from its first notice on", async () => {
    writeFileSync(
      join(folder, "policies.yaml"),
      policies("  late: { file: { path: late.jsonl } }", "{ sink: late, on: [every] }"),
    );
    // Nobody scrapes before it is delivered.
    const delivered = () => existsSync(join(folder, "late.jsonl"));
    await until(delivered, (is) => is, 60_000);
    const count = (found: readonly Sample[]) =>
      sumOf(found, "syncline_sink_deliveries_total", { result: "delivered", sink: "late" }) ?? 0;
    const samples = await until(
      () => scrape(),
      (found) => count(found) > 0,
    );
    expect(samples.filter(({ labels }) => labels["sink"] === "other")).toEqual([]);
  });
});
