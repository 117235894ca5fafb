// Everything that a Redis holds, as text: every key with its value, and the bytes of its dump file.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Redis } from "ioredis";

/** All keys and values of database 0, and the RDB file where its folder can be read. */
export async function dumpRedis(url: string, folder: string): Promise<{ keys: number; text: string; rdb: Buffer }> {
  const redis = new Redis(url);
  try {
    const lines = await readRedis(redis);
    await redis.config("SET", "rdbcompression", "no");
    await redis.save();
    const file = join(folder, "dump.rdb");
    return { keys: lines.length, text: lines.join("\n"), rdb: existsSync(file) ? readFileSync(file) : Buffer.alloc(0) };
  } finally {
    redis.disconnect();
  }
}

/** Each key of this form with its value, what is packed unpacked. */
export async function readRedis(redis: Redis, match = "*"): Promise<string[]> {
  const lines: string[] = [];
  for await (const keys of redis.scanStream({ match, count: 1_000 })) {
    for (const key of keys as string[]) lines.push(`${key} ${JSON.stringify(await read(redis, key))}`);
  }
  return lines;
}

async function read(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key);
  switch (type) {
    case "string":
      return redis.get(key);
    case "hash":
      return Object.entries(await redis.hgetallBuffer(key)).map(([field, value]) => [field, unpacked(value)]);
    case "list":
      return redis.lrange(key, 0, -1);
    case "set":
      return redis.smembers(key);
    case "zset":
      return redis.zrange(key, "0", "-1", "WITHSCORES");
    case "stream":
      return redis.xrange(key, "-", "+");
    case "none":
      return null;
    default:
      throw new Error(`a key of the type ${type}, which nothing here reads`);
  }
}

/** What was packed is looked into: a secret would be as readable there for whoever reads Redis. */
function unpacked(value: Buffer): string {
  return (value[0] === 0x1f && value[1] === 0x8b ? gunzipSync(value) : value).toString();
}
