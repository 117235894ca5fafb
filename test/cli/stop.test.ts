import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { runHere } from "../support/commands-here.ts";
import { often, Syncline, sources } from "../support/processes.ts";
import { redisForTest } from "../support/redis.ts";
import { untilStruck } from "../support/struck-faults.ts";

const redis = redisForTest();
let folder: string;
let sandbox: Sandbox;
let file: string;
const running: Syncline[] = [];

const policies = (url: string) => `apiVersion: syncline/v1
services:
  main:
    baseUrl: ${url}
    token: { env: TEST_TOKEN }
    mapping:
      activity: { id: item.activityId, syncJobId: item.syncJobId, startedAt: item.startedAt, finished: 'item.state in ["Finished", "Failed"]', succeeded: item.state == "Finished" }
policies:
  - { name: by-hand, service: main, run: { syncJobs: [4] }, follow: { until: settled, deadline: 30s } }
`;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "syncline-stop-"));
  file = join(folder, "policies.yaml");
  sandbox = await startSandbox({ runMs: [200, 400], activities: 20, repositories: ["HR"] });
  await writeFile(file, policies(sandbox.baseUrl));
});
afterEach(async () => {
  sandbox.setFaults([]);
  for (const one of running.splice(0)) {
    one.kill("SIGKILL");
    await one.ended();
  }
});
afterAll(async () => {
  await sandbox.stop();
  await rm(folder, { recursive: true });
});

function serve(url: string, ...more: string[]): Syncline {
  const one = new Syncline(["serve", "--config", file, "--take-over-after", "2s", ...more], {
    REDIS_URL: url,
    TEST_TOKEN: sandbox.token,
  });
  running.push(one);
  return one;
}

const slowPages = [{ kind: "latency", operation: "GetActivities", delayMs: 150 }] as const;
const starts = () => sandbox.ledger().filter(({ operation }) => operation === "RunSyncJob");

describe("syncline serve that is told to stop", () => {
  // The first process of a container would otherwise miss it for ever.
  it("hears SIGTERM before it has loaded anything", async () => {
    const module = [
      'import { createRequire } from "node:module"',
      'import { writeSync } from "node:fs"',
      'const isLoaded = () => Object.keys(createRequire("/").cache).some((name) => name.includes("/ioredis/"))',
      'process.on("newListener", (name) => name === "SIGTERM" && writeSync(1, JSON.stringify({ event: "listens", isLoaded: isLoaded() }) + String.fromCharCode(10)))',
    ].join(";");
    const preload = `--import=data:text/javascript;base64,${Buffer.from(module).toString("base64")}`;
    const environment = { REDIS_URL: redis.url, TEST_TOKEN: sandbox.token, NODE_OPTIONS: preload };
    const one = new Syncline(["serve", "--config", file, "--prefix", `${redis.prefix}-early`], environment, sources);
    running.push(one);
    expect(await one.until(({ event }) => event === "listens")).toMatchObject({ isLoaded: false });
    one.kill("SIGTERM");
    expect((await one.ended()).code).toBe(0);
    expect(one.events.at(-1)?.["event"]).toBe("serve.stopped");
  });

  it("ends in order while it starts and Redis takes no further connection", async () => {
    const own = await startPrivateRedis({ args: ["--maxclients", "1"] });
    try {
      const one = serve(own.url, "--drain", "1s");
      await one.until(({ event }) => event === "queue.unreachable");
      one.kill("SIGTERM");
      const { code, err } = await one.ended();
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(one.events.at(-1)?.["event"]).toBe("serve.stopped");
    } finally {
      await own.stop();
    }
  });

  it("leaves a start to the next worker when a request outlasts the drain (P2, P8)", async () => {
    const prefix = `${redis.prefix}-long`;
    const environment = { REDIS_URL: redis.url, TEST_TOKEN: sandbox.token };
    sandbox.setFaults([{ kind: "latency", operation: "RunSyncJob", delayMs: 10_000 }]);
    const one = serve(redis.url, "--prefix", prefix, "--roles", "worker", "--drain", "1s");
    await one.until(({ event }) => event === "serve.ready");
    const before = starts().length;
    const queued = await runHere(["run", "by-hand", "--config", file, "--prefix", prefix, "--json"], environment);
    const [task = ""] = JSON.parse(queued.out).tasks;
    const client = new Redis(redis.url);
    try {
      // A permitted start whose request has not left yet is taken back, and leaves no doubt.
      await untilStruck(sandbox);
      one.kill("SIGTERM");
      expect((await one.ended()).code).toBe(0);
      expect(one.events.at(-1)?.["event"]).toBe("serve.stopped");
      // Said by whoever cut it off, not guessed by whoever comes next.
      const doubt = async () => JSON.parse((await client.hget(`${prefix}:start:${task}`, "doubt")) ?? "{}");
      await expect.poll(doubt, often).toMatchObject({ kind: "answer-lost" });
    } finally {
      client.disconnect();
    }
    const heir = serve(redis.url, "--prefix", prefix, "--roles", "worker", "--drain", "1s");
    const outcome = await heir.until(({ event, taskId }) => event === "task.finished" && taskId === task);
    expect(outcome).toMatchObject({ status: "succeeded", answerLost: true });
    expect(starts().length - before).toBe(1);
  });

  it("parks a long list at a page, and the next process resumes there", async () => {
    const prefix = `${redis.prefix}-walk`;
    const pages = 60;
    const long = await startSandbox({ activities: 100 * pages, repositories: ["HR"], faults: slowPages });
    try {
      const config = join(folder, "long.yaml");
      await writeFile(config, policies(long.baseUrl));
      const environment = { REDIS_URL: redis.url, TEST_TOKEN: long.token };
      const read = () => long.requests()["GetActivities"]?.["200"] ?? 0;
      const args = ["--config", config, "--prefix", prefix];
      const one = new Syncline(["serve", ...args, "--roles", "worker"], environment);
      running.push(one);
      await one.until(({ event }) => event === "serve.ready");
      await runHere(["run", "by-hand", ...args], environment);
      await expect.poll(read, often).toBeGreaterThanOrEqual(10);
      one.kill("SIGINT");
      expect((await one.ended()).code).toBe(0);
      const before = read();
      expect(before).toBeLessThan(pages);
      const heir = new Syncline(["serve", ...args, "--roles", "worker"], environment);
      running.push(heir);
      const walked = await heir.until(({ event, list }) => event === "feed.walked" && list === "activities");
      expect(walked["count"]).toBeGreaterThanOrEqual(100 * pages);
      expect(Number(walked["fresh"])).toBeLessThan(100 * pages);
    } finally {
      await long.stop();
    }
  });
});
