import { describe, expect, it } from "vitest";
import { fileWith, loadText, problemsOf } from "./policy-fixture.ts";

/** A policy with these keys in flow form, from line 5. */
const policy = (keys: string) => fileWith(`  - { name: a, service: main, ${keys} }`);

const service = (keys: string) => `apiVersion: syncline/v1\nservices:\n  main: { ${keys} }\n`;

const messagesOf = async (text: string) => (await problemsOf(text)).map((line) => line.replace(/^\S+ /, ""));

describe("a policy", () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ["without an action", "repository: HR", "needs exactly one of run, activate, poll, apply or delete"],
    ["with two actions", "poll: { list: masks }, activate: { syncJobs: [1] }", "activate and poll exclude each other"],
    [
      "with a label that a shell would cut",
      "labels: { team: h r }, run: { syncJobs: [1] }",
      "labels.team: a label's value has 1 to 63 letters, digits, hyphens, dots and underscores, and begins with a letter or digit",
    ],
    ["with a number as label", "labels: { tier: 1 }, run: { syncJobs: [1] }", "labels.tier: a label's value is text"],
    [
      "with too many labels",
      `labels: { ${Array.from({ length: 21 }, (_, index) => `l${index}: x`).join(", ")} }, run: { syncJobs: [1] }`,
      "labels: at most 20 labels",
    ],
    ["with an empty run", "run: {}", "needs exactly one of syncJobs or fromMasks"],
    ["with both kinds of run", "run: { syncJobs: [1], fromMasks: {} }", "syncJobs and fromMasks exclude each other"],
    ["with a sync job twice", "activate: { syncJobs: [7, 8, 7] }", "sync job 7 stands in the list twice"],
    ["without a sync job", "run: { syncJobs: [] }", "run.syncJobs: name at least one sync job"],
    ["with a negative id", "run: { syncJobs: [-1] }", "run.syncJobs.0: an id is a whole number, 0 or more"],
    ["with a broken id", "run: { syncJobs: [1.5] }", "run.syncJobs.0: an id is a whole number, 0 or more"],
    ["that polls and follows", "poll: { list: masks }, follow: {}", "there is nothing to follow after poll"],
    [
      "that activates and follows",
      "activate: { syncJobs: [1] }, follow: {}",
      "there is nothing to follow after activate",
    ],
    [
      "that counts conflicts without following",
      "run: { syncJobs: [1] }, follow: { until: accepted, conflictsMax: 0 }",
      "follow.conflictsMax needs following: until is accepted",
    ],
    ["with an empty schedule", "poll: { list: masks }, schedule: {}", "needs exactly one of cron, every or once"],
    [
      "with both schedules",
      'poll: { list: masks }, schedule: { cron: "* * * * *", every: 1m }',
      "cron and every exclude each other",
    ],
    [
      "with a wide spread",
      "poll: { list: masks }, schedule: { every: 1m, spread: 61s }",
      "schedule.spread is longer than the interval (1m)",
    ],
    [
      "with an interval in a zone",
      "poll: { list: masks }, schedule: { every: 1m, timezone: UTC }",
      "schedule.timezone goes with cron and once only",
    ],
    [
      "with an interval and DST",
      "poll: { list: masks }, schedule: { every: 1m, dst: {} }",
      "schedule.dst goes with cron and once only",
    ],
    [
      "with a short interval",
      "poll: { list: masks }, schedule: { every: 999ms }",
      "schedule.every: must be between 1s and 366d",
    ],
    [
      "that deletes and follows",
      "delete: { syncJob: 1, name: A }, follow: {}",
      "there is nothing to follow after delete",
    ],
    [
      "that deletes again and again",
      'delete: { syncJob: 1, name: A }, schedule: { cron: "* * * * *" }',
      "delete and schedule.cron exclude each other",
    ],
    [
      "that deletes at an interval",
      "delete: { syncJob: 1, name: A }, schedule: { every: 1d }",
      "delete and schedule.every exclude each other",
    ],
    [
      "that deletes beside a run",
      "delete: { syncJob: 1, name: A }, overlap: allow",
      "overlap: allow does not go with delete",
    ],
    ["that deletes without a guard", "delete: { syncJob: 1 }", "delete.name: is missing"],
    [
      "with a cron and one time",
      'poll: { list: masks }, schedule: { cron: "* * * * *", once: 2026-12-01T06:00 }',
      "cron and once exclude each other",
    ],
    [
      "with one time and an offset",
      "poll: { list: masks }, schedule: { once: 2026-12-01T06:00Z }",
      "schedule.once: a local date and time such as 2026-12-01T06:00, without an offset: say the zone with schedule.timezone",
    ],
    [
      "with one time on a date that does not exist",
      "poll: { list: masks }, schedule: { once: 2026-02-30T06:00 }",
      "schedule.once: a local date and time such as 2026-12-01T06:00, without an offset: say the zone with schedule.timezone",
    ],
    [
      "with a zone that does not exist",
      'poll: { list: masks }, schedule: { cron: "* * * * *", timezone: Europe/Viena }',
      "schedule.timezone: this is no IANA time zone, such as Europe/Vienna or UTC",
    ],
    [
      "with wrong cron in a list",
      'poll: { list: masks }, schedule: { cron: ["* * * * *", "* *"] }',
      "schedule.cron: five or six fields are needed",
    ],
    [
      "with a number as cron",
      "poll: { list: masks }, schedule: { cron: 5 }",
      "schedule.cron: a cron expression in quotes, or a list of 1 to 20 of them",
    ],
    [
      "with wrong cron in a blackout",
      'poll: { list: masks }, blackout: [{ cron: "* *", for: 1h }]',
      "blackout.cron: five or six fields are needed",
    ],
    [
      "with a blackout that lasts too long",
      'poll: { list: masks }, blackout: [{ cron: "* * * * *", for: 32d }]',
      "blackout.0.for: must be between 1m and 31d",
    ],
    [
      "with a cron expression as a blackout",
      'poll: { list: masks }, blackout: ["0 22 * * 5"]',
      'blackout.0: a window is { cron: "0 22 * * 5", for: 8h }, or the name of a calendar',
    ],
    [
      "with a holiday that does not exist",
      "poll: { list: masks }, holidays: [2026-12-25, 2027-02-29]",
      "holidays.1: a holiday is a date that exists, such as 2026-12-25, or the name of a calendar",
    ],
    [
      "with a number as holiday",
      "poll: { list: masks }, holidays: [20261225]",
      "holidays.0: a holiday is a date that exists, such as 2026-12-25, or the name of a calendar",
    ],
    [
      "with an empty quarantine",
      "run: { syncJobs: [1] }, quarantine: null",
      "quarantine: is empty: fill it in, or remove the key",
    ],
    [
      "with an empty item of notify",
      "run: { syncJobs: [1] }, notify: [null]",
      "notify.0: is empty: fill it in, or remove the key",
    ],
    ["with wrong CEL", "poll: { list: masks, expect: oops }", "poll.expect: unexpected oops"],
    [
      "with a list that does not exist",
      "poll: { list: mask }",
      "poll.list: must be activities, conflictDetails, approvals, triggers, authActivities or masks",
    ],
    [
      "that would catch up too much",
      "run: { syncJobs: [1] }, schedule: { every: 1s }, catchUp: all, catchUpWindow: 101s",
      "catchUp: all could start 101 slots at once; 100 is the most",
    ],
    ["of an unknown service", "service: other, poll: { list: masks }", '"service" stands here twice: first in line 5'],
  ];

  it.each(cases)("%s is refused", async (_, keys, message) => {
    expect(await messagesOf(policy(keys))).toContain(message);
  });

  it("may have 1,000 sync jobs and not 1,001", async () => {
    const ids = (count: number) => Array.from({ length: count }, (_, index) => index).join(", ");
    expect(await messagesOf(policy(`run: { syncJobs: [${ids(1_000)}] }`))).toEqual([]);
    expect(await messagesOf(policy(`run: { syncJobs: [${ids(1_001)}] }`))).toEqual([
      "run.syncJobs: at most 1000 sync jobs a policy: split it in two",
    ]);
  });

  it("may have 50 blackout windows and 400 holidays, and not one more of each", async () => {
    const list = (count: number, item: string) => Array.from({ length: count }, () => item).join(", ");
    const windows = (count: number) => `blackout: [${list(count, '{ cron: "0 1 * * *", for: 1h }')}]`;
    const holidays = (count: number) => `holidays: [${list(count, "2026-12-25")}]`;
    const poll = "poll: { list: masks }";
    expect(await messagesOf(policy(`${poll}, ${windows(50)}, ${holidays(400)}`))).toEqual([]);
    expect(await messagesOf(policy(`${poll}, ${windows(51)}`))).toHaveLength(1);
    expect(await messagesOf(policy(`${poll}, ${holidays(401)}`))).toHaveLength(1);
  });

  it("may stand without a schedule, follow quiet and spell out the DST rules", async () => {
    const rules = "dst: { gap: skip, overlap: both }";
    expect(
      await messagesOf(policy(`run: { syncJobs: [1] }, follow: { until: quiet, conflictsMax: 3 }, onUnknown: give-up`)),
    ).toEqual([]);
    expect(await messagesOf(policy(`run: { syncJobs: [1] }, schedule: { cron: "* * * * * *", ${rules} }`))).toEqual([]);
  });

  it.each(["12", '"12"', "Contracts", "-a", "a b", `"${"a".repeat(64)}"`, '""'])(
    "is refused the name %s",
    async (name) => {
      const problems = await problemsOf(fileWith(`  - { name: ${name}, service: main, poll: { list: masks } }`));
      expect(problems).toHaveLength(1);
      expect(problems[0]).toMatch(/^5:13 name: a name is /);
    },
  );

  it.each(["a", "7a", "contracts-nightly", "a".repeat(63)])("may be called %s", async (name) => {
    expect(await problemsOf(fileWith(`  - { name: ${name}, service: main, poll: { list: masks } }`))).toEqual([]);
  });
});

describe("defaults", () => {
  it("with a wrong blackout are refused at their own place", async () => {
    const text = `${policy("poll: { list: masks }")}defaults: { blackout: [{ cron: "* *", for: 1h }] }\n`;
    expect(await problemsOf(text)).toEqual(["6:32 blackout.cron: five or six fields are needed"]);
  });
});

describe("a service", () => {
  const url = "baseUrl: https://a.example";
  const cases: readonly (readonly [string, string, string])[] = [
    ["without a token", url, "services.main.token: is missing"],
    ["with an empty token", `${url}, token: {}`, "needs exactly one of file, env or oauth2"],
    ["with two tokens", `${url}, token: { env: TOKEN, file: x }`, "file and env exclude each other"],
    [
      "with the token itself",
      `${url}, token: abc`,
      "services.main.token: a token never stands in a policy file: write { file: PATH } or { env: NAME }",
    ],
    [
      "with the variable's value",
      `${url}, token: { env: "\${TOKEN}" }`,
      "services.main.token.env: write the name of the variable alone, such as SYNC_TOKEN",
    ],
    [
      "without http",
      "baseUrl: ftp://a.example, token: { env: TOKEN }",
      "services.main.baseUrl: must start with https:// or http://",
    ],
    [
      "without a URL",
      "baseUrl: a.example, token: { env: TOKEN }",
      "services.main.baseUrl: this is no URL, such as https://sync.example.com",
    ],
    [
      "with credentials",
      "baseUrl: https://u:p@a.example, token: { env: TOKEN }",
      "services.main.baseUrl: must not hold credentials: use token",
    ],
    [
      "with a query",
      'baseUrl: "https://a.example?x=1", token: { env: TOKEN }',
      "services.main.baseUrl: must not have a query or a fragment",
    ],
    [
      "with wrong CEL",
      `${url}, token: { env: TOKEN }, mapping: { mask: { id: oops } }`,
      "services.main.mapping.mask.id: unexpected oops",
    ],
    [
      "with too many requests",
      `${url}, token: { env: TOKEN }, limits: { concurrency: 101 }`,
      "services.main.limits.concurrency: must be at most 100",
    ],
  ];

  it.each(cases)("%s is refused", async (_, keys, message) => {
    expect(await messagesOf(service(keys))).toEqual([message]);
  });

  it("never shows the secret that its file holds", async () => {
    for (const keys of [
      `${url}, token: s3cr3t`,
      `${url}, token: { env: "s3cr3t.x" }`,
      `${url}, token: { value: s3cr3t }`,
      `${url}, token: "s3cr3t`,
      "baseUrl: https://u:s3cr3t@a.example, token: { env: TOKEN }",
    ]) {
      const loaded = await loadText(service(keys));
      expect(loaded.ok).toBe(false);
      expect(JSON.stringify(loaded)).not.toContain("s3cr3t");
    }
  });
});
