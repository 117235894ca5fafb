import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PrivateRedis } from "../../scripts/redis.mjs";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { runHere } from "../support/commands-here.ts";
import { parseMetrics, type Sample, sumOf } from "../support/metrics-text.ts";
import { Syncline } from "../support/processes.ts";
import { ownFolder, startServer, until } from "../support/redis-servers.ts";

let redis: PrivateRedis;
let sandbox: Sandbox;
let file: string;
let serve: Syncline;
let environment: Record<string, string>;

const started: Syncline[] = [];

/** A `serve`, and how to scrape it. */
async function serveWithMetrics(...more: string[]): Promise<Syncline> {
  const args = [
    "serve",
    "--config",
    file,
    "--drain",
    "2s",
    "--health-port",
    "0",
    "--health-host",
    "127.0.0.1",
    ...more,
  ];
  const one = new Syncline(args, environment);
  started.push(one);
  await one.until(({ event }) => event === "serve.ready");
  return one;
}

async function scrape(from: Syncline): Promise<Sample[]> {
  const { port } = await from.until(({ event }) => event === "health.listening");
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  return parseMetrics(await answer.text());
}

const finished = (one: Syncline, policy: string) =>
  one.events.filter((event) => event["event"] === "task.finished" && event["policy"] === policy);

beforeAll(async () => {
  redis = await startServer();
  sandbox = await startSandbox({ runMs: [100, 200], activities: 5, repositories: ["HR"] });
  file = join(ownFolder(), "policies.yaml");
  writeFileSync(
    file,
    `apiVersion: syncline/v1
services:
  main:
    baseUrl: "${sandbox.baseUrl}"
    token: { env: TEST_TOKEN }
    mapping: { activity: { id: item.activityId, syncJobId: item.syncJobId, finished: 'item.state in ["Finished", "Failed"]', succeeded: item.state == "Finished" } }
policies:
  - { name: runs, service: main, repository: HR, run: { syncJobs: [1] }, schedule: { every: 5s }, follow: { deadline: 20s } }
  - { name: polls, service: main, repository: HR, poll: { list: approvals }, schedule: { every: 2s } }
  - { name: never, service: main, repository: HR, run: { syncJobs: [2] }, schedule: { cron: "0 0 1 1 *" } }
`,
  );
  environment = { REDIS_URL: redis.url, TEST_TOKEN: sandbox.token };
  serve = await serveWithMetrics();
});

afterAll(async () => {
  for (const one of started) one.kill("SIGKILL");
  await sandbox.stop();
});

// Other tests may keep the machine busy: a run with its feeds takes many steps.
describe("/metrics of syncline serve", () => {
  it("counts what the history holds", async () => {
    await serve.until(
      ({ event, policy, status }) => event === "task.finished" && policy === "runs" && status === "succeeded",
    );
    expect((await runHere(["pause", "--all", "--reason", "counting"], environment)).code).toBe(0);
    // A slot right before the pause is still planned.
    for (const name of ["runs", "polls"])
      await serve.until(({ event, policy }) => event === "slot.skipped" && policy === name);
    const queued = () => serve.events.filter(({ event }) => event === "slot.queued").length;
    await until(
      async () => sumOf(await scrape(serve), "syncline_tasks_total"),
      (count) => count === queued(),
      60_000,
    );
    const history = await runHere(["history", "--json", "--limit", "1000"], environment);
    const outcomes: { policy: string; status: string }[] = JSON.parse(history.out);
    // Slow answers of Redis are left out, and kept ones are a few seconds old.
    const waiting = { service: "main", queue: "actions", state: "waiting" };
    const samples = await until(
      () => scrape(serve),
      (found) => sumOf(found, "syncline_queue_tasks", waiting) === 0,
    );
    expect(outcomes.length).toBe(queued());
    for (const policy of ["runs", "polls"]) {
      const own = outcomes.filter((outcome) => outcome.policy === policy);
      for (const status of ["succeeded", "skipped", "unknown", "failed"])
        expect([policy, status, sumOf(samples, "syncline_tasks_total", { policy, status })]).toEqual([
          policy,
          status,
          own.filter((outcome) => outcome.status === status).length,
        ]);
    }
    const starts = sandbox.ledger().filter(({ operation }) => operation === "RunSyncJob").length;
    expect(starts).toBeGreaterThan(0);
    expect(sumOf(samples, "syncline_starts_total", { service: "main", outcome: "accepted" })).toBe(starts);
    expect(sumOf(samples, "syncline_start_duration_seconds_count", { service: "main" })).toBe(starts);
    expect(sumOf(samples, "syncline_slots_total", { outcome: "started" })).toBe(queued());
    expect(sumOf(samples, "syncline_feed_pages_total", { list: "activities" })).toBeGreaterThan(0);
    expect(
      sumOf(samples, "syncline_http_requests_total", { operation: "GetApprovals", outcome: "ok" }),
    ).toBeGreaterThan(0);
    expect(sumOf(samples, "syncline_policy_paused", { policy: "never", cause: "pause" })).toBe(1);
    expect(sumOf(samples, "syncline_redis_policy_ok")).toBe(1);
    expect(sumOf(samples, "syncline_config_last_reload_successful")).toBe(1);
    expect(sumOf(samples, "syncline_breaker_open", { service: "main" })).toBe(0);
    expect(sumOf(samples, "syncline_requests_in_flight"), "without limits.concurrency").toBeUndefined();
  });

  it("tells the last success on another replica and after a restart, and slots to come", async () => {
    const other = await serveWithMetrics("--roles", "scheduler");
    const last = Math.max(
      ...finished(serve, "runs").flatMap(({ status, finishedAt }) =>
        status === "succeeded" ? [Date.parse(String(finishedAt))] : [],
      ),
    );
    const samples = await until(
      () => scrape(other),
      (found) => sumOf(found, "syncline_policy_last_success_timestamp_seconds", { policy: "runs" }) !== undefined,
    );
    expect(sumOf(samples, "syncline_policy_last_success_timestamp_seconds", { policy: "runs" })).toBe(last / 1_000);
    expect(sumOf(samples, "syncline_policy_last_success_timestamp_seconds", { policy: "never" })).toBeUndefined();
    const nextYear = new Date(Date.now()).getUTCFullYear() + 1;
    expect(sumOf(samples, "syncline_policy_next_slot_timestamp_seconds", { policy: "never" })).toBe(
      Date.UTC(nextYear, 0, 1) / 1_000,
    );
    expect(sumOf(samples, "syncline_policy_stale_from_timestamp_seconds", { policy: "never" })).toBe(
      Date.UTC(nextYear + 2, 0, 1) / 1_000,
    );
    expect(sumOf(samples, "syncline_heartbeat_timestamp_seconds", { role: "worker" })).toBeUndefined();
    await until(
      async () => sumOf(await scrape(other), "syncline_heartbeat_timestamp_seconds", { role: "scheduler" }),
      (at) => at !== undefined,
    );
  });

  it("is answered in time while Redis is frozen, without what only Redis knows", async () => {
    await until(
      async () => sumOf(await scrape(serve), "syncline_breaker_open"),
      (open) => open === 0,
    );
    process.kill(redis.pid, "SIGSTOP");
    try {
      const samples = await until(
        () => scrape(serve),
        (found) => sumOf(found, "syncline_redis_up") === 0 && sumOf(found, "syncline_breaker_open") === undefined,
      );
      expect(sumOf(samples, "syncline_policy_last_success_timestamp_seconds")).toBeUndefined();
      expect(sumOf(samples, "syncline_tasks_total")).toBeGreaterThan(0);
      const beforeMs = performance.now();
      await scrape(serve);
      expect(performance.now() - beforeMs).toBeLessThan(15_000);
    } finally {
      process.kill(redis.pid, "SIGCONT");
    }
    await until(
      async () => sumOf(await scrape(serve), "syncline_breaker_open"),
      (open) => open === 0,
    );
  });
});
