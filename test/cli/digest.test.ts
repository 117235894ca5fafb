// Digests as people see them: printed, sent by hand, and mailed by a running `serve`.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { dayAfter, localDate } from "../../src/core/instant.ts";
import { totalOfSyncJob } from "../../src/feeds/list-totals.ts";
import type { Outcome } from "../../src/model/outcome.ts";
import { FeedStore } from "../../src/store/feed-store.ts";
import { History } from "../../src/store/history.ts";
import { keepPolicySet } from "../../src/store/kept-policies.ts";
import { runHere } from "../support/commands-here.ts";
import { folderForTest } from "../support/folder.ts";
import { keepAlive, liveProcess, setOf } from "../support/kept-set.ts";
import { login, startMailServer } from "../support/mail-server.ts";
import { testOutcome } from "../support/outcomes.ts";
import { testPolicy } from "../support/policies.ts";
import { Syncline } from "../support/processes.ts";
import { Receiver } from "../support/receiver.ts";
import { redisForTest, storeForTest } from "../support/redis.ts";
import { sinkOf, startSinks, webhookTo } from "../support/sink-fixture.ts";

const target = redisForTest();
const store = await storeForTest(target);
const history = new History(store, { timezoneOf: () => "UTC" });
const here = (...args: string[]) => runHere([...args, "--prefix", target.prefix, "--redis-url", target.url], {});

const policy = (name: string, team: string) => testPolicy({ name, labels: { team }, schedule: undefined });
const dst = { gap: "next", overlap: "first" } as const;
const daily = { kind: "cron", expressions: ["0 7 * * *"], timezone: "UTC", dst, spreadMs: 0 } as const;
const digest = { timezone: "UTC", to: ["ops"], schedule: daily };
const set = {
  ...setOf([policy("well", "hr"), policy("mended", "hr"), { ...policy("ill", "it"), owner: "Ana, 4711" }]),
  sinks: new Map([["ops", sinkOf("ops", { kind: "file", path: "/nowhere", bytesMax: 1, filesMax: 1 })]]),
  notifications: {
    ...{ groupWaitMs: 0, muteTiming: undefined, link: "https://look.example.com/{kind}" },
    digests: [
      { ...digest, name: "hr", label: "team=hr" },
      { ...digest, name: "teams", label: "", by: "team" },
    ],
  },
};

let count = 0;
/** A task whose slot was at noon so many days ago, and that ends now. */
async function ended(name: string, daysAgo: number, changes: Partial<Outcome> = {}): Promise<void> {
  count += 1;
  const slot = `${dayAfter(localDate(Date.now(), "UTC"), -daysAgo)}T00:00:${String(count).padStart(2, "0")}.000Z`;
  const taskId = `${name}__run__42__${Math.floor(Date.parse(slot) / 1_000)}`;
  await history.record(testOutcome({ taskId, policy: name, slot, finishedAt: new Date().toISOString(), ...changes }));
}
const failed = { status: "failed", reason: "refused", evidence: "direct" } as const;

beforeAll(async () => {
  await keepPolicySet(store, set, "host/1");
  await liveProcess(store);
  await keepAlive(store);
  await ended("well", 9);
  await ended("well", 1);
  await ended("well", 0);
  await ended("mended", 1, failed);
  await ended("mended", 0);
  await ended("ill", 1, { ...failed, newConflicts: 2 });
  await ended("ill", 0, failed);
});

describe("syncline digest", () => {
  it("says what needs a person, worst first, and what happened since yesterday", async () => {
    const { code, out } = await here("digest");
    const [title, detail, , ...lines] = out.split("\n");
    const today = localDate(Date.now(), "UTC");
    expect([code, title]).toEqual([0, "Not fine, 1 needs a person: 1 failed, 2 well of 3 policies"]);
    const report = (await here("report", "--since", "yesterday")).out.split("\n");
    expect(detail).toBe(`${dayAfter(today, -1)} to ${today}: ${report[2]?.split(";")[0]}. Times are those of UTC`);
    expect(detail).toContain("3 policies: 6 ended, 3 good, 3 bad (3 failed, 2 new conflicts)");
    expect(lines[0]).toMatch(
      /^- ill: failed, 2 times in a row since \d\d:\d\d: the service refused it\..*\. Owner: Ana, 4711$/,
    );
    expect(lines[1]).toBe("- had trouble, and well again now: mended (1)");
  });

  it("and other commands name the owner of what needs a person", async () => {
    expect((await here("status")).out).toMatch(/\nfailing +ill .*owner: Ana, 4711/);
    const [{ taskId }] = JSON.parse((await here("history", "ill", "--json")).out);
    expect((await here("explain", taskId)).out).toMatch(/\n {2}owner: Ana, 4711/);
  });

  it("keeps to the label of a digest, and says when all is well", async () => {
    expect((await here("digest", "hr")).out).toMatch(
      /^All well: 2 policies \(team=hr\)\n.*: 2 policies: 4 ended, 3 good, 1 bad/,
    );
    expect((await here("digest", "--label", "team=it")).out).toMatch(
      /^Not fine, 1 needs a person: 1 failed of 1 policy \(team=it\)\n/,
    );
  });

  it("takes no label or zone beside the name of a digest, which has its own", async () => {
    for (const option of [
      ["--label", "team=it"],
      ["--timezone", "Asia/Tokyo"],
    ])
      expect(await here("digest", "hr", ...option, "--to", "ops")).toMatchObject({
        code: 2,
        err: expect.stringContaining(`${option[0]} does nothing with the name of a digest`),
      });
  });

  it("has a line for each value of a label, the worst first", async () => {
    const { lines } = JSON.parse((await here("digest", "teams", "--json")).out);
    expect(lines.slice(-2)).toEqual([
      "team=it: 1 policy (1 failed); 2 ended, 0 good, 2 bad",
      "team=hr: 2 policies (2 well); 4 ended, 3 good, 1 bad",
    ]);
  });

  it("names each pause, by whom, until when and why", async () => {
    await here("pause", "--label", "team=hr", "--until", "2h", "--reason", "until the move");
    onTestFinished(async () => void (await here("resume", "--label", "team=hr")));
    expect((await here("digest")).out).toMatch(
      /\n- label team=hr: paused since \d\d:\d\d, until .*\d\d:\d\d, by \S+: until the move$/,
    );
  });

  it("calls no policy well whose sync job has open conflicts", async () => {
    const feed = { service: "main", repository: "HR", list: "conflictDetails" } as const;
    const walk = async (counts: Readonly<Record<string, number>>) => {
      const totals = new Map(Object.entries(counts));
      await new FeedStore(store).endWalk(feed, { startedAtMs: Date.now(), count: 5, whole: true, totals });
    };
    await walk({ all: 5, [totalOfSyncJob("42")]: 3, [totalOfSyncJob("7")]: 2 });
    onTestFinished(() => walk({ all: 0 }));
    const { out } = await here("digest");
    expect(out).toMatch(/^Not fine, 3 need a person: 1 failed, 2 with conflicts to settle of 3 policies\n/);
    expect(out).toMatch(/\n- ill: failed.*; 3 conflicts to settle at main \(sync job 42\), counted at \d\d:\d\d\. /);
    // It ended well, and left records that differ.
    expect(out).toMatch(
      /\n- mended: 3 conflicts to settle at main \(sync job 42\) since \d\d:\d\d, counted at \d\d:\d\d: /,
    );
    expect(out).not.toContain("well again");
  });

  it("goes to a sink by hand, through its queue", async () => {
    const { code, err } = await here("digest", "hr", "--to", "ops");
    expect([code, err]).toEqual([0, "queued for ops: `syncline sinks` shows what waits"]);
    const receiver = await new Receiver().start();
    onTestFinished(() => receiver.stop());
    await startSinks(target, [sinkOf("ops", webhookTo(receiver.url, { format: "slack" }))]);
    await receiver.until(() => receiver.accepted.length === 1);
    expect(JSON.parse(receiver.received[0]?.body ?? "").text).toMatch(
      /^All well: 2 policies \(team=hr\)\n20.*\n• had trouble, and well again now: mended[\s\S]*\n<https:\/\/look\.example\.com\/digest\|look>$/,
    );
  });

  it("counts and shows runs that ended well and are unusual", async () => {
    await ended("well", 0, { unusual: ["duration"], durationMs: 2_820_000, usualMs: 720_000 });
    const { out } = await here("digest", "hr");
    expect(out).toMatch(/^No trouble: 2 well, 1 unusual of 2 policies \(team=hr\)\n/);
    expect(out).toMatch(
      /\n- well: ended well \S+ \S+, but is unusual: sync job 42 took 47m, usually 12m\. A person should look/,
    );
  });

  it("refuses names that are none", async () => {
    expect((await here("digest", "hrr")).err).toContain("there is no digest hrr; did you mean hr?");
    expect((await here("digest", "--to", "opps")).err).toContain("there is no sink opps; did you mean ops?");
  });
});

it("a running serve sends a due digest once, and tells when, to whom and what failed", async () => {
  const receiver = await new Receiver().start();
  onTestFinished(() => receiver.stop());
  receiver.answer = () => ({ status: 422 });
  const { mails, settings, passwordFile } = await startMailServer();
  const file = join(folderForTest(), "p.yaml");
  const email = `{ host: 127.0.0.1, port: ${settings.port}, startTls: false, from: s@example.com, to: [ops@example.com], user: ${login.user}, passwordFile: "${passwordFile}", tls: { caFile: "${settings.tls.caFile}" } }`;
  writeFileSync(
    file,
    `apiVersion: syncline/v1
services: { main: { baseUrl: "http://127.0.0.1:1", token: { env: TEST_TOKEN } } }
policies: [{ name: nightly, service: main, run: { syncJobs: [1] } }]
sinks: { mail: { email: ${email} }, chat: { webhook: { url: "${receiver.url}", format: slack } } }
notifications: { digests: { daily: { at: "07:00", to: [mail, chat] } } }
`,
  );
  const prefix = `${target.prefix}-serve`;
  const serve = new Syncline(["serve", "--config", file, "--prefix", prefix], {
    REDIS_URL: target.url,
    TEST_TOKEN: "x",
  });
  onTestFinished(async () => {
    serve.kill("SIGKILL");
    await serve.ended();
  });
  await serve.until(({ event }) => event === "serve.ready");
  const key = `${prefix}:notifications:digests`;
  await expect.poll(() => store.redis.hget(key, "daily")).not.toBeNull();
  // As if it had been there two days ago.
  const state = JSON.parse((await store.redis.hget(key, "daily")) ?? "");
  await store.redis.hset(key, "daily", JSON.stringify({ ...state, slotMs: state.slotMs - 2 * 86_400_000 }));
  await serve.until(({ event, kind }) => event === "notice.queued" && kind === "digest");
  await expect.poll(() => mails.length).toBe(1);
  expect(mails[0]).toMatchObject({ user: login.user, isSecure: true });
  expect(mails[0]?.raw).toMatch(/^Subject: No trouble: 1 not run yet of 1 policy, due /m);
  const look = (...args: string[]) => runHere([...args, "--prefix", prefix, "--redis-url", target.url], {});
  await expect
    .poll(async () => JSON.parse((await look("sinks", "--json")).out)[0])
    .toMatchObject({ sink: "mail", lastDigest: expect.stringMatching(/Z$/) });
  await expect
    .poll(async () => (await look("status")).out)
    .toMatch(/\ndigest daily, last 20.* UTC to mail, chat \(failed: .*422.*\)$/);
  expect((await look("status")).code).toBe(1);
});
