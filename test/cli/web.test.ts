import { readdirSync, writeFileSync } from "node:fs";
import { getPriority } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { commandFixture } from "../support/command-fixture.ts";
import { runHere } from "../support/commands-here.ts";
import { folderForTest } from "../support/folder.ts";

import { IdentityProvider } from "../support/identity-provider.ts";
import { parseMetrics, sumOf } from "../support/metrics-text.ts";
import { freePort, until } from "../support/redis-servers.ts";

const fixture = commandFixture(
  "  - { name: nightly, service: main, repository: HR, run: { syncJobs: [1] }, follow: { until: accepted } }",
);
const prefix = fixture.redis.prefix;
const provider = await IdentityProvider.start();
const signInHeaders = { "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin" };

it("shows what is known under the role web, to owners of a token only", async () => {
  const made = await runHere(["token", "ana", "--until", "2099-01-01"]);
  const token = /shown this once: (\S+)/.exec(made.err)?.[1] ?? "";
  const file = join(folderForTest(), "web-tokens");
  writeFileSync(file, made.out);
  const web = await fixture.serve(
    prefix,
    "--roles",
    "web",
    "--web-port",
    "0",
    "--web-host",
    "0.0.0.0",
    "--web-tokens",
    file,
  );
  const { url } = await web.until(({ event }) => event === "web.listening");
  const api = `${String(url).replace("0.0.0.0", "127.0.0.1")}api/v1`;
  expect((await fetch(`${api}/policies`)).status).toBe(401);
  const headers = { authorization: `Bearer ${token}` };
  const { items } = JSON.parse(await (await fetch(`${api}/policies`, { headers })).text());
  expect(items).toMatchObject([{ name: "nightly", health: "new" }]);
  expect((await fetch(`${api}/policies/nightly`, { headers, method: "DELETE" })).status).toBe(403);
  expect((await fixture.command(prefix, "changes")).out).toMatch(/ana +refused +DELETE \/api\/v1\/policies\/nightly/);
  // An open stream of events does not keep the process from its end.
  const events = await fetch(`${api.replace("/api/v1", "")}/events`, { headers });
  expect(events.headers.get("content-type")).toBe("text/event-stream");
  web.kill("SIGTERM");
  expect((await web.ended()).code).toBe(0);
});

it.skipIf(process.platform !== "linux")("leaves the processor to starts with all its threads", async () => {
  const web = await fixture.serve(prefix, "--roles", "web", "--web-port", "0");
  await web.until(({ event }) => event === "web.listening");
  const priorities = readdirSync(`/proc/${web.pid}/task`).map((thread) => getPriority(Number(thread)));
  expect(priorities.filter((priority) => priority < 10)).toEqual([]);
});

describe("with an identity provider", () => {
  const write = (issuer: string, more = "") => {
    const file = join(folderForTest(), "web-auth.yaml");
    const grant = "{ claim: groups, value: operators, scope: read }";
    writeFileSync(file, `jwt: { issuer: "${issuer}", audience: syncline-api }\n${more}grants: [${grant}]\n`);
    return file;
  };
  const nowhere = async () => `http://127.0.0.1:${await freePort()}`;

  it("serves on while it cannot be reached, and says so at the start", async () => {
    const issuer = await nowhere();
    const web = await fixture.serve(prefix, "--roles", "web", "--web-port", "0", "--web-auth", write(issuer));
    const { url } = await web.until(({ event }) => event === "web.listening");
    const { message } = await web.until(({ event }) => event === "web.issuer-unreachable");
    expect(message).toBe(`${issuer}/.well-known/openid-configuration cannot be reached (ECONNREFUSED)`);
    const ask = async (token: string) =>
      fetch(`${url}api/v1/policies`, { headers: { authorization: `Bearer ${token}` } });
    const jwt = await provider.sign();
    expect([(await ask(jwt)).status, (await ask("x")).status]).toEqual([503, 401]);
    expect((await fixture.command(prefix, "changes")).out).toMatch(/refused +GET \/api\/v1\/policies/);
  });

  it("is checked by doctor, with the secret of the client", async () => {
    const doctor = async (file: string) => {
      const asked = ["doctor", "--config", fixture.file(), "--web-auth", file, "--json"];
      const { out } = await fixture.command(prefix, ...asked);
      const { checks }: { checks: { check: string; level: string; what: string }[] } = JSON.parse(out);
      return checks.flatMap(({ check, level, what }) => (check === "sign-in" ? [`${level}: ${what}`] : [])).toSorted();
    };
    const oidc = (secret: string) =>
      `oidc: { issuer: "${provider.issuer}", clientId: a, clientSecretFile: ${secret}, publicUrl: "https://a.example" }\n`;
    const named = "ok: the identity provider names its addresses and keys";
    expect(await doctor(write(provider.issuer, oidc(provider.secretFile)))).toEqual([
      "ok: the client's secret can be read",
      named,
    ]);
    expect(await doctor(write(await nowhere(), oidc("/no/such/file")))).toEqual([
      named,
      "problem: client secret file /no/such/file cannot be read (ENOENT): check the path and its rights",
      expect.stringMatching(/^problem: .* cannot be reached \(ECONNREFUSED\)$/),
    ]);
  });

  it("is refused at the start when its file is wrong, with the place", async () => {
    const file = write("http://id.example.com");
    const refused = await fixture.command(
      prefix,
      "serve",
      "--config",
      fixture.file(),
      "--roles",
      "web",
      "--web-auth",
      file,
    );
    expect(refused).toMatchObject({
      code: 2,
      err: expect.stringContaining(`${file}:1:16: jwt.issuer must be an https:// URL`),
    });
  });
});

it("runs a policy over the API once, though sent twice, and records it", async () => {
  const { out, err } = await runHere(["token", "ben", "--scope", "operate"]);
  const token = /shown this once: (\S+)/.exec(err)?.[1] ?? "";
  const file = join(folderForTest(), "web-tokens");
  writeFileSync(file, out);
  const own = `${prefix}-run`;
  const web = await fixture.serve(own, "--roles", "worker,web", "--web-port", "0", "--web-tokens", file);
  const { url } = await web.until(({ event }) => event === "web.listening");
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json", "idempotency-key": "once" };
  const run = () =>
    fetch(`${url}api/v1/policies/nightly/runs`, { method: "POST", headers, body: '{"reason":"ticket 7"}' });
  const [first, again] = await Promise.all((await Promise.all([run(), run()])).map((answer) => answer.text()));
  expect(again).toBe(first);
  const { tasks } = JSON.parse(first ?? "");
  await web.until(({ event, taskId }) => event === "task.finished" && taskId === tasks[0]);
  expect(fixture.sandbox().requests()).toMatchObject({ RunSyncJob: { 200: 1 } });
  expect((await fixture.command(own, "changes")).out).toMatch(/ben +run +policy nightly +ticket 7/);
});

it("counts what it answers, refuses and shows live, by routes alone", async () => {
  const { out, err } = await runHere(["token", "eve"]);
  const headers = { authorization: `Bearer ${/shown this once: (\S+)/.exec(err)?.[1] ?? ""}` };
  const file = join(folderForTest(), "web-tokens");
  writeFileSync(file, out);
  const health = ["--health-port", "0", "--health-host", "127.0.0.1"];
  const web = await fixture.serve(prefix, "--roles", "web", "--web-port", "0", "--web-tokens", file, ...health);
  const { url } = await web.until(({ event }) => event === "web.listening");
  const { port } = await web.until(({ event }) => event === "health.listening");
  const scrape = async () => parseMetrics(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
  for (const path of ["policies/nightly", "policies/gone-1", "policies/gone-2"])
    await (await fetch(`${url}api/v1/${path}`, { headers })).text();
  await (await fetch(`${url}api/v1/policies`)).text();
  await (await fetch(`${url}sign-in`, { method: "POST", body: "token=guess", headers: signInHeaders })).text();
  await (await fetch(`${url}wp-login.php`, { headers })).text();
  const events = await fetch(`${url}events`, { headers });
  const samples = await scrape();
  const answered = (operation: string, status: string) =>
    sumOf(samples, "syncline_web_requests_total", { operation, status });
  expect([answered("GET /api/v1/policies/:name", "2xx"), answered("GET /api/v1/policies/:name", "4xx")]).toEqual([
    1, 2,
  ]);
  expect([answered("GET /api/v1/policies", "4xx"), answered("other", "4xx")]).toEqual([1, 1]);
  expect(sumOf(samples, "syncline_web_refused_total", { reason: "unauthenticated" })).toBe(2);
  expect(sumOf(samples, "syncline_web_sign_ins_failed_total")).toBe(1);
  expect(sumOf(samples, "syncline_web_request_duration_seconds_count")).toBe(6);
  expect(sumOf(samples, "syncline_web_streams")).toBe(1);
  // Redis may answer one scrape too late.
  await until(
    async () => sumOf(await scrape(), "syncline_heartbeat_timestamp_seconds", { role: "web" }) ?? 0,
    (at) => at > 0,
  );
  await events.body?.cancel();
  await until(
    async () => sumOf(await scrape(), "syncline_web_streams"),
    (streams) => streams === 0,
  );
});

it("refuses to be seen from elsewhere without tokens, and a file that is none", async () => {
  const serve = (...more: string[]) =>
    fixture.command(prefix, "serve", "--config", fixture.file(), "--roles", "web", ...more);
  expect(await serve("--web-host", "0.0.0.0")).toMatchObject({ code: 2, err: expect.stringContaining("--web-tokens") });
  const wrong = join(folderForTest(), "web-tokens");
  writeFileSync(wrong, "ana:secret\n");
  expect(await serve("--web-tokens", wrong)).toMatchObject({ code: 2, err: expect.stringContaining(`${wrong}:1`) });
});
