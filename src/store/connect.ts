// How connections to Redis are made: the one place that knows ioredis's options. Called by redis.ts for the store and by queue/ for BullMQ.
// Two uses: `commands` answer within five seconds or fail; `worker` connections block on purpose and must not have that
// deadline, but one that hears nothing for half a minute is thrown away and made anew.
import { Cluster, type Command, Redis, type RedisOptions } from "ioredis";
import { hasHashTag, parseRedisAddress, type RedisAccess, type RedisAddress } from "../config/redis-address.ts";
import { nextTurn, withDeadline } from "../core/clock.ts";
import { UsageError } from "../core/errors.ts";

/** Where Redis is, and what all keys of this Syncline start with. */
export interface RedisTarget {
  /** As `parseRedisAddress` reads it. */
  readonly url: string;
  /** Start of every key. With a hash tag, as in the default `{syncline}`, all keys share one slot of a cluster. */
  readonly prefix: string;
  /** Passwords and certificates that are not in the URL. */
  readonly access?: RedisAccess;
}

/** Replies in the shapes of ioredis 5, which the store and the queue expect. */
type ClientOptions = RedisOptions & { readonly replyMapping: "legacy" };

/** What a connection is for. */
export type ConnectionUse = "commands" | "worker";

const commandTimeoutMs = 5_000;
const connectTimeoutMs = 5_000;
/** Longer than any blocking read of the queue (10 s). */
const workerSilenceMs = 30_000;
/** How long Sentinels and nodes of a cluster may take to say where the master is. */
const topologyTimeoutMs = 2_000;
const reconnectMsMax = 2_000;

/**
 * Makes a client: one for commands connects with the first of them, one of a worker at once.
 * @throws UsageError when the URL is none, or names a cluster and the prefix has no hash tag.
 */
export function createRedisClient(target: RedisTarget, use: ConnectionUse): Redis | Cluster {
  const address = parseRedisAddress(target.url);
  if (address.kind === "cluster") return createCluster(target, address, use);
  return new GatheringRedis(redisOptions(target, use));
}

/**
 * ioredis's options of a client for commands, for one server or a master named by Sentinels; undefined for a cluster, which is no matter of options.
 * @throws UsageError when the URL is none.
 */
export function redisOptionsOf(target: RedisTarget): RedisOptions | undefined {
  return parseRedisAddress(target.url).kind === "cluster" ? undefined : redisOptions(target, "commands");
}

function redisOptions({ url, access = {} }: RedisTarget, use: ConnectionUse): ClientOptions {
  const address = parseRedisAddress(url);
  const common = {
    ...commonOptions(address, access, use),
    lazyConnect: use === "commands",
    db: address.database,
    retryStrategy,
    reconnectOnError: isReplicaNow,
  };
  if (address.kind !== "sentinel") {
    const [first] = hostsOf(address);
    return { ...common, ...first };
  }
  const tls = tlsOptions(address, access);
  return {
    ...common,
    sentinels: hostsOf(address),
    name: address.master,
    sentinelRetryStrategy: retryStrategy,
    sentinelCommandTimeout: topologyTimeoutMs,
    failoverDetector: true,
    ...(access.sentinelPassword === undefined ? {} : { sentinelPassword: access.sentinelPassword }),
    ...(tls === undefined ? {} : { sentinelTLS: tls, enableTLSForSentinelMode: true }),
  };
}

function commonOptions(address: RedisAddress, access: RedisAccess, use: ConnectionUse): ClientOptions {
  const password = access.password ?? address.password;
  const tls = tlsOptions(address, access);
  return {
    replyMapping: "legacy",
    connectTimeout: connectTimeoutMs,
    ...(use === "commands"
      ? { commandTimeout: commandTimeoutMs, maxRetriesPerRequest: 1 }
      : { socketTimeout: workerSilenceMs, maxRetriesPerRequest: null }),
    ...(address.username === undefined ? {} : { username: address.username }),
    ...(password === undefined ? {} : { password }),
    ...(tls === undefined ? {} : { tls }),
  };
}

function tlsOptions({ tls }: RedisAddress, { ca, cert, key }: RedisAccess): RedisOptions["tls"] {
  if (!tls) return undefined;
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
}

function createCluster({ prefix, access = {} }: RedisTarget, address: RedisAddress, use: ConnectionUse): Cluster {
  if (!hasHashTag(prefix))
    throw new UsageError(`the prefix ${prefix} has no {braces}: in a Redis Cluster all keys must share one slot`);
  const Client = use === "commands" ? BoundedCluster : Cluster;
  return new Client(hostsOf(address), {
    lazyConnect: use === "commands",
    slotsRefreshTimeout: topologyTimeoutMs,
    clusterRetryStrategy: retryStrategy,
    // Names stay as they are: a certificate is made out to a name, not to an address.
    ...(address.tls ? { dnsLookup: (name, callback) => callback(null, name) } : {}),
    redisOptions: commonOptions(address, access, use),
  });
}

/** A cluster whose commands have their deadline also while no node is known: the library gives it only to what is on its way. */
class BoundedCluster extends Cluster {
  override sendCommand(...args: Parameters<Cluster["sendCommand"]>): unknown {
    const [command]: [Command, ...unknown[]] = args;
    withDeadline(command.promise, commandTimeoutMs, () => new Error("Command timed out")).catch(command.reject);
    return super.sendCommand(...args);
  }
}

/**
 * A client that writes to its socket once a turn of the event loop, whatever it was asked to send in it: a write costs more than the
 * command in it. Each command keeps its own deadline and its own answer.
 */
class GatheringRedis extends Redis {
  #corked: Redis["stream"] | undefined;

  override sendCommand(...args: Parameters<Redis["sendCommand"]>): unknown {
    const { stream } = this;
    if (this.status === "ready" && this.#corked !== stream) {
      this.#corked = stream;
      stream.cork();
      const flush = () => {
        if (this.#corked === stream) this.#corked = undefined;
        stream.uncork();
      };
      nextTurn().then(flush, flush);
    }
    return super.sendCommand(...args);
  }
}

function hostsOf(address: RedisAddress): { host: string; port: number }[] {
  const hosts = address.kind === "single" ? [address] : address.hosts;
  return hosts.map(({ host, port }) => ({ host, port }));
}

/** A master that became a replica may keep its connections: whoever stays with it would never write again. The address leads to the new one. */
function isReplicaNow({ message }: Error): boolean {
  return message.includes("READONLY");
}

/** Soon at first, then every two seconds: an outage ends when Redis is back, not a minute later. */
function retryStrategy(times: number): number {
  return Math.min(50 * 2 ** Math.min(times, 10), reconnectMsMax);
}
