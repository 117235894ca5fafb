// `syncline doctor` against a Redis, a sandbox with faults, and services that are not as they
// should be.
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseFault } from "../../src/sandbox/faults.ts";
import { type Sandbox, startSandbox } from "../../src/sandbox/sandbox.ts";
import { FeedStore } from "../../src/store/feed-store.ts";
import { Pauses, Quarantines } from "../../src/store/pauses.ts";
import { openStore } from "../../src/store/redis.ts";
import { createAuthority, signedBy } from "../support/certificates.ts";
import { runHere } from "../support/commands-here.ts";
import { Syncline, syncline } from "../support/processes.ts";
import { freePort, ownFolder, startServer } from "../support/redis-servers.ts";
import { startServer as startService } from "../unit/service/test-server.ts";

interface Line {
  readonly check: string;
  readonly subject: string;
  readonly level: string;
  readonly what: string;
  readonly cure?: string;
}

const mapping =
  "mapping: { activity: { id: item.activityId, syncJobId: item.syncJobId, finished: 'true', succeeded: 'true' } }";
let redisUrl: string;
let sandbox: Sandbox;
let folder: string;
let files = 0;

beforeAll(async () => {
  redisUrl = (await startServer({ args: ["--appendonly", "yes"] })).url;
  sandbox = await startSandbox({ jobs: 8, activities: 10, repositories: ["HR"], limitedToken: "canary-limited" });
  folder = ownFolder();
});
afterAll(() => sandbox.stop());

/** Writes a policy file and asks the doctor about it. */
async function doctor(
  text: { readonly service?: string; readonly policies?: string; readonly extra?: string },
  options: { readonly args?: readonly string[]; readonly environment?: Readonly<Record<string, string>> } = {},
) {
  files += 1;
  const file = join(folder, `p${files}.yaml`);
  const service = text.service ?? `baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN }, ${mapping}`;
  const policies =
    text.policies ??
    "  - { name: nightly, service: main, repository: HR, run: { syncJobs: [1, 2] }, schedule: { cron: '0 2 * * *', timezone: Europe/Vienna } }";
  writeFileSync(
    file,
    `apiVersion: syncline/v1\nservices:\n  main: { ${service} }\n${text.extra ?? ""}policies:\n${policies}\n`,
  );
  const environment = { REDIS_URL: redisUrl, TEST_TOKEN: sandbox.token, ...options.environment };
  const args = ["doctor", "--config", file, "--json", ...(options.args ?? [])];
  // What only a process can have: its own clock, and an address of Redis with a password.
  const isOwn = ["NODE_OPTIONS", "REDIS_URL"].some((name) => name in (options.environment ?? {}));
  const ended = await (isOwn ? syncline : runHere)(args, environment);
  const report = ended.code === 2 ? undefined : JSON.parse(ended.out);
  const lines: readonly Line[] = report?.checks ?? [];
  const about = (check: string) => lines.filter((line) => line.check === check);
  return { ...ended, file, environment, report, lines, about };
}

/**
 * Asks the doctor about a service of empty lists and the sync job 1. It answers otherwise what
 * `answer` says: a body, or the status of a refusal.
 */
async function doctorOf(
  answer: (url: string) => string | number | undefined,
  { service = "", args = [] as readonly string[] } = {},
) {
  const server = await startService(({ url }, response) => {
    const said = answer(url) ?? (url.includes("/syncjobs(") ? '{"syncJobId":1}' : '{"value":[]}');
    response.writeHead(typeof said === "number" ? said : 200).end(typeof said === "number" ? "" : said);
  });
  const text = `baseUrl: "${server.url}", token: { env: TEST_TOKEN }, ${mapping}${service === "" ? "" : `, ${service}`}`;
  return doctor({ service: text, policies: "  - { name: a, service: main, run: { syncJobs: [1] } }" }, { args });
}

const bad = (lines: readonly Line[]) => lines.filter(({ level }) => level === "problem");

describe("syncline doctor", () => {
  it("finds no fault in a healthy setup, as table and JSON, without a secret", async () => {
    sandbox.setFaults([]);
    const well = await doctor({});
    expect([well.code, bad(well.lines)]).toEqual([0, []]);
    expect(well.report).toMatchObject({ ok: true, problems: 0, nextSlots: [{ policy: "nightly" }] });
    expect(well.about("redis")).toMatchObject([{ level: "ok", what: expect.stringContaining("noeviction") }]);
    expect(well.about("sync jobs")).toMatchObject([{ level: "ok", what: "2 of 2 that policies name are there" }]);
    expect(well.about("zones")[0]?.what).toContain("Europe/Vienna");
    expect(well.about("replicas")).toMatchObject([{ level: "warning", what: expect.stringContaining("no process") }]);
    const table = await syncline(["doctor", "--config", well.file], well.environment);
    expect(table.code).toBe(0);
    expect(table.out).toMatch(/^ok +service main: http:\/\/127\.0\.0\.1:\d+ answered within \d+ ms$/m);
    expect(table.out).toMatch(/\n0 problems, \d+ warnings?, \d+ fine$/);
    expect(table.out).not.toContain("\u001b");
    for (const text of [well.out, table.out, table.err]) expect(text).not.toContain(sandbox.token);
  });

  it("changes nothing in Redis and sends no start", async () => {
    const store = await openStore({ url: redisUrl, prefix: "{syncline}" });
    try {
      const before = await store.redis.dbsize();
      await doctor({});
      expect([await store.redis.dbsize(), sandbox.ledger()]).toEqual([before, []]);
    } finally {
      await store.close();
    }
  });

  it("says which step to a service failed: DNS, TCP or TLS", async () => {
    const { cert, key } = await signedBy(await createAuthority("unknown"));
    const server = createServer({ cert, key }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const token = "token: { env: TEST_TOKEN }";
    const [dns, tcp, tls] = await Promise.all([
      doctor({ service: `baseUrl: "https://no-such-host.invalid", ${token}` }),
      doctor({ service: `baseUrl: "http://127.0.0.1:${await freePort()}", ${token}` }),
      doctor({ service: `baseUrl: "https://127.0.0.1:${port}", ${token}` }),
    ]);
    server.close();
    for (const [one, stage] of [
      [dns, "DNS"],
      [tcp, "TCP"],
      [tls, "TLS"],
    ] as const) {
      expect(one.code).toBe(1);
      expect(bad(one.lines)).toMatchObject([
        { check: "service", subject: "main", what: expect.stringMatching(`^${stage} failed at [\\w.:-]+: `) },
      ]);
    }
    expect(tls.about("service")[0]?.cure).toContain("tls.caFile");
  });

  it("tells a refused token from one that is not there, and from one without rights", async () => {
    const refused = await doctor({}, { environment: { TEST_TOKEN: "canary-wrong" } });
    expect(refused.code).toBe(1);
    expect(bad(refused.lines)).toMatchObject([{ check: "token", cure: expect.stringContaining("refused") }]);
    const absent = await doctor({}, { environment: { TEST_TOKEN: "" } });
    expect(bad(absent.lines)).toMatchObject([{ check: "token", what: expect.stringContaining("TEST_TOKEN") }]);
    const limited = await doctor({}, { environment: { TEST_TOKEN: "canary-limited" } });
    expect(bad(limited.lines)).toMatchObject([
      { check: "sync jobs", subject: "main, HR, 1", what: expect.stringContaining("may not read it") },
      { check: "sync jobs", subject: "main, HR, 2" },
    ]);
    for (const { out, err } of [refused, limited]) expect(out + err).not.toContain("canary");
  });

  it("tells a token that may not read triggers from one that is refused", async () => {
    const found = await doctorOf((url) => (url.includes("/trigger") ? 403 : undefined));
    expect([found.code, bad(found.lines)]).toEqual([0, []]);
    expect(found.about("token")).toMatchObject([
      { level: "warning", what: expect.stringContaining("may not read triggers: the service answered with status") },
    ]);
    expect(found.about("sync jobs")).toMatchObject([{ level: "ok", what: "1 of 1 that policies name are there" }]);
  });

  it("finds lists of runs that cannot be read, also where triggers are broken", async () => {
    const prefix = "{doctor-lists}";
    const store = await openStore({ url: redisUrl, prefix });
    const feed = { service: "main", repository: null, list: "conflictDetails" } as const;
    await new FeedStore(store).failWalk(feed, "forbidden: as before", { beganAtMs: 0, waitMs: 0 });
    const found = await doctorOf(
      (url) => {
        if (url.includes("trigger")) return '{"value":[{"isActive":"yes"}]}';
        return url.includes("activities") ? '{"value":[],"@odata.nextLink":"ftp://elsewhere/"}' : 403;
      },
      { args: ["--prefix", prefix] },
    );
    await store.close();
    expect(found.about("service")).toMatchObject([{ level: "ok" }]);
    expect(found.about("triggers")).toMatchObject([{ level: "warning", what: expect.stringContaining("wrong type") }]);
    expect(found.about("feeds")).toMatchObject([
      { level: "problem", subject: "activities of main", what: expect.stringContaining("was not followed") },
      { level: "problem", subject: "conflictDetails of main", what: expect.stringContaining("status 403") },
      { level: "warning", subject: "approvals of main", what: expect.stringContaining("status 403") },
    ]);
  });

  it("takes the answer about another sync job or identity, or about none, for none", async () => {
    const [asked, other] = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"];
    const found = async (syncJob: string, identity: string) => {
      const { lines } = await doctorOf(
        (url) => (url.includes("syncjobs") ? syncJob : url.includes("identities") ? identity : undefined),
        { service: `identity: { id: ${asked}, repository: HR }` },
      );
      return bad(lines).map(({ what }) => what.replace(/ \(policy.*/, ""));
    };
    expect(await found('{"value":[{"syncJobId":1}]}', '{"value":null}')).toEqual([
      `repository HR has no identity ${asked}`,
      "the answer shows no sync job",
    ]);
    expect(await found('{"syncJobId":10}', `{"value":[{"id":"${other}"}]}`)).toEqual([
      `the service answered with identity ${other} instead of ${asked}`,
      "the service answered with sync job 10 instead of 1",
    ]);
  });

  it("names each missing sync job with policy, file and line, also on a 404", async () => {
    const policies =
      "  - { name: a, service: main, repository: HR, run: { syncJobs: [1, 99] } }\n  - { name: b, service: main, repository: HR, activate: { syncJobs: [99] } }";
    const missing = await doctor({ policies });
    expect(missing.code).toBe(1);
    expect(bad(missing.lines)).toMatchObject([{ check: "sync jobs", subject: "main, HR, 99" }]);
    expect(bad(missing.lines)[0]?.what).toBe(
      `the service refuses to read it (400), so most likely there is none (policy a, ${missing.file}:5 and 1 more)`,
    );
    const other = await startSandbox({ jobs: 3, repositories: ["HR"], missingStatus: 404 });
    const said = await doctor(
      { service: `baseUrl: "${other.baseUrl}", token: { env: TEST_TOKEN }`, policies },
      { environment: { TEST_TOKEN: other.token } },
    );
    await other.stop();
    expect(bad(said.lines)[0]?.what).toMatch(/^there is no such sync job \(policy a, /);
  });

  it("leaves a service alone that keeps failing, and says how much it did not ask", async () => {
    sandbox.setFaults([parseFault("500-before,op=GetSyncJobById")]);
    const policies = `  - { name: a, service: main, repository: HR, run: { syncJobs: [${Array.from({ length: 40 }, (_, index) => index).join(", ")}] } }`;
    const failing = await doctor({ policies });
    sandbox.setFaults([]);
    expect(failing.code).toBe(1);
    expect(failing.about("sync jobs")[0]?.what).toMatch(/^3\d of 40 were not asked for: 5 in a row could not be read$/);
  });

  it("loads the identity, and finds that it is none, or no administrator", async () => {
    const identities = async (isAdministrator: boolean) => {
      for (let index = 1; index < 60; index += 1) {
        const id = `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`;
        const answer = await fetch(`${sandbox.baseUrl}/odata/ecmidentities/userorgroup?id=${id}&repository=HR`, {
          headers: { authorization: `Bearer ${sandbox.token}` },
        });
        const { value } = (await answer.json()) as { value: { id: string; isAdministrator: boolean }[] };
        if (value[0]?.isAdministrator === isAdministrator) return value[0].id;
      }
      throw new Error("the sandbox has no such identity");
    };
    const withIdentity = (id: string) =>
      doctor({
        service: `baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN }, ${mapping}, identity: { id: ${id}, repository: HR, administrator: true }`,
      });
    const [boss, clerk] = [await withIdentity(await identities(true)), await withIdentity(await identities(false))];
    expect(boss.about("identity")).toMatchObject([{ level: "ok", what: expect.stringContaining("an administrator") }]);
    expect(bad(clerk.lines)).toMatchObject([
      { check: "identity", what: expect.stringContaining("is no administrator of HR") },
    ]);
    const nobody = await withIdentity("ffffffff-ffff-4fff-8fff-ffffffffffff");
    expect(bad(nobody.lines)).toMatchObject([{ check: "identity", what: expect.stringContaining("has no identity") }]);
  });

  it("counts the sync jobs of masks, and finds a policy whose masks match none", async () => {
    const policies = `  - { name: docs, service: main, repository: HR, run: { fromMasks: { type: DocMask } } }
  - { name: none, service: main, repository: HR, run: { fromMasks: { name: "No such*" } } }`;
    const masks = await doctor({ policies });
    expect(masks.code).toBe(1);
    expect(masks.about("masks")).toMatchObject([
      { subject: "docs", level: "ok", what: expect.stringMatching(/^\d+ of \d+ masks match: [1-8] sync jobs$/) },
      { subject: "none", level: "problem", what: expect.stringMatching(/^none of \d+ masks .*:6\)$/) },
    ]);
  });

  it("says what active triggers may mean, and warns of a missing mapping", async () => {
    const plain = await doctor({ service: `baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN }` });
    expect(plain.code).toBe(0);
    expect(plain.about("triggers")).toMatchObject([
      { level: "warning", what: expect.stringMatching(/^\d+ of \d+ are active: /) },
    ]);
    expect(plain.about("mapping")).toMatchObject([{ level: "warning", what: expect.stringContaining("nightly") }]);
    const service = `baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN }, ${mapping.replace("id: item.activityId, ", "")}`;
    const nameless = await doctor({ service });
    expect(nameless.about("mapping")).toMatchObject([{ level: "warning", what: expect.stringContaining("no id for") }]);
    const silent = `baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN }, ${mapping.replace(", succeeded: 'true'", "")}`;
    const assumed = "no succeeded for activities: each finished run of 1 policy (nightly) counts as succeeded";
    expect((await doctor({ service: silent })).about("mapping")).toMatchObject([{ level: "warning", what: assumed }]);
  });

  it("finds a mapping that cannot tell if a sync job is active; accepts one that can", async () => {
    const asked = async (syncJob: string) => {
      const service = `baseUrl: "${sandbox.baseUrl}", token: { env: TEST_TOKEN }, mapping: { syncJob: ${syncJob} }`;
      const policies = "  - { name: wake, service: main, repository: HR, activate: { syncJobs: [1, 2] } }";
      return bad((await doctor({ service, policies })).about("sync jobs"));
    };
    expect(await asked("{ active: item.state == 'On' }")).toMatchObject([
      {
        subject: "main, 1",
        what: "whether it is active cannot be told for policy wake: mapping.syncJob.active: No such key: state",
        cure: expect.stringContaining("syncline api GetSyncJobById --key 1"),
      },
      { subject: "main, 2" },
    ]);
    expect(await asked("{ active: item.syncJobId > 0 }")).toEqual([]);
    expect((await asked("{ active: item.status == 'On', select: [status] }"))[0]).toMatchObject({
      what: expect.stringMatching(
        /^the service refuses to read it with the properties syncJobId, name, status \(400\)/,
      ),
      cure: expect.stringContaining("correct mapping.syncJob.select"),
    });
  });

  it("shows what is in quarantine or paused, and the chains", async () => {
    const prefix = "{doctor-quarantine}";
    const store = await openStore({ url: redisUrl, prefix });
    await new Quarantines(store).count(
      { policy: "nightly", slotMs: 1_000, isSuccess: false, note: "the last ended failed" },
      { after: 1, forMs: 3_600_000 },
    );
    const renamed = { scope: "policy", name: "nightly-old", note: "migration", actor: "ana", untilMs: null } as const;
    await new Pauses(store).set(renamed);
    await store.close();
    const policies =
      "  - { name: nightly, service: main, repository: HR, run: { syncJobs: [1] }, schedule: { every: 1h } }\n  - { name: then, service: main, repository: HR, run: { syncJobs: [2] }, after: { policy: nightly } }";
    const { code, about } = await doctor({ policies }, { args: ["--prefix", prefix] });
    expect(code).toBe(0);
    expect(about("pauses")).toMatchObject([
      { level: "warning", subject: "policy nightly", cure: expect.stringContaining("`syncline resume nightly`") },
      { level: "warning", subject: "policy nightly-old", cure: expect.stringMatching(/^if it was renamed, /) },
    ]);
    expect(about("chains")).toMatchObject([{ level: "ok", what: "then after nightly" }]);
    const ofService = await doctor({ policies }, { args: ["--prefix", prefix, "--service", "main"] });
    expect(ofService.about("pauses")).toHaveLength(1);
  });

  it("finds a Redis that evicts keys, one that is missing and a clock that is off", async () => {
    const evicting = await startServer({ args: ["--maxmemory-policy", "allkeys-lru"] });
    const [unsafe, gone, skewed] = await Promise.all([
      doctor({}, { environment: { REDIS_URL: evicting.url } }),
      doctor({}, { environment: { REDIS_URL: `redis://:canary-password@127.0.0.1:${await freePort()}` } }),
      doctor(
        {},
        {
          environment: {
            NODE_OPTIONS: `--import ${fileURLToPath(new URL("../support/clock-ahead.ts", import.meta.url))}`,
          },
        },
      ),
    ]);
    expect(bad(unsafe.lines)).toMatchObject([{ check: "redis", subject: "eviction", cure: "set it to noeviction" }]);
    expect(unsafe.about("redis")).toContainEqual(expect.objectContaining({ subject: "persistence", level: "warning" }));
    expect([gone.code, bad(gone.lines).map(({ check }) => check)]).toEqual([1, ["redis"]]);
    expect(gone.out + gone.err).not.toContain("canary");
    expect(gone.about("sync jobs")).toMatchObject([{ level: "ok" }]);
    expect(skewed.about("redis")).toContainEqual(
      expect.objectContaining({
        subject: "clock",
        level: "warning",
        what: expect.stringMatching(/^this machine's clock is \d+\.\d s ahead of that of Redis$/),
      }),
    );
  });

  it("sees who is alive, and finds that no worker is", async () => {
    const prefix = "{doctor-alive}";
    const idle = await doctor({}, { args: ["--prefix", prefix] });
    const serve = new Syncline(
      ["serve", "--config", idle.file, "--prefix", prefix, "--roles", "scheduler"],
      idle.environment,
    );
    try {
      await serve.until(({ event }) => event === "serve.ready");
      const alone = await doctor({}, { args: ["--prefix", prefix] });
      expect(bad(alone.lines)).toMatchObject([
        { check: "replicas", what: expect.stringContaining("no worker is alive") },
      ]);
      const second = new Syncline(
        ["serve", "--config", idle.file, "--prefix", prefix, "--roles", "worker"],
        idle.environment,
      );
      try {
        await second.until(({ event }) => event === "serve.ready");
        const both = await doctor({}, { args: ["--prefix", prefix] });
        expect([both.code, both.about("replicas")]).toMatchObject([
          0,
          [{ level: "ok", what: "1 with the role scheduler, 1 with the role worker" }],
        ]);
      } finally {
        second.kill("SIGKILL");
        await second.ended();
      }
    } finally {
      serve.kill("SIGKILL");
      await serve.ended();
    }
  });

  it("ends in time at a service that does not answer; exits with 2 on wrong use", async () => {
    sandbox.setFaults([parseFault("latency,ms=20000")]);
    const slow = await doctor({}, { args: ["--within", "3s"] });
    sandbox.setFaults([]);
    expect(slow.code).toBe(1);
    expect(bad(slow.lines)).toMatchObject([
      { check: "service", what: "it did not answer in time" },
      { check: "doctor" },
    ]);
    const unknown = await doctor({}, { args: ["--service", "other"] });
    expect([unknown.code, unknown.err]).toEqual([2, "error: there is no service other; there is: main"]);
  });
});
