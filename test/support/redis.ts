// What a test file needs to speak to Redis without meeting the others: the address and a key prefix
// of its own. Used by test/redis, test/scenarios and test/cli. Never empties a database: the Redis
// may be somebody's own.
import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";
import { afterAll, inject } from "vitest";
import { openStore, type Store } from "../../src/store/redis.ts";

/** The Redis of this run. */
export interface TestRedis {
  /** E.g. `redis://127.0.0.1:40123`. */
  readonly url: string;
  /** Started by Testcontainers, given by `REDIS_URL`, or a private server. */
  readonly kind: "container" | "url" | "private";
}

declare module "vitest" {
  export interface ProvidedContext {
    redis: TestRedis;
  }
}

/**
 * The address of Redis and a prefix of its own. Call it at the top of a test file (or of a
 * `describe`), or in a test with `onTestFinished`; afterwards the keys with this prefix are
 * removed.
 */
export function redisForTest(
  after: (cleanUp: () => Promise<void>) => void = afterAll,
): TestRedis & { readonly prefix: string } {
  const redis = inject("redis");
  const prefix = `test-${randomBytes(6).toString("hex")}`;
  after(() => removeKeys(redis.url, prefix));
  return { ...redis, prefix };
}

/** A store of this Redis, closed after the file (or the `describe`). */
export async function storeForTest(target: { url: string; prefix: string } = redisForTest()): Promise<Store> {
  const store = await openStore(target);
  afterAll(() => store.close());
  return store;
}

async function removeKeys(url: string, prefix: string): Promise<void> {
  const client = new Redis(url);
  try {
    for await (const keys of client.scanStream({ match: `${prefix}*`, count: 1_000 })) {
      if (keys.length > 0) await client.unlink(keys);
    }
  } finally {
    client.disconnect();
  }
}
