import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hasHashTag, parseRedisAddress, showRedisAddress } from "../../../src/config/redis-address.ts";
import { UsageError } from "../../../src/core/errors.ts";

const nobody = { username: undefined, password: undefined };

describe("the address of a Redis", () => {
  it("is one server, with port 6379 and database 0 unless said", () => {
    expect(parseRedisAddress("redis://redis")).toEqual({
      kind: "single",
      host: "redis",
      port: 6_379,
      tls: false,
      ...nobody,
      database: 0,
    });
    expect(parseRedisAddress("rediss://redis:7000/3")).toMatchObject({ port: 7_000, tls: true, database: 3 });
    expect(parseRedisAddress("redis://[::1]:7000")).toMatchObject({ host: "::1", port: 7_000 });
  });

  it("holds a user and a password, with %XX for signs that mean something", () => {
    expect(parseRedisAddress("redis://syncline:p%40ss%3A%2F@redis")).toMatchObject({
      username: "syncline",
      password: "p@ss:/",
    });
    expect(parseRedisAddress("redis://:secret@redis")).toMatchObject({ username: undefined, password: "secret" });
  });

  it("is a master that Sentinels name", () => {
    expect(parseRedisAddress("redis+sentinel://u:p@one,two:26380/mymaster/2")).toEqual({
      kind: "sentinel",
      hosts: [
        { host: "one", port: 26_379 },
        { host: "two", port: 26_380 },
      ],
      master: "mymaster",
      tls: false,
      username: "u",
      password: "p",
      database: 2,
    });
  });

  it("is a cluster that any of its nodes describes", () => {
    expect(parseRedisAddress("rediss+cluster://one:7000,two:7001")).toMatchObject({
      kind: "cluster",
      tls: true,
      hosts: [
        { host: "one", port: 7_000 },
        { host: "two", port: 7_001 },
      ],
    });
  });

  it.each([
    ["http://redis", "is not the address of a Redis"],
    ["redis", "is not the address of a Redis"],
    ["redis://", "is not the address of a Redis"],
    ["redis://one,two", "names several hosts"],
    ["redis://one:99999", "names a host that is none"],
    ["redis://one:0", "names a host that is none"],
    ["redis://one/db", "names a database that is no number"],
    ["redis://one/1/2", "too many parts"],
    ["redis://one?keyPrefix=x", "options are not taken from there"],
    ["redis://u:%zz@one", "begins no character"],
    ["redis+sentinel://one", "names no master"],
    ["redis+cluster://one/1", "a Redis Cluster has only one"],
  ])("%s is refused with a reason", (url, reason) => {
    expect(() => parseRedisAddress(url)).toThrow(UsageError);
    expect(() => parseRedisAddress(url)).toThrow(reason);
  });

  it("is read or refused by name, for any text, and never shown with its password", () => {
    const urls = fc.oneof(
      fc.string(),
      fc
        .tuple(fc.constantFrom("redis://", "rediss+cluster://", "redis+sentinel://"), fc.string())
        .map((two) => two.join("")),
    );
    const isReadOrRefused = fc.property(urls, (url) => {
      try {
        parseRedisAddress(url);
      } catch (error) {
        expect(error).toBeInstanceOf(UsageError);
      }
    });
    const isShownBare = fc.property(fc.string(), (noise) => {
      const url = `redis://user:canary${encodeURIComponent(noise.toWellFormed())}@host:1/0`;
      expect(showRedisAddress(url)).toBe("redis://host:1/0");
    });
    expect(fc.check(isReadOrRefused).failed).toBe(false);
    expect(fc.check(isShownBare).failed).toBe(false);
    expect(showRedisAddress("redis://user:canary@with@signs@host?x=canary")).toBe("redis://host");
  });
});

describe("a prefix for a cluster", () => {
  it("has something in braces", () => {
    expect(hasHashTag("{syncline}")).toBe(true);
    expect(hasHashTag("a{b}c")).toBe(true);
    expect(hasHashTag("syncline")).toBe(false);
    expect(hasHashTag("{}syncline")).toBe(false);
    expect(hasHashTag("{}{a}")).toBe(false);
    expect(hasHashTag("{a")).toBe(false);
  });
});
