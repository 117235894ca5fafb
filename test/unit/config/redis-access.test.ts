import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readRedisAccess } from "../../../src/config/redis-address.ts";

const folder = mkdtempSync(join(tmpdir(), "syncline-"));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

describe("passwords and certificates for Redis", () => {
  it("come from the named files, without the line break after a password", () => {
    const access = readRedisAccess({
      REDIS_PASSWORD_FILE: file("password", "secret\n"),
      REDIS_SENTINEL_PASSWORD_FILE: file("sentinel", "other\r\n"),
      REDIS_CA_FILE: file("ca", "CA"),
      REDIS_CERT_FILE: file("cert", "CERT"),
      REDIS_KEY_FILE: file("key", "KEY"),
    });
    expect(access).toEqual({ password: "secret", sentinelPassword: "other", ca: "CA", cert: "CERT", key: "KEY" });
  });

  it("are none when nothing is set", () => {
    expect(Object.values(readRedisAccess({ REDIS_PASSWORD: "" })).every((value) => value === undefined)).toBe(true);
  });

  it.each([
    [{ REDIS_PASSWORD: "a", REDIS_PASSWORD_FILE: "b" }, "both set"],
    [{ REDIS_CA_FILE: "/nowhere/ca" }, "REDIS_CA_FILE: /nowhere/ca cannot be read (ENOENT)"],
    [{ REDIS_PASSWORD_FILE: file("empty", "\n") }, "is empty"],
    [{ REDIS_CERT_FILE: file("cert2", "CERT") }, "belong together"],
  ])("are refused by name: %j", (variables, reason) => {
    expect(() => readRedisAccess(variables)).toThrow(reason);
  });
});
