// Where Redis is looked for, and in which order: on a PATH made for the test.
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findRedis, findRedisServer } from "../../../scripts/redis.mjs";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "syncline-find-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function put(name: string, body = "exit 0"): string {
  const file = join(folder, name);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, `#!/bin/sh\n${body}\n`);
  chmodSync(file, 0o755);
  return file;
}

const find = (env: Record<string, string> = {}) =>
  findRedis({ env: { PATH: folder, ...env }, cache: join(folder, "cache") });

describe("findRedis", () => {
  it("takes REDIS_URL before anything else", async () => {
    put("redis-server");
    expect(await find({ REDIS_URL: "redis://example.test:6379" })).toEqual({
      kind: "url",
      url: "redis://example.test:6379",
    });
  });

  it("takes an empty REDIS_URL for none", async () => {
    const command = put("redis-server");
    expect(await find({ REDIS_URL: "" })).toEqual({ kind: "binary", command, env: {} });
  });

  it("takes redis-server before valkey-server, and either before Docker", async () => {
    put("docker");
    const valkey = put("valkey-server");
    expect(await find()).toEqual({ kind: "binary", command: valkey, env: {} });
    const redis = put("redis-server");
    expect(await find()).toEqual({ kind: "binary", command: redis, env: {} });
  });

  it("takes the server unpacked earlier before Docker, with its own libraries", async () => {
    put("docker");
    const root = `cache/redis-${process.arch}`;
    const command = put(`${root}/usr/bin/redis-server`);
    mkdirSync(join(folder, root, "usr/lib/aarch64-linux-gnu"), { recursive: true });
    expect(await find()).toEqual({
      kind: "binary",
      command,
      env: { LD_LIBRARY_PATH: join(folder, root, "usr/lib/aarch64-linux-gnu") },
    });
  });

  it("takes Docker when its engine answers", async () => {
    put("docker", '[ "$1" = info ]');
    expect(await find()).toEqual({ kind: "docker" });
  });

  it("names the three ways out when the engine does not answer either", async () => {
    put("docker", "exit 1");
    await expect(find()).rejects.toThrow(
      /no Redis server can be had on this machine[\s\S]*set REDIS_URL[\s\S]*install redis-server[\s\S]*start Docker/,
    );
  });

  it("goes on to Docker when the distribution's packages cannot be had", async () => {
    for (const tool of ["apt-get", "apt-cache", "dpkg", "dpkg-query"]) put(tool, "exit 100");
    put("docker");
    expect(await find()).toEqual({ kind: "docker" });
  });
});

describe("findRedisServer", () => {
  it("does not look at REDIS_URL", async () => {
    const command = put("redis-server");
    const env = { PATH: folder, REDIS_URL: "redis://example.test:6379" };
    expect(await findRedisServer({ env, cache: join(folder, "cache") })).toEqual({ kind: "binary", command, env: {} });
  });
});
