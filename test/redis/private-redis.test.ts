// The private Redis that tests and the demo start: it comes up, keeps to itself, and goes when its
// starter goes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { findRedisServer, type PrivateRedis, type RedisServer, startPrivateRedis } from "../../scripts/redis.mjs";
import { freePort } from "../support/redis-servers.ts";

const running: PrivateRedis[] = [];
let server: RedisServer;
beforeAll(async () => {
  server = await findRedisServer();
});
afterEach(async () => {
  for (const redis of running.splice(0)) await redis.stop();
});

async function start(options: Parameters<typeof startPrivateRedis>[0] = {}): Promise<PrivateRedis> {
  const redis = await startPrivateRedis({ server, ...options });
  running.push(redis);
  return redis;
}

async function ask<T>(url: string, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
  client.on("error", () => {});
  try {
    await client.connect();
    return await question(client);
  } finally {
    client.disconnect();
  }
}

const refuses = (url: string) =>
  ask(url, (client) => client.ping()).then(
    () => false,
    () => true,
  );

describe("a private Redis", () => {
  it("answers as soon as the start resolves, and evicts nothing", async () => {
    const { url } = await start();
    expect(await ask(url, (client) => client.config("GET", "maxmemory-policy"))).toEqual([
      "maxmemory-policy",
      "noeviction",
    ]);
  });

  it("is gone when the stop resolves, and stops twice without complaint", async () => {
    const redis = await start();
    await redis.stop();
    await redis.stop();
    expect(await refuses(redis.url)).toBe(true);
  });

  it("stops although it is frozen", async () => {
    const redis = await start();
    if (server.kind === "binary") process.kill(redis.pid, "SIGSTOP");
    await redis.stop();
    expect(await refuses(redis.url)).toBe(true);
  });

  it("takes two at once", async () => {
    const [one, other] = await Promise.all([start(), start()]);
    expect(one.port).not.toBe(other.port);
    expect(await ask(other.url, (client) => client.ping())).toBe("PONG");
  });

  it("says so when the port asked for is taken", async () => {
    const { port } = await start();
    await expect(start({ port })).rejects.toThrow(`cannot listen on 127.0.0.1:${port}: the port is taken`);
  });

  it("says why when the server refuses its options", async () => {
    await expect(start({ args: ["--no-such-option", "1"] })).rejects.toThrow(/Redis did not start: .*no-such-option/);
  });

  it("keeps its data in a folder when told to, across a restart on the same port", async () => {
    const dir = mkdtempSync(join(tmpdir(), "syncline-test-"));
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
    const args = ["--appendonly", "yes"];
    const first = await start({ dir, args, port: await freePort() });
    await ask(first.url, (client) => client.set("key", "kept"));
    await first.stop();
    const second = await start({ dir, args, port: first.port });
    expect(await ask(second.url, (client) => client.get("key"))).toBe("kept");
  });
});

describe("a private Redis whose starter is killed", () => {
  it("ends too and leaves no folder behind", async () => {
    const temporary = mkdtempSync(join(tmpdir(), "syncline-test-"));
    onTestFinished(() => rmSync(temporary, { recursive: true, force: true }));
    const module = new URL("../../scripts/redis.mjs", import.meta.url).href;
    const script = `const { startPrivateRedis } = await import(${JSON.stringify(module)});
      const { url } = await startPrivateRedis({ server: ${JSON.stringify(server)} });
      console.log(url); setInterval(() => {}, 1000);`;
    const starter = spawn(process.execPath, ["--input-type=module", "-e", script], {
      env: { ...process.env, TMPDIR: temporary },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(starter.stdout, "data");
    const url = String(line).trim();
    expect(await ask(url, (client) => client.ping())).toBe("PONG");
    expect(readdirSync(temporary)).toHaveLength(server.kind === "binary" ? 1 : 0);

    starter.kill("SIGKILL");

    await once(starter, "exit");
    await expect.poll(() => refuses(url)).toBe(true);
    await expect.poll(() => readdirSync(temporary)).toEqual([]);
    expect(existsSync(temporary)).toBe(true);
  });
});
