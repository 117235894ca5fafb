// The connection to Redis for everything but the queue, and how Lua scripts run on it.
// Every command has a deadline: a frozen Redis must not hang a scheduler or a worker.
import { createHash } from "node:crypto";
import { Redis } from "ioredis";
import { withDeadline } from "../core/clock.ts";
import { OutOfReachError } from "../core/errors.ts";

/** Where Redis is, and what all keys of this Syncline start with. */
export interface RedisTarget {
  /** `redis://` or `rediss://`. */
  readonly url: string;
  /** Start of every key. With a hash tag, as in the default `{syncline}`, all keys share one slot of a cluster. */
  readonly prefix: string;
}

/** A connected store: the client and the names of its keys. */
export interface Store {
  readonly redis: Redis;
  /** The full name of a key: `key("slots", "nightly")` → `{syncline}:slots:nightly`. */
  readonly key: (...parts: readonly string[]) => string;
  readonly close: () => Promise<void>;
}

/** The prefix unless another is given. */
export const defaultPrefix = "{syncline}";

const commandTimeoutMs = 5_000;
const connectTimeoutMs = 5_000;

/**
 * Connects to Redis and waits until it answers.
 * @throws OutOfReachError when it does not within 10 seconds.
 */
export async function openStore(target: RedisTarget, onError: (message: string) => void = () => {}): Promise<Store> {
  const redis = new Redis(target.url, {
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    commandTimeout: commandTimeoutMs,
    maxRetriesPerRequest: 1,
  });
  let lastError = "";
  redis.on("error", (error: Error) => {
    lastError = error.message;
    onError(error.message);
  });
  try {
    await withDeadline(redis.ping(), 2 * connectTimeoutMs, () => new Error("no answer"));
  } catch (error) {
    redis.disconnect();
    // The library talks of its options when it gives up; what the socket said helps more.
    const reason = lastError || (error instanceof Error ? error.message : String(error));
    throw new OutOfReachError(
      `Redis at ${withoutSecrets(target.url)} does not answer (${reason}). Is it running? Set REDIS_URL.`,
    );
  }
  return {
    redis,
    key: (...parts) => [target.prefix, ...parts].join(":"),
    close: async () => redis.disconnect(),
  };
}

/** A Redis URL as it may be shown: host, port and database only. */
function withoutSecrets(url: string): string {
  if (!URL.canParse(url)) return "(not a URL)";
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

/** A Lua script that runs in one atomic step. Sent by its hash; the text follows once when Redis does not know it. */
export type Script = (
  store: Store,
  keys: readonly string[],
  args: readonly (string | number | Buffer)[],
) => Promise<unknown>;

/** Makes a script out of Lua. All its keys are given as `KEYS`, so that it runs on a cluster. */
export function createScript(lua: string): Script {
  const sha = createHash("sha1").update(lua).digest("hex");
  return async ({ redis }, keys, args) => {
    try {
      return await redis.evalsha(sha, keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      return await redis.eval(lua, keys.length, ...keys, ...args);
    }
  };
}

/** The time of Redis in milliseconds UTC: the one clock that all replicas share. */
export async function redisTimeMs({ redis }: Store): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** Tells an error of Redis or of the way to it from a bug: such a step is tried again. */
export function isRedisOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    ["ReplyError", "MaxRetriesPerRequestError", "ClusterAllFailedError"].includes(error.name) ||
    /^(Connection is closed|Command timed out|Stream isn't writeable)/.test(error.message) ||
    ("syscall" in error && "code" in error)
  );
}
