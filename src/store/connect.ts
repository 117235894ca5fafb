// Makes the connections to Redis, for the store and BullMQ; the one place that knows ioredis's
// options. A `commands` connection answers within 5 s or fails; a `worker` connection blocks on
// purpose. A silent one is replaced: after a network cut of 40 s, TCP itself would send again only
// 14 s later.
import {
  Cluster,
  type Command,
  Redis,
  type RedisOptions,
  type SentinelConnectionOptions,
  SentinelConnector,
} from "ioredis";
import { hasHashTag, parseRedisAddress, type RedisAccess, type RedisAddress } from "../config/redis-address.ts";
import { nextTurn, systemClock, withTimeLimit } from "../core/clock.ts";
import { UsageError } from "../core/errors.ts";
import { defined } from "../core/json.ts";

/** Where Redis is, and the prefix of all keys. */
export interface RedisTarget {
  /** A URL for `parseRedisAddress`. */
  readonly url: string;
  /** Prefix of every key; its hash tag keeps all keys in one slot of a cluster. */
  readonly prefix: string;
  /** Passwords and certificates that are not in the URL. */
  readonly access?: RedisAccess;
}

/** ioredis 5 reply shapes, which the store and the queue expect. */
type ClientOptions = RedisOptions & { readonly replyMapping: "legacy" };

/** A connection, which comes back by itself when it is lost. */
export type RedisClient = Redis | Cluster;

/** What a connection is for. */
export type ConnectionUse = "commands" | "worker";

const commandTimeoutMs = 5_000;
const timedOut = "Command timed out";
const connectTimeoutMs = 5_000;
/** Longer than a command's deadline, so that `takeBack` goes out behind a lost answer. */
const commandSilenceMs = 6_000;
/** Longer than any blocking read of the queue (5 s). */
const workerSilenceMs = 15_000;
/** How long Sentinels and cluster nodes may take to name the master. */
const topologyTimeoutMs = 2_000;
const reconnectMsMax = 1_000;

/** Makes a client; throws UsageError when the URL is none, or a cluster's without a hash tag. */
export function createRedisClient(target: RedisTarget, use: ConnectionUse): RedisClient {
  const address = parseRedisAddress(target.url);
  if (address.kind === "cluster") return createCluster(target, address, use);
  const options = redisOptions(target, use);
  if (use === "worker") return new GatheringRedis(options);
  const { commandTimeout, socketTimeout, ...unbounded } = options;
  return new BoundedRedis(unbounded);
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
    Connector: FreshSentinelConnector,
    ...defined({ sentinelPassword: access.sentinelPassword }),
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
      ? { commandTimeout: commandTimeoutMs, socketTimeout: commandSilenceMs, maxRetriesPerRequest: 1 }
      : { socketTimeout: workerSilenceMs, maxRetriesPerRequest: null }),
    ...defined({ username: address.username, password, tls }),
  };
}

function tlsOptions({ tls }: RedisAddress, { ca, cert, key }: RedisAccess): RedisOptions["tls"] {
  if (!tls) return undefined;
  return defined({ ca, cert, key });
}

function createCluster({ prefix, access = {} }: RedisTarget, address: RedisAddress, use: ConnectionUse): Cluster {
  if (!hasHashTag(prefix))
    throw new UsageError(`the prefix ${prefix} has no {braces}: in a Redis Cluster all keys must share one slot`);
  const Client = use === "commands" ? BoundedCluster : Cluster;
  return new Client(hostsOf(address), {
    lazyConnect: use === "commands",
    slotsRefreshTimeout: topologyTimeoutMs,
    clusterRetryStrategy: retryStrategy,
    // Keep host names: certificates name hosts, not addresses.
    ...(address.tls ? { dnsLookup: (name, callback) => callback(null, name) } : {}),
    redisOptions: commonOptions(address, access, use),
  });
}

/**
 * ioredis 6 keeps its listener for `+switch-master` when it loses the connection. If Sentinels
 * switch the master while it asks them for it, the listener ends that search, and the client never
 * connects again. Here the listener ends before each search.
 */
class FreshSentinelConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as SentinelConnectionOptions);
  }

  override connect(...args: Parameters<SentinelConnector["connect"]>): ReturnType<SentinelConnector["connect"]> {
    this.disconnect();
    return super.connect(...args);
  }
}

/** ioredis's cluster client gives no deadline to commands while no node is known. */
class BoundedCluster extends Cluster {
  override sendCommand(...args: Parameters<Cluster["sendCommand"]>): unknown {
    bound(args[0]).catch(args[0].reject);
    return super.sendCommand(...args);
  }
}

function bound({ promise }: Command): Promise<unknown> {
  return withTimeLimit(promise, commandTimeoutMs, () => new Error(timedOut));
}

/** Writes to its socket once a turn of the event loop: a write costs more than its commands. */
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

/** A master that became a replica may keep its connections: a new one reaches the new master. */
function isReplicaNow({ message }: Error): boolean {
  return message.includes("READONLY");
}

/** Retries soon at first, then every second, so that the client is back as soon as Redis is. */
function retryStrategy(times: number): number {
  return Math.min(50 * 2 ** Math.min(times, 10), reconnectMsMax);
}

/**
 * The deadlines of ioredis blame Redis also where this process was held up. These read once more
 * what has come before they fail a command, and leave a connection that has gone silent.
 */
class BoundedRedis extends GatheringRedis {
  override sendCommand(...args: Parameters<Redis["sendCommand"]>): unknown {
    const [command] = args;
    const sent = super.sendCommand(...args);
    const { stream } = this;
    const heard = stream?.bytesRead;
    bound(command).catch((error: Error) => {
      command.reject(error);
      if (error.message === timedOut) void this.#leaveIfSilent(stream, heard);
    });
    return sent;
  }

  async #leaveIfSilent(stream: Redis["stream"], heard: number): Promise<void> {
    await systemClock.sleep(commandSilenceMs - commandTimeoutMs);
    await nextTurn();
    if (stream === this.stream && stream?.bytesRead === heard) stream.destroy(new Error("Socket timeout"));
  }
}
