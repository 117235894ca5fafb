// What a role loads, and a command that needs no Redis. The processes run the sources, not the
// tests' bundle: there each module is a file of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { commandFixture } from "../support/command-fixture.ts";
import { folderForTest } from "../support/folder.ts";

const fixture = commandFixture(
  "  - { name: nightly, service: main, repository: HR, run: { syncJobs: [1] }, follow: { until: accepted } }",
);
const root = join(import.meta.dirname, "../..");

/** The modules that `serve` with these roles has loaded when it has been ready and was stopped. */
async function loadedBy(roles: string): Promise<string[]> {
  const list = join(folderForTest(), "modules");
  const { prefix } = fixture.redis;
  const args = ["serve", "--config", fixture.file(), "--roles", roles, "--web-port", "0", "--prefix", prefix];
  const child = start(args, list);
  for await (const line of createInterface({ input: child.stdout })) if (line.includes('"serve.ready"')) break;
  child.stdout.resume();
  child.kill("SIGTERM");
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  return readFileSync(list, "utf8").split("\n");
}

function start(args: readonly string[], list: string) {
  const hook = join(root, "test/support/note-modules.mjs");
  const { url } = fixture.redis;
  return spawn(process.execPath, ["--import", hook, join(root, "src/main.ts"), ...args], {
    env: { ...process.env, REDIS_URL: url, TEST_TOKEN: fixture.sandbox().token, LOADED_MODULES: list },
    stdio: ["ignore", "pipe", "inherit"],
  });
}

const isOfWeb = (url: string) => /\/src\/web\/|\/node_modules\/(@?hono|idiomorph|jose)\//.test(url);

it("without the role web nothing of it is loaded", async () => {
  const loaded = await loadedBy("scheduler,worker");
  expect(loaded.filter(isOfWeb)).toEqual([]);
  expect(loaded.filter((url) => url.includes("/src/")).length).toBeGreaterThan(150);
});

it("with it the list shows the server and its library", async () => {
  const loaded = await loadedBy("web");
  expect(loaded.some((url) => url.endsWith("/src/web/web-server.ts"))).toBe(true);
  expect(loaded.some((url) => url.includes("/node_modules/hono/"))).toBe(true);
});

it.each([["validate"], ["plan", "--config"]])(
  "%s of a file loads no client of Redis or the service",
  async (...command) => {
    const list = join(folderForTest(), "modules");
    const child = start([...command, fixture.file()], list);
    child.stdout.resume();
    expect(await once(child, "close")).toEqual([0, null]);
    const loaded = readFileSync(list, "utf8").split("\n");
    expect(loaded.filter((url) => /\/node_modules\/(ioredis|bullmq|got)\//.test(url))).toEqual([]);
    expect(loaded.some((url) => url.endsWith("/src/config/load-policies.ts"))).toBe(true);
  },
);
