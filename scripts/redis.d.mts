// The types of redis.mjs, for the tests and the demo.

/** A server that startPrivateRedis can start. `env` is added to the process's own. */
export type RedisServer =
  | { readonly kind: "binary"; readonly command: string; readonly env: Readonly<Record<string, string>> }
  | { readonly kind: "docker" };

/** Where Redis comes from on this machine. */
export type RedisSource = { readonly kind: "url"; readonly url: string } | RedisServer;

/** What to look at instead of this process's environment and this folder's .cache. */
export interface FindRedisOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cache?: string;
  /** Told one line when something has to be fetched. */
  readonly onProgress?: (line: string) => void;
}

/** A running private Redis. It ends with the process that started it, also when that is killed. */
export interface PrivateRedis {
  /** E.g. `redis://127.0.0.1:40123`. */
  readonly url: string;
  readonly port: number;
  /** The server's process id (of the `docker run` where it came from Docker). */
  readonly pid: number;
  /** Ends it and resolves when it has ended. Twice is no error. */
  stop(): Promise<void>;
}

/**
 * Finds Redis: `REDIS_URL`; `redis-server` or `valkey-server` on PATH; the Debian or Ubuntu
 * package, unpacked into .cache; Docker.
 * @throws Error that names the ways out when there is none.
 */
export function findRedis(options?: FindRedisOptions): Promise<RedisSource>;

/** As findRedis, without `REDIS_URL`. */
export function findRedisServer(options?: FindRedisOptions): Promise<RedisServer>;

/**
 * Starts a Redis of its own, without persistence and with `noeviction`, on a free port of
 * 127.0.0.1, and waits until it answers. `dir` keeps its files (a temporary folder unless said),
 * `port` asks for a certain port, `args` are further server options and win, e.g. `["--appendonly",
 * "yes"]`. The log level must stay at `notice`.
 * @throws Error when it does not start.
 */
export function startPrivateRedis(options?: {
  readonly dir?: string;
  readonly port?: number;
  readonly args?: readonly string[];
  readonly server?: RedisServer;
}): Promise<PrivateRedis>;
