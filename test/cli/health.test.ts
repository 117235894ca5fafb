import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PrivateRedis } from "../../scripts/redis.mjs";
import { Syncline } from "../support/processes.ts";
import { clientOf, freePort, ownFolder, startServer, until } from "../support/redis-servers.ts";

let redis: PrivateRedis;
let serve: Syncline;
let base: string;

const ask = async (path: string) => {
  const answer = await fetch(base + path);
  return { status: answer.status, text: await answer.text() };
};
const readyz = () => ask("/readyz");

const file = join(ownFolder(), "policies.yaml");
beforeAll(async () => {
  redis = await startServer();
  writeFileSync(
    file,
    `apiVersion: syncline/v1
services: { main: { baseUrl: "http://127.0.0.1:9", token: { env: TEST_TOKEN } } }
policies:
  - { name: never, service: main, repository: HR, run: { syncJobs: [1] }, schedule: { cron: "0 0 1 1 *" } }
`,
  );
  serve = new Syncline(
    ["serve", "--config", file, "--drain", "10s", "--health-port", "0", "--health-host", "127.0.0.1"],
    {
      REDIS_URL: redis.url,
      TEST_TOKEN: "canary-token",
    },
  );
  const { port } = await serve.until(({ event }) => event === "health.listening");
  base = `http://127.0.0.1:${port}`;
});
afterAll(() => serve.kill("SIGKILL"));

describe("syncline serve --health-port", () => {
  it("waits for a Redis that is away at its start, lives, and says so", async () => {
    const port = await freePort();
    const args = ["--config", file, "--health-port", "0", "--health-host", "127.0.0.1"];
    const early = new Syncline(["serve", ...args], {
      REDIS_URL: `redis://127.0.0.1:${port}`,
      TEST_TOKEN: "canary-token",
    });
    try {
      const health = await early.until(({ event }) => event === "health.listening");
      await early.until(({ event, message }) => event === "redis.unreachable" && `${message}`.includes("ECONNREFUSED"));
      const answer = (path: string) => fetch(`http://127.0.0.1:${health["port"]}${path}`);
      const at = async (path: string) => (await answer(path)).status;
      expect([await at("/livez"), await at("/readyz")]).toEqual([200, 503]);
      const metrics = await (await answer("/metrics")).text();
      for (const gauge of ["up", "safe"]) expect(metrics).toContain(`\nsyncline_redis_${gauge} 0\n`);
      await startServer({ port });
      await early.until(({ event }) => event === "serve.ready");
      // Not at once where the machine stands still: a Redis that is silent for long is not trusted.
      await expect.poll(() => at("/readyz")).toBe(200);
    } finally {
      early.kill("SIGKILL");
    }
  });

  it("is ready to show what an unsafe Redis has, and not to start from it", async () => {
    const { url } = await startServer({ args: ["--maxmemory-policy", "allkeys-lru"] });
    const readyWith = async (roles: string) => {
      const args = ["--config", file, "--roles", roles, "--health-port", "0", "--health-host", "127.0.0.1"];
      const one = new Syncline(["serve", ...args, ...(roles === "web" ? ["--web-port", "0"] : [])], {
        REDIS_URL: url,
        TEST_TOKEN: "canary-token",
      });
      try {
        const health = await one.until(({ event }) => event === "health.listening");
        await one.until(({ event }) => event === "redis.unsafe");
        await one.until(({ event }) => event === "serve.ready");
        return (await fetch(`http://127.0.0.1:${health["port"]}/readyz`)).status;
      } finally {
        one.kill("SIGKILL");
      }
    };
    expect([await readyWith("scheduler,worker"), await readyWith("web")]).toEqual([503, 200]);
  });

  it("is ready once everything runs", async () => {
    await serve.until(({ event }) => event === "serve.ready");
    const { status, text } = await readyz();
    expect([status, JSON.parse(text)]).toEqual([200, { ready: true, reasons: [], roles: ["scheduler", "worker"] }]);
    expect((await ask("/livez")).status).toBe(200);
  });

  it("is not ready while Redis is frozen, but lives, and says that it stops", async () => {
    await clientOf(redis.port).ping();
    process.kill(redis.pid, "SIGSTOP");
    try {
      const frozen = await until(readyz, ({ status }) => status === 503);
      expect(JSON.parse(frozen.text).reasons).toMatchObject([{ part: "redis" }]);
      expect((await ask("/livez")).status).toBe(200);
      serve.kill("SIGTERM");
      const stopping = await until(readyz, ({ text }) => text.includes("stopping"));
      expect(stopping.status).toBe(503);
      expect(stopping.text).not.toContain("canary");
    } finally {
      process.kill(redis.pid, "SIGCONT");
    }
    expect((await serve.ended()).out).not.toContain("canary");
  });
});
