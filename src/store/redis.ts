// The connection to Redis for everything but the queue, and how Lua scripts run on it.
// Every command has a deadline: a frozen Redis must not hang a scheduler or a worker.
import { createHash } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import { showRedisAddress } from "../config/redis-address.ts";
import { withDeadline } from "../core/clock.ts";
import { OutOfReachError } from "../core/errors.ts";
import { createRedisClient, type RedisTarget } from "./connect.ts";

export type { RedisTarget };

/** A connected store: the client and the names of its keys. */
export interface Store {
  readonly redis: Redis | Cluster;
  /** The full name of a key: `key("slots", "nightly")` → `{syncline}:slots:nightly`. */
  readonly key: (...parts: readonly string[]) => string;
  readonly close: () => Promise<void>;
}

/** The prefix unless another is given. */
export const defaultPrefix = "{syncline}";

const answerWithinMs = 10_000;

/**
 * Connects to Redis and waits until it answers.
 * @throws OutOfReachError when it does not within 10 seconds; UsageError when the target is none.
 */
export async function openStore(target: RedisTarget, onError: (message: string) => void = () => {}): Promise<Store> {
  const redis = createRedisClient(target, "commands");
  let lastError = "";
  redis.on("error", (error: Error) => {
    lastError = error.message;
    onError(error.message);
  });
  try {
    await withDeadline(redis.ping(), answerWithinMs, () => new Error("no answer"));
  } catch (error) {
    redis.disconnect();
    // The library talks of its options when it gives up; what the socket said helps more.
    const reason = lastError || (error instanceof Error ? error.message : String(error));
    const [code = ""] = /^(NOAUTH|WRONGPASS|NOPERM)\b/.exec(reason) ?? [];
    throw new OutOfReachError(
      code === ""
        ? `Redis at ${showRedisAddress(target.url)} does not answer (${reason}). Is it running? Set REDIS_URL.`
        : `Redis at ${showRedisAddress(target.url)} refuses this user or password (${code}). Check REDIS_PASSWORD_FILE, REDIS_PASSWORD and REDIS_URL; docs/redis.md says which rights a user needs.`,
    );
  }
  return {
    redis,
    key: (...parts) => [target.prefix, ...parts].join(":"),
    close: async () => redis.disconnect(),
  };
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

const timeScript = createScript("return redis.call('TIME')");

/** The time of Redis in milliseconds UTC: the one clock that all replicas share. In a cluster, that of the node that has our keys. */
export async function redisTimeMs(store: Store): Promise<number> {
  const { redis, key } = store;
  const answer = redis.isCluster ? await timeScript(store, [key("clock")], []) : await redis.time();
  const [seconds, microseconds] = Array.isArray(answer) ? answer : [];
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** What ioredis says without a name of its own: of a single connection, of a pipeline that was cut in two, of a cluster without its nodes. */
const outageMessage =
  /^(Connection is closed|Command timed out|Command aborted|Stream isn't writeable|Too many Cluster redirections|None of startup nodes|Node is disconnected|Cluster is)/;

/** Tells an error of Redis or of the way to it from a bug: such a step is tried again. */
export function isRedisOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    ["ReplyError", "MaxRetriesPerRequestError", "ClusterAllFailedError"].includes(error.name) ||
    outageMessage.test(error.message) ||
    ("syscall" in error && "code" in error)
  );
}
