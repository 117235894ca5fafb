// Where Redis is: one URL for a single server, Sentinel or Cluster, with passwords and certificates
// from the environment. Opens no connection.
import { readFileSync } from "node:fs";
import { errorCode, UsageError } from "../core/errors.ts";
import type { Variables } from "./settings.ts";

const fileBytesMax = 1_048_576;

interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** One server, a master that Sentinels name, or a cluster that its nodes describe. */
export type RedisAddress = {
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** The database number; 0 in a cluster. */
  readonly database: number;
} & (
  | ({ readonly kind: "single" } & HostPort)
  | { readonly kind: "sentinel"; readonly hosts: readonly HostPort[]; readonly master: string }
  | { readonly kind: "cluster"; readonly hosts: readonly HostPort[] }
);

/** What does not belong into a URL. Certificates and keys are PEM texts. */
export interface RedisAccess {
  /** Wins over the password in the URL. */
  readonly password?: string | undefined;
  /** The Sentinels' password, if they have one. */
  readonly sentinelPassword?: string | undefined;
  /** The authority that signed the server's certificate; default: the system's. */
  readonly ca?: string | undefined;
  /** The client's certificate and key, if the server asks for one. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

const urlPattern = /^(rediss?)(?:\+(sentinel|cluster))?:\/\/(?:([^/?#]*)@)?([^/?#@]+)(?:\/([^?#]*))?([?#].*)?$/;
const hostPattern = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+))(?::(\d{1,5}))?$/;
const hostsMax = 20;

const forms =
  "write redis://host:6379, redis+sentinel://host1:26379,host2:26379/master-name or redis+cluster://host1:6379,host2:6379; rediss for TLS";

/** Parses the URL of a Redis. @throws UsageError without the URL: it may hold a password. */
export function parseRedisAddress(url: string): RedisAddress {
  const [whole, scheme, form, userInfo, hostsText = "", path = "", query] = urlPattern.exec(url) ?? [];
  if (whole === undefined) throw new UsageError(`REDIS_URL is not the address of a Redis: ${forms}`);
  if (query !== undefined)
    throw new UsageError("REDIS_URL has a part after ? or #: options are not taken from there; see docs/running.md");
  const hosts = readHosts(hostsText, form === "sentinel" ? 26_379 : 6_379);
  const common = { tls: scheme === "rediss", ...readUserInfo(userInfo) };
  const parts = path === "" ? [] : path.split("/");
  if (form === "sentinel") {
    const [master = "", database, ...rest] = parts;
    if (master === "" || rest.length > 0)
      throw new UsageError("REDIS_URL names no master: redis+sentinel://host:26379/master-name");
    return { kind: "sentinel", hosts, master: decode(master), ...common, database: readDatabase(database) };
  }
  if (form === "cluster") {
    if (parts.length > 0) throw new UsageError("REDIS_URL names a database, but a Redis Cluster has only one");
    return { kind: "cluster", hosts, ...common, database: 0 };
  }
  const [first] = hosts;
  if (first === undefined || hosts.length > 1)
    throw new UsageError("REDIS_URL names several hosts: say redis+sentinel:// or redis+cluster://");
  if (parts.length > 1) throw new UsageError(`REDIS_URL has too many parts: ${forms}`);
  return { kind: "single", ...first, ...common, database: readDatabase(parts[0]) };
}

/** The address without user and password. */
export function showRedisAddress(url: string): string {
  return url.replace(/^([a-z+]*:\/\/)(?:.*@)?/s, "$1").replace(/[?#].*$/s, "");
}

/** Whether all keys with this prefix share one slot of a cluster, as `{syncline}` does. */
export function hasHashTag(prefix: string): boolean {
  return /^[^{]*\{[^}]+\}/.test(prefix);
}

function readHosts(text: string, defaultPort: number): HostPort[] {
  const texts = text.split(",");
  if (texts.length > hostsMax) throw new UsageError(`REDIS_URL names more than ${hostsMax} hosts; three are enough`);
  return texts.map((one) => {
    const [whole, v6, name, port] = hostPattern.exec(one) ?? [];
    const number = port === undefined ? defaultPort : Number(port);
    if (whole === undefined || number < 1 || number > 65_535)
      throw new UsageError(`REDIS_URL names a host that is none: ${forms}`);
    return { host: v6 ?? decode(name ?? ""), port: number };
  });
}

function readUserInfo(text: string | undefined): Pick<RedisAddress, "username" | "password"> {
  if (text === undefined) return { username: undefined, password: undefined };
  const colon = text.indexOf(":");
  const username = decode(colon < 0 ? text : text.slice(0, colon));
  const password = colon < 0 ? "" : decode(text.slice(colon + 1));
  return { username: username || undefined, password: password || undefined };
}

function readDatabase(text: string | undefined): number {
  if (text === undefined || text === "") return 0;
  if (!/^\d{1,5}$/.test(text)) throw new UsageError("REDIS_URL names a database that is no number");
  return Number(text);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UsageError("REDIS_URL has a % that begins no character: write %25 for the sign itself");
  }
}

/** Reads the variables below. @throws UsageError that names the variable with the wrong value. */
export function readRedisAccess(variables: Variables): RedisAccess {
  const set = (name: string) => (variables[name] === "" ? undefined : variables[name]);
  if (set("REDIS_PASSWORD") !== undefined && set("REDIS_PASSWORD_FILE") !== undefined)
    throw new UsageError("REDIS_PASSWORD and REDIS_PASSWORD_FILE are both set; set one");
  const file = (name: string) => {
    const path = set(name);
    return path === undefined ? undefined : readText(name, path);
  };
  const access = {
    password: set("REDIS_PASSWORD") ?? file("REDIS_PASSWORD_FILE")?.trim(),
    sentinelPassword: file("REDIS_SENTINEL_PASSWORD_FILE")?.trim(),
    ca: file("REDIS_CA_FILE"),
    cert: file("REDIS_CERT_FILE"),
    key: file("REDIS_KEY_FILE"),
  };
  if ((access.cert === undefined) !== (access.key === undefined))
    throw new UsageError("REDIS_CERT_FILE and REDIS_KEY_FILE belong together; one of them is not set");
  return access;
}

function readText(variable: string, path: string): string {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`${variable}: ${path} cannot be read (${errorCode(error)})`);
  }
  if (text.trim() === "") throw new UsageError(`${variable}: ${path} is empty`);
  if (text.length > fileBytesMax) throw new UsageError(`${variable}: ${path} is larger than 1 MiB`);
  return text;
}
