import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import type { PolicySet } from "../../../src/config/policy-set.ts";
import { ruleWords } from "../../../src/config/schema/notify.ts";
import { noticeKinds } from "../../../src/model/notice.ts";
import { checks, fileWith, folderOf, loadText, problemsOf, variables } from "./policy-fixture.ts";

const sinks = "sinks: { ops: { file: { path: x } }, boss: { file: { path: y } } }\n";
const file = (keys: string, more = "") =>
  `${fileWith(`  - { name: a, service: main, run: { syncJobs: [1] }${keys} }`)}${sinks}${more}`;

async function setOf(text: string): Promise<PolicySet> {
  const loaded = await loadText(text);
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems));
  return loaded.set;
}

describe("notify", () => {
  it("means every change for a bare name, and what is said for a list", async () => {
    const { policies } = await setOf(
      file(", notify: [ops, { sink: boss, on: [{ failure: 3 }, recovery, { conflicts: 10 }, stale, token-expiring] }]"),
    );
    const change = {
      every: false,
      change: true,
      blocked: true,
      unknown: true,
      missed: true,
      drift: true,
      unusual: true,
      recovery: true,
    };
    expect(policies[0]?.notify).toEqual([
      { sink: "ops", ...change, failuresInRow: 1, conflicts: "judged", stale: false, late: true, tokenExpiring: false },
      {
        ...{
          sink: "boss",
          every: false,
          change: false,
          failuresInRow: 3,
          conflicts: 10,
          blocked: false,
          unknown: false,
          missed: false,
          drift: false,
          unusual: false,
        },
        ...{ recovery: true, stale: true, late: false, tokenExpiring: true },
      },
    ]);
  });

  it("is the policy's own or that of defaults; without both there is no notice", async () => {
    const defaults = "defaults: { notify: [{ sink: boss, on: [every] }] }\n";
    expect((await setOf(file("", defaults))).policies[0]?.notify).toMatchObject([{ sink: "boss", every: true }]);
    expect((await setOf(file(", notify: [ops]", defaults))).policies[0]?.notify).toMatchObject([{ sink: "ops" }]);
    expect((await setOf(file(", notify: []", defaults))).policies[0]?.notify).toBeUndefined();
    expect((await setOf(file(""))).policies[0]?.notify).toBeUndefined();
  });

  it("leads notices by label, from one list under defaults", async () => {
    const defaults =
      "defaults: { owner: Ana, notify: [{ sink: ops, match: { team: hr } }, { sink: boss, match: { team: it } }] }\n";
    const [hr] = (
      await setOf(
        file(", labels: { team: hr }, owner: 'Bo, 4711'", `${defaults}`.replace("boss, match: { team: it }", "boss")),
      )
    ).policies;
    expect([hr?.owner, hr?.notify?.map(({ sink }) => sink)]).toEqual(["Bo, 4711", ["ops", "boss"]]);
    const only = "defaults: { owner: Ana, notify: [{ sink: ops, match: { team: hr, stage: prod } }] }\n";
    const two = `  - { name: b, service: main, run: { syncJobs: [2] }, labels: { stage: prod, team: hr } }`;
    const { policies } = await setOf(file(`, labels: { team: hr } }\n${two.slice(0, -2)}`, only));
    expect(policies.map(({ name, owner, notify }) => [name, owner, notify?.length])).toEqual([
      ["a", "Ana", undefined],
      ["b", "Ana", 1],
    ]);
    const slip = await problemsOf(file(", labels: { team: hr }", defaults));
    expect(slip).toEqual([expect.stringContaining("no policy has the label team=it")]);
  });

  it("lets a number say more closely what change means", async () => {
    const { policies } = await setOf(file(", notify: [{ sink: ops, on: [change, { failure: 2 }] }]"));
    expect(policies[0]?.notify).toMatchObject([{ failuresInRow: 2, conflicts: "judged", missed: true }]);
  });

  it("takes the smallest of several numbers, wherever it stands", async () => {
    const rules = "{ failure: 5 }, { conflicts: 20 }, { failure: 3 }, { conflicts: 10 }, { failure: 4 }";
    const { policies } = await setOf(file(`, notify: [{ sink: ops, on: [${rules}] }]`));
    expect(policies[0]?.notify).toMatchObject([{ failuresInRow: 3, conflicts: 10 }]);
  });

  it.each([
    [", notify: [opps]", '5:64 there is no sink "opps"'],
    [", notify: [{ sink: opps }]", '5:72 there is no sink "opps"'],
    [", notify: [ops, { sink: ops, on: [every] }]", '5:77 the sink "ops" stands in the list twice'],
    [", notify: [{ sink: ops, on: [] }]", "5:77 notify.0.on: needs at least 1"],
    [
      ", notify: [{ sink: ops, on: [failures] }]",
      "5:82 notify.0.on.0: a rule is every, change, failure, recovery, conflicts, blocked, unknown, missed, drift, unusual, stale, late, token-expiring, { failure: 3 } or { conflicts: 10 }",
    ],
    [", heartbeat: { url: 'ftp://x' }", "5:73 heartbeat.url: must start with https:// or http://"],
    [", heartbeat: { url: 'https://u:p@x' }", "5:73 heartbeat.url: must not hold credentials"],
  ])("%s is refused where it stands", async (keys, problem) => {
    expect(await problemsOf(file(keys))).toEqual([problem]);
  });

  it("finds a sink of another file, and says which ones there are", async () => {
    const folder = await folderOf({
      "a.yaml": fileWith("  - { name: a, service: main, run: { syncJobs: [1] }, notify: [ops, bos] }"),
      "b.yaml": `apiVersion: syncline/v1\n${sinks}`,
    });
    const loaded = await loadPolicies(folder, { variables, checks });
    expect(loaded.ok ? [] : loaded.problems.map(({ message, hint }) => [message, hint])).toEqual([
      ['there is no sink "bos"', "did you mean boss?"],
    ]);
  });
});

describe("docs/notifications.md", () => {
  it("shows examples that are right, and names every rule and every kind of message", async () => {
    const page = await readFile(join(import.meta.dirname, "../../../docs/notifications.md"), "utf8");
    const examples = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = ""]) => text);
    expect(examples.length).toBeGreaterThan(1);
    const anyPolicy = fileWith("  - { name: a, service: main, run: { syncJobs: [1] } }");
    for (const text of examples)
      expect(await problemsOf(text.startsWith("apiVersion") ? text : anyPolicy + text)).toEqual([]);
    const missing = [...ruleWords, ...noticeKinds].filter((word) => !page.includes(`\`${word}\``));
    expect(missing).toEqual([]);
  });
});

describe("notifications", () => {
  it("has defaults", async () => {
    expect((await setOf(file(""))).notifications).toEqual({ groupWaitMs: 30_000, muteTiming: undefined });
  });

  it("takes mute timing in the zone of defaults, unless it names one", async () => {
    const hours = (more: string) =>
      `notifications: { groupWait: 1m, muteTiming: { from: "22:00", to: "06:30"${more} } }\n`;
    const defaults = "defaults: { timezone: Europe/Vienna }\n";
    const muteTiming = { fromMinute: 1_320, toMinute: 390, timezone: "Europe/Vienna", except: [] };
    expect((await setOf(file("", defaults + hours("")))).notifications).toEqual({ groupWaitMs: 60_000, muteTiming });
    const own = ", timezone: Asia/Tokyo, except: [service-down]";
    expect((await setOf(file("", defaults + hours(own)))).notifications.muteTiming).toEqual({
      ...muteTiming,
      timezone: "Asia/Tokyo",
      except: ["service-down"],
    });
  });

  it.each([
    [
      'notifications: { muteTiming: { from: "22:00", to: "22:00" } }',
      "notifications.muteTiming: from and to are the same time",
    ],
    [
      'notifications: { muteTiming: { from: "24:00", to: "06:00" } }',
      'notifications.muteTiming.from: a time of day is written "22:00"',
    ],
    [
      "notifications: { muteTiming: { from: 2200, to: '06:00' } }",
      'notifications.muteTiming.from: a time of day is text, such as "22:00"',
    ],
    [
      'notifications: { link: "https://x.example/{policies}" }',
      "notifications.link: {policies} is no place of a link: there are {policy}, {service}, {kind}, {atMs}",
    ],
    [
      'notifications: { link: "https://x.example/{policy" }',
      "notifications.link: a link has its places in pairs of braces, and no blanks",
    ],
    [
      'notifications: { link: "{service}.example.com/" }',
      "notifications.link: a link is a URL that begins with https:// or http://",
    ],
  ])("%s is refused", async (text, problem) => {
    const problems = await problemsOf(file("", `${text}\n`));
    expect(problems.map((one) => one.replace(/^\S+ /, ""))).toEqual([problem]);
  });

  it("has digests at a time of day in a zone, for all policies or a label", async () => {
    const labelled = file(
      ", labels: { team: hr, stage: prod }",
      `defaults: { timezone: Europe/Vienna }
notifications:
  digests:
    all: { at: "07:05", on: "1-5", to: [ops, boss, ops] }
    hr: { at: "18:00", timezone: UTC, to: [boss], label: { team: hr, stage: prod }, by: team }
`,
    );
    const schedule = { kind: "cron", dst: { gap: "next", overlap: "first" }, spreadMs: 0 };
    expect((await setOf(labelled)).notifications.digests).toEqual([
      {
        ...{ name: "all", to: ["ops", "boss"], label: "", timezone: "Europe/Vienna" },
        schedule: { ...schedule, expressions: ["5 7 * * 1-5"], timezone: "Europe/Vienna" },
      },
      {
        ...{ name: "hr", to: ["boss"], label: "stage=prod,team=hr", by: "team", timezone: "UTC" },
        schedule: { ...schedule, expressions: ["0 18 * * *"], timezone: "UTC" },
      },
    ]);
  });

  it.each([
    ['at: "7:00", to: [ops]', 'a time of day is written "22:00"'],
    ['at: "07:00", on: "1 5", to: [ops]', "weekdays are written as in cron"],
    ['at: "07:00", to: [opps]', 'there is no sink "opps"'],
    ['at: "07:00", to: []', "name at least one sink"],
    ['at: "07:00", to: [ops], label: { team: hrr }', "no policy has the label team=hrr"],
    ['at: "07:00", to: [ops], by: taem', 'no policy has a label "taem"'],
  ])("refuses a digest with %s", async (digest, message) => {
    const problems = await problemsOf(
      file(", labels: { team: hr }", `notifications: { digests: { d: { ${digest} } } }\n`),
    );
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
  });

  it("stands in one file only", async () => {
    const folder = await folderOf({
      "a.yaml": file("", "notifications: { groupWait: 1m }\n"),
      "b.yaml": "apiVersion: syncline/v1\nnotifications: { groupWait: 2m }\n",
    });
    const loaded = await loadPolicies(folder, { variables, checks });
    expect(loaded.ok ? [] : loaded.problems.map(({ message }) => message)).toEqual([
      expect.stringMatching(/^notifications is there twice: first in .*a\.yaml$/),
    ]);
  });
});
