// The store's Lua scripts as files: each compiles, says what it takes, and declares its keys.
import { readdirSync, readFileSync } from "node:fs";
import { basename, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { loadLua } from "../../../src/store/script.ts";
import { guard, scriptNames } from "../../support/declared-keys.ts";
import { storeForTest } from "../../support/redis.ts";

const room = resolve(import.meta.dirname, "../../../src/store");
const read = (path: string) => readFileSync(resolve(room, path), "utf8");

const store = await storeForTest();

describe.each(scriptNames)("%s.lua", (name) => {
  it("compiles with its includes", async () => {
    expect(await store.redis.script("LOAD", loadLua(name))).toMatch(/^[0-9a-f]{40}$/);
  });

  it("says what it does and which keys it takes", () => {
    expect(read(`lua/${name}.lua`)).toMatch(/^-- [A-Z][\s\S]*\n-- KEYS: /);
  });

  it("has lines of at most 120 columns, comments of 100", () => {
    const lines = loadLua(name).split("\n");
    expect(lines.filter((line) => line.length > (/^\s*--/.test(line) ? 100 : 120))).toEqual([]);
  });
});

describe("all scripts", () => {
  const code = readdirSync(room).filter((file) => file.endsWith(".ts"));
  const created = code.flatMap((file) =>
    [...read(file).matchAll(/(?:createScript|loadLua)\(\s*"([a-z/-]+)"/g)].map(([, name]) => name),
  );

  it("are those that the store creates", () => {
    expect([...new Set(created)].toSorted()).toEqual(scriptNames.toSorted());
  });

  it("use every shared piece", () => {
    const pieces = readdirSync(resolve(room, "lua/include")).map((file) => basename(file, ".lua"));
    const texts = [...scriptNames, ...pieces.map((piece) => `include/${piece}`)].map((name) => read(`lua/${name}.lua`));
    const used = texts.flatMap((text) => [...text.matchAll(/^--- @include "(.*)"$/gm)].map(([, piece]) => piece));
    expect([...new Set(used)].toSorted()).toEqual(pieces.toSorted());
  });

  it("fail in these tests on a key that they do not declare", async () => {
    const lua = `${guard}return redis.call('GET', KEYS[1] .. ARGV[1])`;
    expect(await store.redis.eval(lua, 1, store.key("own"), "")).toBeNull();
    await expect(store.redis.eval(lua, 1, store.key("own"), "-other")).rejects.toThrow("undeclared key");
  });
});
