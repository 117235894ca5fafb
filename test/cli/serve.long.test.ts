import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { startPrivateRedis } from "../../scripts/redis.mjs";
import type { Outcome } from "../../src/model/outcome.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { History } from "../../src/store/history.ts";
import { openStore } from "../../src/store/redis.ts";
import { runHere } from "../support/commands-here.ts";
import { often, Syncline, syncline } from "../support/processes.ts";
import { redisForTest } from "../support/redis.ts";

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
      activity: { id: item.activityId, syncJobId: item.syncJobId, finished: 'item.state in ["Finished", "Failed"]', succeeded: item.state == "Finished" }
      conflict: { id: item.conflictId, syncJobId: item.syncJobId }
policies:
  - { name: often, service: main, run: { syncJobs: [1, 2, 3] }, schedule: { every: 1s }, overlap: allow, follow: { until: accepted } }
  - { name: by-hand, service: main, run: { syncJobs: [4] }, follow: { until: settled, deadline: 30s } }
  - { name: with-conflict, service: main, run: { syncJobs: [5] }, follow: { until: settled, deadline: 30s } }
`;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "syncline-"));
  file = join(folder, "policies.yaml");
  sandbox = await startSandbox({
    runMs: [200, 400],
    activities: 20,
    repositories: ["HR"],
    faults: usualFaults,
  });
  await writeFile(file, policies(sandbox.baseUrl));
});
afterEach(async () => {
  sandbox.setFaults(usualFaults);
  for (const one of running.splice(0)) {
    one.kill("SIGKILL");
    await one.ended();
  }
});
afterAll(async () => {
  await sandbox.stop();
  await rm(folder, { recursive: true });
});

const environment = () => ({ REDIS_URL: redis.url, TEST_TOKEN: sandbox.token });

async function serve(prefix: string, ...more: string[]): Promise<Syncline> {
  const one = new Syncline(
    ["serve", "--config", file, "--prefix", prefix, "--take-over-after", "2s", "--drain", "5s", ...more],
    environment(),
  );
  running.push(one);
  await one.until(({ event }) => event === "serve.ready");
  return one;
}

async function outcomes(prefix: string): Promise<Outcome[]> {
  const store = await openStore({ url: redis.url, prefix });
  try {
    return await new History(store).newest(1_000);
  } finally {
    await store.close();
  }
}

// Waits until the request of a start has arrived at the sandbox, which keeps it waiting.
async function untilArrived(): Promise<void> {
  const headers = { authorization: `Bearer ${sandbox.token}` };
  const struck = async () => {
    const answer = await fetch(`${sandbox.baseUrl}/_sandbox/faults`, { headers });
    const { value } = (await answer.json()) as { value: { struck: number }[] };
    return value[0]?.struck ?? 0;
  };
  await expect.poll(struck, often).toBeGreaterThan(0);
}

const usualFaults = [{ kind: "latency", delayMs: 30 }] as const;
const starts = () =>
  sandbox
    .ledger()
    .filter(({ operation }) => operation === "RunSyncJob")
    .map(({ idempotencyKey }) => String(idempotencyKey));

describe("syncline serve", () => {
  it("drains on SIGTERM: exit 0 in its time, and an outcome for all it accepted", async () => {
    const prefix = `${redis.prefix}-drain`;
    const one = await serve(prefix);
    await one.until(({ event }) => event === "task.finished");
    one.kill("SIGTERM");
    const { code } = await one.ended();
    expect(code).toBe(0);
    expect(one.events.at(-1)?.["event"]).toBe("serve.stopped");
    const accepted = one.events.filter(({ event }) => event === "task.started").map(({ taskId }) => taskId);
    const finished = (await outcomes(prefix)).map(({ taskId }) => taskId);
    expect(accepted.filter((task) => !finished.includes(String(task)))).toEqual([]);
  });

  it("ends at once on a second signal", async () => {
    const prefix = `${redis.prefix}-twice`;
    // A start is under way, so that the first signal alone would take its time.
    sandbox.setFaults([{ kind: "latency", operation: "RunSyncJob", delayMs: 10_000 }]);
    const one = await serve(prefix, "--roles", "worker");
    const queued = await runHere(["run", "by-hand", "--config", file, "--prefix", prefix, "--json"], environment());
    const [task = ""] = JSON.parse(queued.out).tasks;
    await untilArrived();
    one.kill("SIGTERM");
    await one.until(({ event }) => event === "serve.stopping");
    one.kill("SIGTERM");
    expect((await one.ended()).code).toBe(1);
    expect(one.events.filter(({ event }) => event === "serve.stopped")).toEqual([]);
    // The sandbox does what it was asked to, also when nobody waits any more; the next test must
    // not meet it.
    await expect.poll(starts, often).toContain(task);
  });

  it("starts once and loses no outcome when workers die of kill -9 (P2)", async () => {
    const prefix = `${redis.prefix}-kill`;
    const before = starts().length;
    const survivor = await serve(prefix);
    for (let round = 0; round < 3; round += 1) {
      const victim = await serve(prefix, "--roles", "worker");
      // Killed right when it has work in hand: its latest line says so.
      await victim.until(({ event }) => event === "task.started");
      victim.kill("SIGKILL");
      await victim.ended();
    }
    await survivor.until(
      ({ event, taskId }) =>
        event === "task.finished" &&
        String(taskId).startsWith("often") &&
        survivor.events.filter((one) => one["event"] === "slot.queued").length >= 6,
    );
    survivor.kill("SIGTERM");
    await survivor.ended();
    const heir = await serve(prefix, "--roles", "worker");
    const keys = starts().slice(before);
    expect(new Set(keys).size).toBe(keys.length);
    // Whatever the dead left behind is taken over and ends.
    for (;;) {
      const ended = new Set((await outcomes(prefix)).map(({ taskId }) => taskId));
      const open = keys.filter((task) => !ended.has(task));
      if (open.length === 0) break;
      await heir.until(({ event, taskId }) => event === "task.finished" && open.includes(String(taskId)));
    }
    const again = starts().slice(before);
    expect(new Set(again).size).toBe(again.length);
    const truth = (await outcomes(prefix)).filter(
      ({ status }) => status === "not-started" || status === "missed" || status === "skipped",
    );
    expect(truth.filter(({ taskId }) => again.includes(taskId))).toEqual([]);
  });

  it("does not resend what a killed worker just sent, and confirms the start (P2)", async () => {
    for (let round = 0; round < 2; round += 1) {
      const prefix = `${redis.prefix}-sent-${round}`;
      sandbox.setFaults([{ kind: "latency", operation: "RunSyncJob", delayMs: 8_000 }]);
      const victim = await serve(prefix, "--roles", "worker");
      const queued = await runHere(["run", "by-hand", "--config", file, "--prefix", prefix, "--json"], environment());
      const [task = ""] = JSON.parse(queued.out).tasks;
      await untilArrived();
      victim.kill("SIGKILL");
      await victim.ended();
      const heir = await serve(prefix, "--roles", "worker");
      const finished = await heir.until(({ event, taskId }) => event === "task.finished" && taskId === task);
      expect(finished).toMatchObject({ status: "succeeded", answerLost: true });
      expect(starts().filter((key) => key === task)).toEqual([task]);
      heir.kill("SIGTERM");
      await heir.ended();
    }
  });

  it("sends at most once when SIGSTOP holds it in its request; so does its heir (P2)", async () => {
    const prefix = `${redis.prefix}-stopped`;
    sandbox.setFaults([{ kind: "latency", operation: "RunSyncJob", delayMs: 10_000 }]);
    const zombie = await serve(prefix, "--roles", "worker");
    const queued = await runHere(["run", "by-hand", "--config", file, "--prefix", prefix, "--json"], environment());
    const [task = ""] = JSON.parse(queued.out).tasks;
    const store = await openStore({ url: redis.url, prefix });
    try {
      // Its request is on the way: it sleeps past its lock, another one takes over, and then it
      // wakes up.
      await untilArrived();
      zombie.kill("SIGSTOP");
      const heir = await serve(prefix, "--roles", "worker");
      await heir.until(({ event, taskId }) => event === "task.stalled" && taskId === task);
      zombie.kill("SIGCONT");
      await expect.poll(() => new History(store).outcome({ policy: "by-hand", id: task }), often).toBeDefined();
      const outcome = await new History(store).outcome({ policy: "by-hand", id: task });
      const sent = starts().filter((key) => key === task);
      expect(sent.length).toBeLessThanOrEqual(1);
      if (outcome?.status === "succeeded") expect(sent).toEqual([task]);
      else expect(outcome).toMatchObject({ status: "unknown" });
    } finally {
      await store.close();
    }
  });

  it("ends inside its grace period when Redis is gone for ever (P8)", async () => {
    const own = await startPrivateRedis();
    const one = new Syncline(["serve", "--config", file, "--drain", "1s"], { ...environment(), REDIS_URL: own.url });
    running.push(one);
    await one.until(({ event }) => event === "serve.ready");
    await own.stop();
    one.kill("SIGTERM");
    expect((await one.ended()).code).not.toBeNull();
    expect(one.events.at(-1)?.["event"]).toBe("serve.stopped");
  });

  it("follows its policy file, and keeps the last good one while it is broken (P6)", async () => {
    const own = join(folder, "reloaded.yaml");
    await writeFile(own, policies(sandbox.baseUrl));
    const one = new Syncline(["serve", "--config", own, "--prefix", `${redis.prefix}-reload`], environment());
    running.push(one);
    await one.until(({ event }) => event === "serve.ready");
    // In one step: a file that is being written is empty for a moment.
    const put = async (text: string) => {
      await writeFile(`${own}.new`, text);
      await rename(`${own}.new`, own);
    };
    await put(`${policies(sandbox.baseUrl)}  - { nam: broken }\n`);
    const rejected = await one.until(({ event }) => event === "config.rejected");
    expect(rejected).toMatchObject({ where: `${own}:13` });
    const queued = one.events.filter(({ event }) => event === "slot.queued").length;
    await one.until(() => one.events.filter(({ event }) => event === "slot.queued").length > queued + 1);
    await put(policies(sandbox.baseUrl).replace("every: 1s", "every: 1h"));
    expect(await one.until(({ event }) => event === "config.reloaded")).toMatchObject({
      policiesChangedNames: ["often"],
    });
    one.kill("SIGTERM");
    expect((await one.ended()).code).toBe(0);
  });

  it("refuses a wrong configuration with exit 2 and every place", async () => {
    const bad = join(folder, "bad.yaml");
    await writeFile(bad, "apiVersion: syncline/v1\nservices: {}\npolicies:\n  - { nam: x }\n");
    const { code, err, out } = await syncline(["serve", "--config", bad], environment());
    expect(code).toBe(2);
    expect(err).toContain("bad.yaml:4:");
    expect(out).toBe("");
  });

  it("says with exit 2 which variable should hold the token", async () => {
    const { code, err } = await syncline(["serve", "--config", file], { REDIS_URL: redis.url });
    expect(code).toBe(2);
    expect(err).toContain("TEST_TOKEN");
  });

  it("says with exit 3 that Redis is out of reach, without its password", async () => {
    const { code, err } = await syncline(
      ["serve", "--config", file, "--redis-url", "redis://user:canary-secret@127.0.0.1:1"],
      environment(),
    );
    expect(code).toBe(3);
    expect(err).toContain("127.0.0.1:1");
    expect(err).not.toContain("canary-secret");
  });
});

describe("syncline run --wait", () => {
  it("does the work itself when no worker is about, and exits 0 for a good outcome", async () => {
    const prefix = `${redis.prefix}-alone`;
    const { code, out, err } = await syncline(
      ["run", "by-hand", "--config", file, "--prefix", prefix, "--wait", "--json"],
      environment(),
    );
    expect(err).toContain("this process works");
    expect(JSON.parse(out)).toMatchObject([{ policy: "by-hand", target: "4", status: "succeeded", origin: "manual" }]);
    expect(code).toBe(0);
    const history = await runHere(["history", "--prefix", prefix, "--json"], environment());
    expect(JSON.parse(history.out)).toHaveLength(1);
  });

  it("exits 1 when the outcome is not good", async () => {
    await serve(`${redis.prefix}-wait`);
    const { code, out } = await syncline(
      ["run", "with-conflict", "--config", file, "--prefix", `${redis.prefix}-wait`, "--wait", "--json"],
      environment(),
    );
    expect(JSON.parse(out)).toMatchObject([{ status: "conflicts", newConflicts: 1 }]);
    expect(code).toBe(1);
  });

  it("exits 1 when nothing was started because the sync job is still running", async () => {
    const prefix = `${redis.prefix}-busy`;
    await serve(prefix, "--roles", "worker");
    // As long as its start is not answered, the run counts as under way.
    sandbox.setFaults([{ kind: "latency", operation: "RunSyncJob", delayMs: 20_000 }]);
    await runHere(["run", "by-hand", "--config", file, "--prefix", prefix], environment());
    await untilArrived();
    const { code, out, err } = await syncline(
      ["run", "by-hand", "--config", file, "--prefix", prefix, "--wait", "--json"],
      environment(),
    );
    expect(JSON.parse(out)).toMatchObject([{ status: "skipped", reason: "overlap" }]);
    expect(err).toContain(": skipped (overlap)");
    expect(code).toBe(1);
  });

  it("names the policies there are for one that there is not", async () => {
    const { code, err } = await runHere(["run", "nobody", "--config", file], environment());
    expect(code).toBe(2);
    expect(err).toContain("often, by-hand, with-conflict");
  });
});
