// `syncline sinks`: what waits for receivers, and a trial notice that tells whether one takes it.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import { silentLog } from "../../src/core/event-log.ts";
import { NoticeQueues } from "../../src/queue/notice-queues.ts";
import { keepPolicySet } from "../../src/store/kept-policies.ts";
import { openStore } from "../../src/store/redis.ts";
import { SinkStore } from "../../src/store/sink-store.ts";
import { runHere } from "../support/commands-here.ts";
import { folderForTest } from "../support/folder.ts";
import { refusal, startMailServer } from "../support/mail-server.ts";
import { noticeOf, Receiver } from "../support/receiver.ts";
import { redisForTest, storeForTest } from "../support/redis.ts";
import { freePort } from "../support/redis-servers.ts";

const redis = redisForTest();
const variables = { T: "token-of-the-test" };
let folder: string;
let receiver: Receiver;

beforeEach(async () => {
  folder = folderForTest();
  receiver = await new Receiver().start();
  onTestFinished(() => receiver.stop());
  writeFileSync(join(folder, "key"), `whsec_${Buffer.alloc(32, 7).toString("base64")}`);
});

const webhook = (more = "secretFile: key", url = receiver.url) => `webhook: { url: "${url}?t=canary-query", ${more} }`;

function policies(sinks: Readonly<Record<string, string>>, notify = "[ops]"): string {
  const file = join(folder, "policies.yaml");
  const lines = Object.entries(sinks).map(([name, to]) => `  ${name}: { ${to} }\n`);
  const service = '{ baseUrl: "http://127.0.0.1:1", token: { env: T } }';
  const policy = `{ name: nightly, service: main, run: { syncJobs: [1] }, notify: ${notify} }`;
  writeFileSync(
    file,
    `apiVersion: syncline/v1\nservices: { main: ${service} }\nsinks:\n${lines.join("")}policies: [${policy}]\n`,
  );
  return file;
}

/** No Redis is named: the trial needs none. */
const trial = (name: string, file: string, ...more: string[]) =>
  runHere(["sinks", "test", name, "--config", file, ...more], variables);

describe("syncline sinks test", () => {
  it("sends one signed event of its own kind, and says what came back", async () => {
    const file = policies({ ops: webhook() });
    const { code, out, err } = await trial("ops", file);
    const host = new URL(receiver.url).host;
    const [sent, taken] = out.split("\n");
    expect([code, err]).toEqual([0, ""]);
    expect(sent).toMatch(`sent to ops, webhook (cloudevents) at ${host}: trial notice for the sink ops, sent by `);
    expect(taken).toMatch(/^taken: answered with status 204 after \d+ ms$/);
    expect(receiver.received).toHaveLength(1);
    expect(receiver.received[0]?.headers["webhook-signature"]).toMatch(/^v1,/);
    expect(JSON.parse(receiver.received[0]?.body ?? "")).toMatchObject({
      type: "syncline.trial",
      data: { sink: "ops" },
    });
    const json = JSON.parse((await trial("ops", file, "--json")).out);
    expect(json).toMatchObject({ sink: "ops", taken: true, status: 204, sent: { kind: "trial" } });
    expect(json.durationMs).toBeTypeOf("number");
  });

  it.each([
    [401, "secretFile: key", /not taken: answered with status 401 .*\n→ .*the secret of webhook\.secretFile/],
    [404, "format: slack", /not taken: answered with status 404 .*\n→ check url/],
    [400, "format: teams", /not taken: answered with status 400 .*\n→ check webhook\.format \(teams\)/],
    [503, "secretFile: key", /not taken: answered with status 503 .*\n→ look into the receiver's own log/],
  ])("that is answered with %d exits 1 with the cure, once, without a secret", async (status, more, shown) => {
    receiver.answer = () => ({ status, body: "invalid_payload at ?t=canary-query\u001b[2J\n" });
    const { code, out, err } = await trial("ops", policies({ ops: webhook(more) }));
    expect(code).toBe(1);
    expect(out).toMatch(shown);
    expect(out).toMatch(/\nthe receiver says: invalid_payload at \S+ \[2J\n/);
    expect(receiver.received).toHaveLength(1);
    expect(`${out}${err}`).not.toMatch(/canary|BwcHBw/);
  });

  it("shows in a chat the link of the policy file", async () => {
    const file = policies({ ops: webhook("format: slack") });
    const more = 'notifications: { link: "https://look.example.com/{kind}?at={atMs}" }\n';
    writeFileSync(file, `${readFileSync(file, "utf8")}${more}`);
    expect((await trial("ops", file)).code).toBe(0);
    const { text } = JSON.parse(receiver.received[0]?.body ?? "");
    expect(text).toMatch(
      /^trial notice for the sink ops.*\n.*\n\S+ \S+Z\n<https:\/\/look\.example\.com\/trial\?at=\d+\|look>$/,
    );
  });

  it("sends nothing where doctor finds a fault, and says the same", async () => {
    const closed = `http://127.0.0.1:${await freePort()}/hook`;
    const sinks = {
      ops: webhook("secretFile: absent"),
      gone: webhook("secretFile: key", closed),
      log: "file: { path: no/a }",
    };
    const file = policies(sinks, "[ops, gone, log]");
    const missing = await trial("ops", file);
    expect([missing.code, missing.out]).toEqual([
      1,
      expect.stringMatching(/^nothing was sent to ops.*\nsecret file \S+absent cannot be read \(ENOENT\).*\n→ mount/),
    ]);
    expect((await trial("gone", file)).out).toMatch(/\nTCP failed at \S+ \(ECONNREFUSED\)\n→ check url/);
    expect(JSON.parse((await trial("log", file, "--json")).out)).toMatchObject({
      taken: false,
      cure: expect.any(String),
    });
    expect(receiver.received).toEqual([]);
    const unknown = await trial("opps", file);
    expect([unknown.code, unknown.err]).toEqual([
      2,
      expect.stringContaining("there is no sink opps; did you mean ops?"),
    ]);
  });

  it("appends a line to a file, and notes that no policy notifies the sink", async () => {
    const { code, out, err } = await trial("log", policies({ ops: webhook(), log: "file: { path: notices.jsonl }" }));
    expect([code, err]).toEqual([0, expect.stringContaining("no policy notifies log")]);
    expect(out).toMatch(/\ntaken: written after \d+ ms$/);
    expect(JSON.parse(readFileSync(join(folder, "notices.jsonl"), "utf8"))).toMatchObject({ type: "syncline.trial" });
  });
});

describe("syncline sinks test of an e-mail sink", () => {
  const email = (port: number, caFile: string, more = "to: [ops@example.com, old@example.com]") =>
    `email: { host: 127.0.0.1, port: ${port}, startTls: false, from: s@example.com, tls: { caFile: "${caFile}" }, ${more} }`;

  it("sends one message, and names a recipient that the server refuses", async () => {
    const { mails, settings } = await startMailServer({
      onRcptTo: ({ address }, _, done) => (address.startsWith("old") ? done(refusal(550, "gone")) : done()),
    });
    const file = policies({ ops: email(settings.port, settings.tls.caFile ?? "") });
    const { code, out } = await trial("ops", file);
    expect(out).toMatch(/^sent to ops, e-mail to ops@example.com and 1 more by 127\.0\.0\.1:\d+: trial notice/);
    expect(out).toMatch(/\nnot for old@example.com: 550 gone\ntaken: answered with status 250 after \d+ ms$/);
    expect([code, mails.length]).toEqual([0, 1]);
    expect(mails[0]?.raw).toMatch(/^Subject: trial notice for the sink ops, sent by /m);
  });

  it("sends nothing where the sign-in fails, and says what to do", async () => {
    const { mails, settings } = await startMailServer();
    const more = "to: [ops@example.com], user: syncline, passwordFile: key";
    const { code, out } = await trial("ops", policies({ ops: email(settings.port, settings.tls.caFile ?? "", more) }));
    expect([code, mails]).toEqual([1, []]);
    expect(out).toMatch(/the sign-in was refused with status 535\n→ check the keys of email/);
    expect(out).not.toMatch(/BwcHBw/);
  });
});

describe("syncline sinks", () => {
  it("lists each sink with where it leads and what waits; exit 1 once one is stuck", async () => {
    const prefix = `${redis.prefix}-sinks`;
    const target = { url: redis.url, prefix };
    const file = policies({ ops: webhook("format: slack"), log: "file: { path: notices.jsonl }" });
    const list = (...more: string[]) =>
      runHere(["sinks", "--redis-url", redis.url, "--prefix", prefix, ...more], variables);
    const store = await openStore(target);
    const loaded = await loadPolicies(file, { variables, checks: policyChecks });
    if (loaded.ok) await keepPolicySet(store, loaded.set, "test");
    const queues = new NoticeQueues(target, silentLog);
    try {
      await new SinkStore(store).noteSeen(["ops", "renamed", "gone"]);
      await queues.add("renamed", [noticeOf("c")], 10);
      await queues.add("ops", [noticeOf("a"), noticeOf("b")], 10);
      const fresh = await list();
      expect(fresh.code).toBe(0);
      expect(fresh.out).toMatch(/ops +webhook \(slack\) at 127\.0\.0\.1:\d+ +2 +\S+ \S+Z +0 +0\n/);
      expect(fresh.out).toMatch(/log +file \S+notices\.jsonl +no worker has had it yet/);
      expect(fresh.out).toMatch(/renamed +not configured +1 +0 +0/);
      expect(fresh.out).not.toMatch(/canary|gone/);
      for (const name of await store.redis.keys(`${prefix}*`)) {
        if ((await store.redis.type(name)) !== "hash") continue;
        const data = await store.redis.hget(name, "data");
        const twentyMinutesAgo = `"sinceMs":${Date.now() - 20 * 60_000}`;
        if (data !== null) await store.redis.hset(name, "data", data.replace(/"sinceMs":\d+/, twentyMinutesAgo));
      }
      const stuck = await list();
      expect([stuck.code, stuck.out]).toEqual([1, expect.stringContaining("`syncline sinks test ops` says why")]);
      expect(stuck.out).not.toContain("test renamed");
      expect(JSON.parse((await list("--json")).out)).toMatchObject([
        { sink: "ops", waiting: 2 },
        { sink: "log" },
        { sink: "renamed", waiting: 1 },
      ]);
    } finally {
      await queues.close();
      await store.close();
    }
    expect(existsSync(join(folder, "notices.jsonl"))).toBe(false);
    expect(await runHere(["sinks", "tset", "ops"], variables)).toMatchObject({
      code: 2,
      err: "error: sinks has no tset; did you mean test? there are: list, test",
    });
  });

  it("shows the last digest that a sink got, none that waits or was held", async () => {
    const prefix = `${redis.prefix}-digests`;
    const target = { url: redis.url, prefix };
    const file = policies({ ops: webhook("format: slack") });
    const digests = 'notifications: { digests: { daily: { at: "07:00", to: [ops] } } }\n';
    writeFileSync(file, `${readFileSync(file, "utf8")}${digests}`);
    const store = await storeForTest(target);
    const queues = new NoticeQueues(target, silentLog);
    onTestFinished(() => queues.close());
    const look = ["sinks", "--json", "--config", file, "--redis-url", redis.url, "--prefix", prefix];
    const sentAt = async (id: string, atMs: number) => {
      const state = { v: 1, slotMs: atMs, schedule: "", sent: { atMs, id, to: ["ops"] } };
      await store.redis.hset(store.key("notifications", "digests"), "daily", JSON.stringify(state));
      return JSON.parse((await runHere(look, variables)).out)[0].lastDigest;
    };
    const nowMs = Date.now();
    await queues.add("ops", [noticeOf("waits")], 10);
    expect(await sentAt(noticeOf("waits").id, nowMs)).toBeNull();
    expect(await sentAt("held", nowMs)).toBeNull();
    const longAgoMs = nowMs - 2 * 86_400_000;
    expect(await sentAt("old", longAgoMs)).toBe(new Date(longAgoMs).toISOString());
  });
});
