// What libraries and Node itself print on standard error when they are told to: all that they send,
// and so all secrets. A real process whose every way to a secret is in use, with everything of that
// switched on.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findRedisServer, type PrivateRedis, startPrivateRedis } from "../../scripts/redis.mjs";
import { canaries, canariesIn } from "../support/canaries.ts";
import { type LeakyService, startLeakyService } from "../support/leaky-service.ts";
import { Syncline, syncline } from "../support/processes.ts";

let folder: string;
let redis: PrivateRedis;
let service: LeakyService;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "syncline-debug-"));
  const args = ["--requirepass", canaries.redisPassword];
  redis = await startPrivateRedis({ server: await findRedisServer(), dir: folder, args });
  service = await startLeakyService();
  const files = {
    token: canaries.tokenInFile,
    secret: canaries.clientSecret,
    signing: `whsec_${canaries.signingSecret}`,
    "policies.yaml": policies(),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
});

afterAll(async () => {
  await service.stop();
  await redis.stop();
  await rm(folder, { recursive: true, force: true });
});

const sources = ["filed", "variable", "oauth"] as const;

function policies(): string {
  const token = {
    filed: "{ file: token }",
    variable: "{ env: TOKEN_VARIABLE }",
    oauth: `{ oauth2: { tokenUrl: "${service.url}/oauth/good", clientId: c, clientSecretFile: secret } }`,
  };
  const policy = (
    name: string,
  ) => `  - { name: ${name}, service: ${name}, activate: { syncJobs: [1] }, schedule: { every: 1s }, notify: [{ sink: chat, on: [every] }, { sink: signed, on: [every] }],
      heartbeat: { url: "${service.url}/tick/${canaries.heartbeatUrl}?key=${canaries.heartbeatUrl}" } }`;
  return `apiVersion: syncline/v1
services:
${sources.map((name) => `  ${name}: { baseUrl: "${service.url}/ok", token: ${token[name]} }`).join("\n")}
policies:
${sources.map(policy).join("\n")}
  - { name: read, service: filed, poll: { list: approvals, expect: count >= 0 }, schedule: { every: 1s } }
sinks:
  chat: { webhook: { url: "${service.url}/hook/${canaries.webhookUrl}", format: slack } }
  signed: { webhook: { url: "${service.url}/hook/signed?key=${canaries.webhookUrl}", secretFile: signing } }
`;
}

/** What these variables switch on, whatever a library is called. */
const talkative = { DEBUG: "*", NODE_DEBUG: "http,https,net,tls,stream", NODE_OPTIONS: "--trace-uncaught" };

describe("secrets", () => {
  it("stand in no debug output of libraries and Node", async () => {
    const REDIS_URL = `redis://:${canaries.redisPassword}@127.0.0.1:${redis.port}`;
    const environment = { ...talkative, REDIS_URL, TOKEN_VARIABLE: canaries.tokenInVariable };
    const config = ["--config", join(folder, "policies.yaml")];
    const serve = new Syncline(["serve", ...config], environment);
    for (const name of [...sources, "read"])
      await serve.until((event) => event["event"] === "task.finished" && event["policy"] === name);
    const isHeard = (path: string) => [...service.heard].some((one) => one.startsWith(path));
    for (const path of [`/hook/${canaries.webhookUrl}`, "/hook/signed", "/tick/"])
      await expect.poll(() => isHeard(path), { timeout: 60_000 }).toBe(true);
    serve.kill("SIGTERM");
    const ended = await serve.ended();
    const history = await syncline(["history", "--json"], environment);
    for (const { err, out } of [ended, history]) {
      expect(err).toMatch(/ioredis:redis write command\[127\.0\.0\.1:\d+\]: 0 -> hello\(.*AUTH.*\[…\]/);
      expect({ inOutput: canariesIn(out), inErrors: canariesIn(err) }).toEqual({ inOutput: [], inErrors: [] });
    }
    // Of what goes over kept connections Node prints the whole request.
    expect(ended.err).toContain("authorization: 'Bearer […]'");
  });
});
