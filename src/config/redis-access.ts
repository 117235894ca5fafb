// What a connection to Redis needs besides its URL, from the files and variables that the environment names. Read once at the start.
import { readFileSync } from "node:fs";
import { UsageError } from "../core/errors.ts";
import type { RedisAccess } from "./redis-address.ts";

type Variables = Readonly<Record<string, string | undefined>>;

const fileBytesMax = 1_048_576;

/**
 * Reads `REDIS_PASSWORD` or `REDIS_PASSWORD_FILE`, `REDIS_SENTINEL_PASSWORD_FILE`, `REDIS_CA_FILE`, `REDIS_CERT_FILE` and `REDIS_KEY_FILE`.
 * @throws UsageError that names the variable, when a file cannot be read or is empty, or when only half of a pair is there.
 */
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
    const reason = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
    throw new UsageError(`${variable}: ${path} cannot be read (${reason})`);
  }
  if (text.trim() === "") throw new UsageError(`${variable}: ${path} is empty`);
  if (text.length > fileBytesMax) throw new UsageError(`${variable}: ${path} is larger than 1 MiB`);
  return text;
}
