// Commands that ask a server which answers oddly: each ends by itself, says what is wrong, and with
// a code of its own.
import { writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, inject, it } from "vitest";
import { syncline } from "../support/processes.ts";
import { ownFolder } from "../support/redis-servers.ts";
import { listen } from "../unit/service/test-server.ts";

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

const answers = {
  "101 and a reset": (socket: Socket) => socket.write(switching, () => socket.resetAndDestroy()),
  "101 and a half-close": (socket: Socket) => socket.end(switching),
};

const commands = {
  api: ["api", "GetSyncJobById", "--service", "odd", "--key", "1"],
  "api of a list": ["api", "GetActivities", "--service", "odd", "--all"],
  "api of a start": ["api", "RunSyncJob", "--service", "odd", "--key", "1", "--yes", "--prefix", "odd-answers"],
  discover: ["discover", "--service", "odd"],
  doctor: ["doctor", "--prefix", "odd-answers"],
};

describe.each(Object.entries(answers))("a service that answers %s", (_what, answer) => {
  it("ends each command that asks it with an error and exit code 1", async () => {
    const server = createServer({ allowHalfOpen: true }, (socket) => socket.once("data", () => answer(socket)));
    const baseUrl = `http://127.0.0.1:${await listen(server)}`;
    const file = join(ownFolder(), "policies.yaml");
    const service = `{ baseUrl: "${baseUrl}", token: { env: TEST_TOKEN }, timeouts: { request: 30s } }`;
    const policy = "{ name: one, service: odd, run: { syncJobs: [1] }, schedule: { every: 1h } }";
    writeFileSync(file, `apiVersion: syncline/v1\nservices:\n  odd: ${service}\npolicies:\n  - ${policy}\n`);
    const environment = { REDIS_URL: inject("redis").url, TEST_TOKEN: "canary" };
    const ended = await Promise.all(
      Object.values(commands).map((args) => syncline([...args, "--config", file], environment)),
    );
    expect(ended.map(({ code, signal, err }) => code ?? `${signal}: ${err}`)).toEqual(ended.map(() => 1));
    for (const { out, err } of ended) {
      expect(out + err).toContain("status 101");
      expect(err).not.toMatch(/bug:|unsettled/);
    }
  });
});
