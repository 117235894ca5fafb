// The connection to Redis for all but the queue, its clock, and who else uses the prefix. Every
// command has a deadline: a frozen Redis must not hang the scheduler or a worker.

import { randomUUID } from "node:crypto";
import type { Cluster, Redis } from "ioredis";
import { showRedisAddress } from "../config/redis-address.ts";
import { shared } from "../core/batcher.ts";
import { type Clock, createDeadline, systemClock, untilAborted, withTimeLimit } from "../core/clock.ts";
import { OutOfReachError } from "../core/errors.ts";
import type { RedisTarget } from "./connect.ts";
import { asTexts, createScript, pairsOf } from "./script.ts";

/** How long ago the last tick of a live process may be. */
export const aliveForMs = 10_000;

const processesMax = 10_000;

/** How long a time of Redis is extrapolated, by either clock: a process that slept asks anew. */
const carryOnMs = 1_000;

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
 * Connects to Redis; throws OutOfReachError after 10 s or when `signal` aborts, UsageError for a
 * wrong target.
 */
export async function openStore(
  target: RedisTarget,
  onError: (message: string) => void = () => {},
  signal?: AbortSignal,
): Promise<Store> {
  // ioredis is a fifth of what a command without Redis would load.
  const { createRedisClient } = await import("./connect.ts");
  const redis = createRedisClient(target, "commands");
  let lastError = "";
  redis.on("error", (error: Error) => {
    // A server of another protocol hangs up after its answer. The answer says more.
    if (!isOtherProtocol(lastError)) lastError = error.message;
    onError(error.message);
  });
  try {
    // A Sentinel answers PING as well, and a cluster node may not have our keys.
    const asked = redis.ping().then(() => redis.zcard([target.prefix, "processes"].join(":")));
    await untilAborted(
      withTimeLimit(asked, answerWithinMs, () => new Error("no answer")),
      signal,
    );
  } catch (error) {
    redis.disconnect();
    // ioredis gives up with advice about its options. The socket's error helps more.
    const reason = lastError || (error instanceof Error ? error.message : String(error));
    throw new OutOfReachError(unusableMessage(showRedisAddress(target.url), reason));
  }
  return {
    redis,
    key: (...parts) => [target.prefix, ...parts].join(":"),
    close: async () => redis.disconnect(),
  };
}

function unusableMessage(where: string, reason: string): string {
  if (isOtherProtocol(reason))
    return `${where} answers in another protocol than that of Redis. Is it the port of another server, or does only one side speak TLS (rediss://)? Set REDIS_URL.`;
  if (/^(MOVED|CLUSTERDOWN)\b/.test(reason))
    return `Redis at ${where} is a node of a cluster (${reason}). Set REDIS_URL to redis+cluster://host:port.`;
  if (/^ERR unknown command/.test(reason))
    return `${where} does not know a command of Redis: is it a Sentinel? Then set REDIS_URL to redis+sentinel://host:26379/master-name.`;
  const [code] = /^(NOAUTH|WRONGPASS|NOPERM)\b/.exec(reason) ?? [];
  if (code !== undefined)
    return `Redis at ${where} refuses this user or password (${code}). Check REDIS_PASSWORD_FILE, REDIS_PASSWORD and REDIS_URL; docs/running.md says which rights a user needs.`;
  if (/EPIPE|ECONNRESET/.test(reason))
    return `What listens at ${where} hangs up (${reason}). Is it a Redis, and do both sides speak TLS (rediss://), or neither? Set REDIS_URL.`;
  const tls = where.startsWith("rediss") ? ", and does it speak TLS" : "";
  return `Redis at ${where} does not answer (${reason}). Is it running${tls}? Set REDIS_URL${where === "redis://127.0.0.1:6379" ? "; `syncline dev` prints the line to export" : ""}.`;
}

/** Whether the reply parser, or TLS, met another protocol than the address says. */
function isOtherProtocol(reason: string): boolean {
  return /^Unknown RESP type|^Protocol error|wrong version number|packet length too long/.test(reason);
}

const timeScript = createScript("redis-time", asTexts);

/** The time of Redis (of the node with our keys), the one clock that all replicas share. */
export async function redisTimeMs(store: Store): Promise<number> {
  const { redis, key } = store;
  const [seconds, microseconds] = redis.isCluster ? await timeScript(store, [key("clock")]) : await redis.time();
  return Number(seconds) * 1_000 + Math.floor(Number(microseconds) / 1_000);
}

/** All pairs of a hash or sorted set, page by page: in one answer they would block Redis. */
export async function* scanPairs(read: (cursor: string) => Promise<[string, string[]]>) {
  let cursor = "0";
  do {
    const [next, flat] = await read(cursor);
    yield pairsOf(flat);
    cursor = next;
  } while (cursor !== "0");
}

/** Makes a clock out of `ask`: it lags by the time of the answer and never runs ahead. */
export function createSharedClock(
  ask: () => Promise<number>,
  clock: Pick<Clock, "nowMs" | "monotonicMs"> = systemClock,
): () => Promise<number> {
  let known: { readonly now: () => number; readonly isOld: () => boolean } | undefined;
  const renew = shared(async () => {
    const isOld = createDeadline(carryOnMs, clock);
    const atMs = await ask();
    const sinceMs = clock.monotonicMs();
    const now = () => Math.floor(atMs + clock.monotonicMs() - sinceMs);
    known = { now, isOld };
    return now;
  });
  return async () => {
    if (known !== undefined && !known.isOld()) return known.now();
    return (await renew())();
  };
}

/** Processes with each role that ticked within the last ten seconds. */
export interface Presence {
  readonly schedulers: number;
  readonly workers: number;
}

/** Makes a unique name for this process: `scheduler+worker/<uuid>`. */
export function processName(roles: readonly string[]): string {
  return `${roles.join("+")}/${randomUUID()}`;
}

/** Counts live processes. A killed one still counts for ten seconds. */
export async function readPresence(store: Store): Promise<Presence> {
  const sinceMs = (await redisTimeMs(store)) - aliveForMs;
  const names = await store.redis.zrangebyscore(store.key("processes"), sinceMs, "+inf", "LIMIT", 0, processesMax);
  const roles = names.map((name) => name.slice(0, Math.max(name.indexOf("/"), 0)).split("+"));
  return {
    schedulers: roles.filter((mine) => mine.includes("scheduler")).length,
    workers: roles.filter((mine) => mine.includes("worker")).length,
  };
}

/** The holder of a prefix, and other owners with live processes. */
export interface Owners {
  readonly holder: string | undefined;
  readonly others: readonly string[];
}

const announceScript = createScript("announce-owner", asTexts);

/** Announces a process of this owner, and takes the prefix where no other owner holds it. */
export async function announceOwner(store: Store, owner: string): Promise<Owners> {
  const [holder = "", ...others] = await announceScript(store, [store.key("owners")], [owner]);
  return { holder: holder === "" ? undefined : holder, others: others.toSorted() };
}

/** Reads the holder of the prefix and the other owners. */
export function readOwners(store: Store): Promise<Owners> {
  return announceOwner(store, "");
}

/** The error for two owners under one prefix, with the cure. */
export function foreignOwner(owners: readonly string[]): string {
  return `policies of ${owners.join(" and ")} run under one prefix, and each would run the other's; give each a --prefix of its own`;
}
