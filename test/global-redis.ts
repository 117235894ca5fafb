// Global set-up of the test projects that speak to Redis: one Redis for all their files, told to
// them by `inject("redis")`. Testcontainers where a Docker engine answers, else REDIS_URL, else a
// private server. Fails, never skips, when there is none.
import { RedisContainer } from "@testcontainers/redis";
import { Redis } from "ioredis";
import { getContainerRuntimeClient } from "testcontainers";
import type { TestProject } from "vitest/node";
import { findRedis, startPrivateRedis } from "../scripts/redis.mjs";
import type { TestRedis } from "./support/redis.ts";

const image = "redis:7-alpine";

/** A Redis to test against and how to let go of it. */
type Started = TestRedis & { readonly stop: () => Promise<unknown> };

/**
 * Called by vitest once a project, before its first file; what it returns is called after its last.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { stop, ...redis } = (await startContainer()) ?? (await useUrlOrPrivate());
  await checkAnswer(redis);
  process.stderr.write(`Redis for the project "${project.name}": ${redis.kind}, ${new URL(redis.url).host}\n`);
  project.provide("redis", redis);
  return async () => {
    await stop();
  };
}

async function startContainer(): Promise<Started | undefined> {
  try {
    await getContainerRuntimeClient();
  } catch {
    return undefined; // No Docker engine: the usual case on a developer's machine without one.
  }
  try {
    const container = await new RedisContainer(image)
      .withCommand(["redis-server", "--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"])
      .start();
    return { kind: "container", url: container.getConnectionUrl(), stop: () => container.stop() };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(`Docker answers, but ${image} does not start (${reason}); using another Redis\n`);
    return undefined;
  }
}

async function useUrlOrPrivate(): Promise<Started> {
  const source = await findRedis();
  if (source.kind === "url") return { kind: "url", url: source.url, stop: async () => {} };
  const { url, stop } = await startPrivateRedis({ server: source });
  return { kind: "private", url, stop };
}

async function checkAnswer({ kind, url }: TestRedis): Promise<void> {
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
  client.on("error", () => {}); // The rejected connect below says it.
  try {
    await client.connect();
    await client.ping();
  } catch (cause) {
    throw new Error(`The Redis to test against (${kind}) does not answer. Check REDIS_URL, or unset it.`, { cause });
  } finally {
    client.disconnect();
  }
}
