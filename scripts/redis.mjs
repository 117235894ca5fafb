// Finds a Redis server for tests and the demo, and starts a private one that lives no longer than
// who started it. Called by bootstrap.mjs, the tests' global set-up and the demo. Imports nothing
// but Node's own modules. Never needs root, never uses a port but on 127.0.0.1, and keeps no data
// unless told to.
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { findOnPath, Problem, run as runCommand } from "./bootstrap/run.mjs";
import { findUnpackedRedis, unpackDebianRedis } from "./redis/debian-package.mjs";
import { awaitReady, freePort, launchGuarded, ping, stopProcess } from "./redis/process.mjs";

const image = "redis:7-alpine";
const startsMax = 5;
const localCache = join(dirname(dirname(fileURLToPath(import.meta.url))), ".cache");

/** What findRedis looks at, in this order. The types of all this are in redis.d.mts. */
export async function findRedis(options = {}) {
  const { env = process.env } = options;
  if (env.REDIS_URL) return { kind: "url", url: env.REDIS_URL };
  return findRedisServer(options);
}

/** As findRedis, but a server to start: REDIS_URL is not looked at. */
export async function findRedisServer({ env = process.env, cache = localCache, onProgress = () => {} } = {}) {
  const path = env.PATH ?? "";
  const installed = findOnPath("redis-server", path) ?? findOnPath("valkey-server", path);
  if (installed !== undefined) return { kind: "binary", command: installed, env: {} };
  const unpacked = findUnpackedRedis(cache) ?? (await unpackDebianRedis({ cache, path, onProgress }));
  if (unpacked !== undefined) return { kind: "binary", ...unpacked };
  if (await dockerAnswers(path)) return { kind: "docker" };
  throw new Problem("no Redis server can be had on this machine", [
    "set REDIS_URL to one that may be written to, e.g. REDIS_URL=redis://localhost:6379",
    "or install redis-server (or valkey-server) and put it on PATH",
    `or start Docker, with ${image} in reach`,
  ]);
}

/** Starts a Redis of its own on a free port of 127.0.0.1. */
export async function startPrivateRedis({ dir, port, args = [], server } = {}) {
  const found = server ?? (await findRedisServer());
  for (let start = 1; ; start += 1) {
    const tried = { found, dir, port: port ?? (await freePort()), args };
    const redis = await startOnce(tried);
    if (redis !== undefined) return redis;
    if (port !== undefined || start === startsMax) {
      throw new Problem(`Redis cannot listen on 127.0.0.1:${tried.port}: the port is taken`, ["choose another port"]);
    }
  }
}

/** Undefined when somebody else took the port. */
async function startOnce({ found, dir, port, args }) {
  const options = ["--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction", ...args];
  const { child, cleanUp, readyTimeoutMs } = { binary: launchBinary, docker: launchContainer }[found.kind]({
    found,
    dir,
    port,
    options,
  });
  const stop = () => stopProcess(child, cleanUp);
  try {
    if ((await awaitReady(child, readyTimeoutMs)) === "port-taken") {
      await stop();
      return undefined;
    }
    await ping(port);
  } catch (error) {
    await stop();
    throw error;
  }
  child.letGo();
  return { url: `redis://127.0.0.1:${port}`, port, pid: child.process.pid, stop };
}

function launchBinary({ found, dir, port, options }) {
  const ownDir = dir === undefined ? mkdtempSync(join(tmpdir(), "syncline-redis-")) : undefined;
  const command = [found.command, "--port", `${port}`, "--bind", "127.0.0.1", "--dir", dir ?? ownDir, ...options];
  return {
    child: launchGuarded(command, { env: found.env, ownDir }),
    cleanUp: async () => ownDir !== undefined && rmSync(ownDir, { recursive: true, force: true }),
    readyTimeoutMs: 60_000,
  };
}

function launchContainer({ dir, port, options }) {
  const container = `syncline-redis-${randomBytes(6).toString("hex")}`;
  const volume = dir === undefined ? [] : ["-v", `${dir}:/data`];
  const command = ["docker", "run", "--rm", "--name", container, "-p", `127.0.0.1:${port}:6379`, ...volume, image];
  return {
    child: launchGuarded([...command, "redis-server", ...options], { container }),
    cleanUp: () => runCommand("docker", ["rm", "-f", container]),
    readyTimeoutMs: 180_000, // The image may have to be fetched.
  };
}

async function dockerAnswers(path) {
  const docker = findOnPath("docker", path);
  return docker !== undefined && (await runCommand(docker, ["info"], { timeoutMs: 10_000 })).code === 0;
}
