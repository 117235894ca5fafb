// Fifteen canaries and everything that can go wrong with them, over real processes and a Redis with
// a password: not one of them may stand in what any process prints, in any key of Redis, or in its
// dump file.
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findRedisServer, type PrivateRedis, startPrivateRedis } from "../../scripts/redis.mjs";
import { canaries, canariesIn } from "../support/canaries.ts";
import { createAuthority, signedBy } from "../support/certificates.ts";
import { type LeakyService, startLeakyService } from "../support/leaky-service.ts";
import { type Ended, Syncline, syncline } from "../support/processes.ts";
import { dumpRedis } from "../support/redis-dump.ts";
import { wrongPolicies } from "../support/wrong-policies.ts";

const crash = pathToFileURL(join(import.meta.dirname, "../support/crash-on-signal.ts")).href;
const services = ["filed", "variable", "oauth", "refused", "echo", "mutual"] as const;

/** Processes that run side by side. */
const atOnce = 4;

let folder: string;
let redis: PrivateRedis;
let redisUrl: string;
let plain: LeakyService;
let mutual: LeakyService;
let environment: Readonly<Record<string, string>>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "syncline-leaks-"));
  redis = await startPrivateRedis({
    server: await findRedisServer(),
    dir: folder,
    args: ["--requirepass", canaries.redisPassword],
  });
  redisUrl = `redis://:${canaries.redisPassword}@127.0.0.1:${redis.port}`;
  const authority = await createAuthority("fixture");
  const client = await signedBy(authority, { name: "syncline", passphrase: canaries.keyPassphrase });
  plain = await startLeakyService();
  mutual = await startLeakyService({ ...(await signedBy(authority)), ca: authority.cert });
  const files = {
    token: canaries.tokenInFile,
    echoed: canaries.echoedToken,
    secret: canaries.clientSecret,
    webhook: canaries.webhookSecret,
    signing: `whsec_${canaries.signingSecret}`,
    pass: canaries.keyPassphrase,
    "ca.crt": authority.cert,
    "tls.crt": client.cert,
    "tls.key": client.key,
    "policies.yaml": policies(),
    "wrong.yaml": wrongPolicies(),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  environment = {
    REDIS_URL: redisUrl,
    TOKEN_VARIABLE: canaries.tokenInVariable,
    CANARY: canaries.variable,
    SYNCLINE_LOG_LEVEL: "debug",
    SYNCLINE_TOKEN: canaries.echoedToken,
    NODE_OPTIONS: `--import=${crash}`,
    CRASH_MESSAGE: crashMessage(),
  };
});

afterAll(async () => {
  await plain.stop();
  await mutual.stop();
  await redis.stop();
  await rm(folder, { recursive: true, force: true });
});

function policies(): string {
  const oauth2 = (path: string) =>
    `{ oauth2: { tokenUrl: "${plain.url}/oauth/${path}?key=${canaries.linkQuery}", clientId: c, clientSecretFile: secret`;
  const token = {
    filed: "{ file: token }",
    variable: "{ env: TOKEN_VARIABLE }",
    oauth: `${oauth2("good").replace(/\?key=[^"]*/, "")} } }`,
    refused: `${oauth2("bad")}, auth: post } }`,
    echo: "{ file: echoed }",
    mutual: "{ file: token }",
  };
  const tls = "tls: { caFile: ca.crt, certFile: tls.crt, keyFile: tls.key, keyPassphraseFile: pass }";
  const service = (name: (typeof services)[number]) =>
    `  ${name}: { baseUrl: "${name === "mutual" ? mutual.url : plain.url}", token: ${token[name]}, timeouts: { request: 2s }${
      name === "mutual" ? `, ${tls}` : ""
    }, breaker: { after: 1000 } }`;
  const policy = (
    name: string,
  ) => `  - { name: run-${name}, service: ${name}, run: { syncJobs: [1, 2] }, schedule: { every: 2s }, follow: { deadline: 10s } }
  - { name: poll-${name}, service: ${name}, poll: { list: approvals, expect: "items.size() == 0" }, schedule: { every: 1s } }`;
  const told = `  - name: told
    service: well
    activate: { syncJobs: [1] }
    schedule: { every: 1s }
    notify: [{ sink: chat, on: [every] }, { sink: signed, on: [every] }]
    heartbeat: { url: "${plain.url}/tick/${canaries.heartbeatUrl}?key=${canaries.heartbeatUrl}" }`;
  const sinks = `  chat: { webhook: { url: "${plain.url}/hook/${canaries.webhookUrl}", format: slack } }
  signed: { webhook: { url: "${plain.url}/hook/signed?key=${canaries.webhookUrl}", secretFile: signing } }`;
  const well = `  well: { baseUrl: "${plain.url}/ok", token: { file: token } }`;
  return `apiVersion: syncline/v1
services:\n${services.map(service).join("\n")}\n${well}
policies:\n${services.map(policy).join("\n")}\n${told}
sinks:\n${sinks}\n`;
}

/** What the process knows by then, and what looks like a secret. */
function crashMessage(): string {
  const { tokenInFile, tokenInVariable, clientSecret, accessToken, keyPassphrase, redisPassword, echoedToken } =
    canaries;
  const known = [tokenInFile, tokenInVariable, clientSecret, accessToken, keyPassphrase, redisPassword, echoedToken];
  const basic = Buffer.from(`c:${clientSecret}`).toString("base64");
  const link = `https://user:${canaries.linkPassword}@a.example/odata/approvals?$skiptoken=${canaries.linkQuery}`;
  const { webhookUrl, signingSecret } = canaries;
  const ofSinks = `whsec_${signingSecret} POST /hook/${webhookUrl} ${plain.url}/hook/signed?key=${webhookUrl}`;
  return `${known.join(" ")} ${ofSinks} Basic ${basic} Bearer ${accessToken} ${link} ${redisUrl}`;
}

const file = (name: string) => join(folder, name);

function checkClean(what: string, { out, err }: Ended): void {
  expect({ what, inOutput: canariesIn(out), inErrors: canariesIn(err) }).toEqual({ what, inOutput: [], inErrors: [] });
}

/**
 * A `serve` that has met every service, every wrong answer and a wrong policy file, and then
 * crashes.
 */
async function serveUntilCrash(crashAs: "exception" | "rejection"): Promise<Ended> {
  // What the process before this one was heard to do says nothing of what this one has read.
  for (const { heard } of [plain, mutual]) heard.clear();
  const health = ["--health-port", "0", "--health-host", "127.0.0.1"];
  const args = ["serve", "--config", file("policies.yaml"), "--take-over-after", "5s", ...health];
  const serve = new Syncline(args, { ...environment, CRASH_AS: crashAs });
  await serve.until(({ event }) => event === "serve.ready");
  for (const service of services) {
    for (const kind of ["run", "poll"]) {
      await serve.until((event) => event["event"] === "task.finished" && event["policy"] === `${kind}-${service}`);
    }
  }
  await serve.until(() => [plain, mutual].every(({ given }) => given.size === 11));
  const isHeard = (path: string) => [...plain.heard].some((one) => one.startsWith(path));
  await serve.until(() => ["/hook/canary", "/hook/signed", "/tick/"].every(isHeard));
  await serve.until(({ event }) => event === "sink.failing");
  if (crashAs === "exception") await serve.until(({ event }) => event === "heartbeat.failed");
  await writeFile(file("policies.yaml.new"), wrongPolicies());
  await rename(file("policies.yaml.new"), file("policies.yaml"));
  await serve.until(({ event }) => event === "config.rejected");
  await writeFile(file("policies.yaml.new"), policies());
  await rename(file("policies.yaml.new"), file("policies.yaml"));
  await serve.until(({ event }) => event === "config.recovered");
  const { port } = await serve.until(({ event }) => event === "health.listening");
  const scraped = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  // Missed where others had the failed token instead.
  expect(scraped).toMatch(/syncline_tasks_total\{policy="run-refused",status="(not-started|missed)"\}/);
  checkClean("/metrics", { code: null, signal: null, out: scraped, err: "" });
  // What is kept for a minute only is there now.
  expect(canariesIn((await dumpRedis(redisUrl, folder)).text)).toEqual([]);
  serve.kill("SIGUSR2");
  return serve.ended();
}

describe("secrets", () => {
  it("stand in no output of serve, whatever fails, nor in its crash dump", async () => {
    for (const crashAs of ["exception", "rejection"] as const) {
      const ended = await serveUntilCrash(crashAs);
      expect(ended.code).toBe(1);
      expect(ended.err).toContain("bug: TypeError: the internal throw: […]");
      expect(ended.err).toContain("crash-on-signal.ts");
      checkClean(`serve that ends by an ${crashAs}`, ended);
    }
    const heard = [...plain.heard, ...mutual.heard].join("\n");
    const { tokenInFile, tokenInVariable, clientSecret, accessToken, echoedToken } = canaries;
    for (const sent of [tokenInFile, tokenInVariable, accessToken, echoedToken])
      expect(heard).toContain(`Bearer ${sent}`);
    expect(heard).toContain(`client_secret=${clientSecret}`);
    expect(canariesIn(heard)).toContain("clientSecret");
  });

  it("stand in nothing that a command prints", async () => {
    const config = ["--config", file("policies.yaml")];
    const commands: string[][] = [
      ["validate", file("wrong.yaml")],
      ["validate", file("wrong.yaml"), "--json"],
      ["validate", file("policies.yaml")],
      ["serve", "--config", file("wrong.yaml")],
      ["plan", ...config, "--json"],
      ["history"],
      ["history", "--json"],
      ["explain", "run-refused", ...config],
      ["explain", "poll-echo", ...config, "--json"],
      ["audit", ...config, "--json"],
      ["doctor", ...config, "--within", "5s", "--json"],
      ["failed", "list", "--json"],
      ["changes", "--json"],
      ["run", "run-echo", ...config, "--wait", "--timeout", "8s"],
      ["run", "poll-refused", ...config, "--wait", "--timeout", "8s", "--json"],
      ["api", "GetApprovals", "--base-url", `https://user:${canaries.linkPassword}@127.0.0.1/`],
      ["history", "--redis-url", `nonsense://:${canaries.redisPassword}@x`],
    ];
    const calls = [
      ...services.map((service) => ["GetApprovals", "--service", service]),
      ...["filed", "mutual"].map((service) => ["GetApprovals", "--service", service, "--all"]),
      ...["echo", "refused"].map((service) => ["RunSyncJob", "--service", service, "--key", "1", "--yes", "--json"]),
    ];
    for (const [operation = "", ...options] of calls) commands.push(["api", operation, ...config, ...options]);
    for (let first = 0; first < commands.length; first += atOnce) {
      const few = commands.slice(first, first + atOnce);
      const ended = await Promise.all(few.map((command) => syncline(command, environment)));
      for (const [index, one] of ended.entries()) checkClean(few[index]?.join(" ") ?? "", one);
    }
  });

  it("stand in no message about a Redis that refuses the password or is gone", async () => {
    const wrong = redisUrl.replace(canaries.redisPassword, `${canaries.redisPassword}-wrong`);
    for (const url of [wrong, redisUrl.replace(`:${redis.port}`, ":1")]) {
      for (const command of [
        ["serve", "--config", file("policies.yaml")],
        ["history", "--json"],
      ]) {
        const ended = await syncline(command, { ...environment, REDIS_URL: url });
        expect(ended.code).toBe(3);
        checkClean(`${command[0]} without Redis`, ended);
      }
    }
  });

  it("stand in nothing that serve says when Redis changes its password under it", async () => {
    const admin = new Redis(redisUrl);
    const serve = new Syncline(["serve", "--config", file("policies.yaml")], environment);
    await serve.until(({ event }) => event === "serve.ready");
    await admin.config("SET", "requirepass", "quite-another-password");
    await admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    for (const refused of ["redis.unreachable", "queue.unreachable"]) {
      await serve.until(({ event, message }) => event === refused && String(message).startsWith("WRONGPASS"));
    }
    await admin.config("SET", "requirepass", canaries.redisPassword);
    admin.disconnect();
    serve.kill("SIGTERM");
    checkClean("serve whose password is refused", await serve.ended());
  });

  it("stand in no key of Redis and not in its dump file", async () => {
    const dump = await dumpRedis(redisUrl, folder);
    expect(dump.keys).toBeGreaterThan(20);
    expect(dump.text).toContain("run-refused");
    expect(canariesIn(dump.text)).toEqual([]);
    expect(canariesIn(dump.rdb)).toEqual([]);
  });
});
