// What `syncline doctor` and `syncline status` say of sinks and heartbeats, and that neither ever
// sends a notice.
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkSinks } from "../../src/cli/doctor/outside-checks.ts";
import { silentLog } from "../../src/core/event-log.ts";
import type { Notice } from "../../src/model/notice.ts";
import { NoticeQueues } from "../../src/queue/notice-queues.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { openStore } from "../../src/store/redis.ts";
import { RedisWatch } from "../../src/store/redis-watch.ts";
import { SinkStore } from "../../src/store/sink-store.ts";
import { runHere } from "../support/commands-here.ts";
import { keepAlive } from "../support/kept-set.ts";
import { testPolicy } from "../support/policies.ts";
import { Receiver } from "../support/receiver.ts";
import { freePort, ownFolder, startServer } from "../support/redis-servers.ts";

interface Line {
  readonly check: string;
  readonly subject: string;
  readonly level: string;
  readonly what: string;
  readonly cure?: string;
}

const key = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const prefix = "{doctored}";
let redisUrl: string;
let sandbox: Sandbox;
let receiver: Receiver;
let folder: string;

beforeAll(async () => {
  redisUrl = (await startServer({ args: ["--appendonly", "yes"] })).url;
  sandbox = await startSandbox({ jobs: 3, repositories: ["HR"] });
  receiver = await new Receiver().start();
  folder = ownFolder();
  mkdirSync(join(folder, "notices"));
  writeFileSync(join(folder, "key"), key);
});
afterAll(() => Promise.all([sandbox.stop(), receiver.stop()]));

/** Writes a policy file with these sinks and asks a command about it. */
async function ask(command: string, sinks: Readonly<Record<string, string>>, heartbeat = "") {
  const file = join(folder, "p.yaml");
  const lines = Object.entries(sinks).map(([name, sink]) => `  ${name}: { ${sink} }\n`);
  writeFileSync(
    file,
    `apiVersion: syncline/v1
services:
  main: { baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN } }
sinks:
${lines.join("")}
policies:
  - { name: nightly, service: main, repository: HR, run: { syncJobs: [1] }, schedule: { every: 24h }${heartbeat} }
`,
  );
  const environment = { REDIS_URL: redisUrl, TEST_TOKEN: sandbox.token };
  const { code, out, err } = await runHere([command, "--config", file, "--prefix", prefix, "--json"], environment);
  if (code === 2) throw new Error(err);
  const report: { readonly checks?: readonly Line[]; readonly sinks?: readonly object[] } = JSON.parse(out);
  return { code, out, report, sinks: (report.checks ?? []).filter(({ check }) => check === "sinks") };
}

const webhook = (url: string, secretFile = "key") => `webhook: { url: "${url}", secretFile: ${secretFile} }`;

describe("syncline doctor", () => {
  it("checks sinks and heartbeats without sending anything, not even a request head", async () => {
    let [connections, bytes] = [0, 0];
    const listener = createServer((socket) => {
      connections += 1;
      socket.on("data", (data) => {
        bytes += data.length;
      });
      socket.on("error", () => {});
    });
    await new Promise<void>((listening) => listener.listen(0, "127.0.0.1", listening));
    const { port } = listener.address() as AddressInfo;
    const sinks = {
      ops: webhook(`http://127.0.0.1:${port}/hook?canary=query`),
      log: "file: { path: notices/a.jsonl }",
    };
    const found = await ask("doctor", sinks, `, heartbeat: { url: "http://127.0.0.1:${port}/canary-tick" }`);
    listener.close();
    expect(found.sinks).toMatchObject([
      { level: "ok", subject: "ops", what: `127.0.0.1:${port} can be reached; nothing was sent` },
      { level: "ok", subject: "log", what: expect.stringMatching(/notices\/a\.jsonl can be written$/) },
      { level: "ok", subject: "nightly", what: expect.stringContaining("can be reached; nothing was sent") },
    ]);
    expect([connections, bytes, found.code]).toEqual([2, 0, 0]);
    expect(found.out).not.toContain("canary");
  });

  it("says what a sink lacks, with a cure each: a secret, a receiver, a folder, rights", async () => {
    mkdirSync(join(folder, "taken"));
    writeFileSync(join(folder, "plain"), "canary-no-key");
    const port = await freePort();
    const found = await ask("doctor", {
      unsigned: webhook(receiver.url, "absent"),
      wrong: webhook(receiver.url, "plain"),
      gone: webhook(`http://127.0.0.1:${port}/hook`),
      nowhere: "file: { path: absent/a.jsonl }",
      folder: "file: { path: taken/../key/a.jsonl }",
    });
    expect(found.code).toBe(1);
    const told = new Map(found.sinks.map(({ subject, level, what }) => [subject, `${level}: ${what}`]));
    expect(told.get("unsigned")).toMatch(/^problem: secret file \S+absent cannot be read \(ENOENT\)/);
    expect(told.get("wrong")).toMatch(/^problem: secret file \S+plain holds no secret/);
    expect(told.get("gone")).toBe(`problem: TCP failed at 127.0.0.1:${port} (ECONNREFUSED)`);
    expect(told.get("nowhere")).toMatch(/^problem: the folder \S+absent cannot be written \(ENOENT\)$/);
    expect(told.get("folder")).toMatch(/^problem: the folder \S+key cannot be written \((ENOTDIR|EACCES)\)$/);
    for (const { cure } of found.sinks) expect(cure).toMatch(/\w/);
    expect(found.out).not.toContain("canary");
    expect(receiver.received).toEqual([]);
  });

  it("says that of many heartbeats only some were tried", async () => {
    const port = await freePort();
    const policies = Array.from({ length: 60 }, (_, index) =>
      testPolicy({ name: `p${index}`, heartbeat: { url: `http://127.1.1.${index + 1}:${port}/tick` } as never }),
    );
    const found = await checkSinks({ sinks: new Map(), policies }, new AbortController().signal);
    expect(found).toHaveLength(51);
    expect(found.at(-1)).toMatchObject({
      ...{ level: "warning", subject: "heartbeats" },
      what: "only 50 of 60 hosts were tried",
    });
    const few = await checkSinks({ sinks: new Map(), policies: policies.slice(0, 50) }, new AbortController().signal);
    expect(few.map(({ subject }) => subject)).not.toContain("heartbeats");
  });

  // Rights do not bind root.
  it.skipIf(process.getuid?.() === 0)("says that a folder may not be written", async () => {
    const path = join(folder, "closed");
    mkdirSync(path);
    chmodSync(path, 0o500);
    const found = await ask("doctor", { log: "file: { path: closed/a.jsonl }" });
    expect(found.sinks).toMatchObject([{ level: "problem", what: expect.stringContaining("(EACCES)") }]);
  });
});

describe("what waits for sinks", () => {
  const sinks = () => ({ ops: webhook(receiver.url), never: webhook(receiver.url) });
  const notice = (id: string): Notice => ({
    v: 1,
    id,
    kind: "outcome",
    orderKey: "nightly",
    policy: "nightly",
    service: "main",
    at: "2026-11-21T02:30:00.000Z",
    title: "nightly: failed",
    data: {},
  });

  it("shows in status, and is a warning of doctor once it is stuck", async () => {
    const target = { url: redisUrl, prefix };
    const store = await openStore(target);
    const queues = new NoticeQueues(target, silentLog);
    try {
      // Somewhere both roles are alive: without them, status would be 1 for that.
      const alive = new RedisWatch(store, { roles: ["scheduler", "worker"] });
      await alive.check();
      await keepAlive(store);
      const before = await store.redis.dbsize();
      const fresh = await ask("status", sinks());
      expect([fresh.code, fresh.report.sinks, await store.redis.dbsize()]).toEqual([0, [], before]);
      await new SinkStore(store).noteSeen(["ops"]);
      await queues.add("ops", [notice("a"), notice("b")], 10);
      await new SinkStore(store).countDropped("ops", 4);
      await alive.check();
      await keepAlive(store);
      const waiting = await ask("status", sinks());
      expect([waiting.code, waiting.report.sinks]).toEqual([
        0,
        [{ sink: "ops", waiting: 2, failed: 0, dropped: 4, oldestMs: expect.any(Number) }],
      ]);
      await makeOld(store, "a");
      const stuck = await ask("status", sinks());
      expect(stuck.code).toBe(1);
      const doctored = await ask("doctor", sinks());
      expect(doctored.sinks.filter(({ level }) => level !== "ok")).toMatchObject([
        { subject: "ops", level: "warning", what: "2 notices wait, the first for 20m" },
        { subject: "ops", level: "warning", what: "4 notices were dropped since it is known: its queue was full" },
      ]);
      expect(doctored.code).toBe(0);
    } finally {
      await queues.close();
      await store.close();
    }
  });

  /** Lets a notice wait since 20 minutes ago. */
  async function makeOld({ redis }: Awaited<ReturnType<typeof openStore>>, id: string): Promise<void> {
    const twentyMinutesAgo = `"sinceMs":${Date.now() - 20 * 60_000}`;
    for (const name of await redis.keys(`${prefix}*`)) {
      if ((await redis.type(name)) !== "hash") continue;
      const data = (await redis.hget(name, "data")) ?? "";
      if (data.includes(`"id":"${id}"`))
        await redis.hset(name, "data", data.replace(/"sinceMs":\d+/, twentyMinutesAgo));
    }
  }
});
