// The audit record: every command that changes something for others leaves who, what, and what
// stood before and after.
import { hostname, userInfo } from "node:os";
import { expect, it } from "vitest";
import { commandFixture } from "../support/command-fixture.ts";

const fixture = commandFixture(
  `  - { name: nightly, service: main, repository: HR, run: { syncJobs: [1] } }
  - { name: in-delhi, service: main, repository: HR, schedule: { cron: "0 4 * * *", timezone: Asia/Kolkata }, run: { syncJobs: [2] } }
  - { name: names, service: main, repository: HR, apply: { syncJobs: { 4: { name: Contracts } } } }`,
);

it("records each change by hand with who, what, before and after; no-ops are not", async () => {
  const prefix = `${fixture.redis.prefix}-changes`;
  const config = ["--config", fixture.file()];
  const command = async (...args: string[]) => {
    const { code, err } = await fixture.command(prefix, ...args);
    expect({ args, code, err: code === 0 ? "" : err }).toEqual({ args, code: 0, err: "" });
  };
  const here = async (...args: string[]) => {
    const { code, err } = await fixture.command(prefix, ...args);
    // No process is alive here, and resume says so.
    const rest = err.replace(/^no (scheduler|worker) is alive.*\n?/gm, "");
    expect({ args, code, rest }).toEqual({ args, code: 0, rest: "" });
  };
  await here("pause", "nightly", "--reason", "first", ...config);
  await here("pause", "nightly", "--reason", "second", ...config);
  await here("resume", "nightly", ...config);
  await here("resume", "nightly", ...config);
  await command("run", "nightly", ...config, "--reason", "a second try");
  await command("apply", "names", ...config, "--yes", "--reason", "ticket 7");
  await command("apply", "names", ...config, "--yes");
  await command("delete", ...config, "--repository", "HR", "--sync-job", "3", "--name", "Board 3");
  await command(
    "delete",
    ...config,
    "--repository",
    "HR",
    "--sync-job",
    "3",
    "--name",
    "Board 3",
    "--yes",
    "--reason",
    "retired",
  );
  await command("api", "EnableSyncJobById", "--reason", "by phone", ...config, "--key", "5", "--yes");
  await command("api", "GetSyncJobById", ...config, "--key", "5");

  const changes = JSON.parse((await fixture.command(prefix, "changes", "--json")).out);
  const actor = `${userInfo().username}@${hostname()}`;
  expect(changes.every((change: { actor: string }) => change.actor === actor)).toBe(true);
  expect(changes.toReversed()).toMatchObject([
    { what: "pause", subject: "policy nightly", reason: "first", before: [], after: { note: "first" } },
    { what: "pause", reason: "second", before: [{ note: "first" }], after: { note: "second" } },
    { what: "resume", subject: "policy nightly", reason: null, before: [{ note: "second" }] },
    {
      what: "run",
      subject: "policy nightly",
      reason: "a second try",
      after: { tasks: [expect.stringMatching(/^nightly__run__1__m/)] },
    },
    {
      what: "apply",
      reason: "ticket 7",
      subject: "sync job 4 of main, HR (policy names)",
      before: { name: expect.stringMatching(/^\w+ 4$/) },
      after: { name: "Contracts" },
    },
    {
      what: "delete",
      reason: "retired",
      subject: "sync job 3 of main, HR",
      before: { name: "Board 3" },
      after: { task: expect.stringMatching(/^by-hand\.delete__delete__3__m/) },
    },
    { what: "api", reason: "by phone", subject: "EnableSyncJobById 5 of main", before: null, after: { exitCode: 0 } },
  ]);
});

it("shows what concerns some policies, also by their service or as tasks", async () => {
  const prefix = `${fixture.redis.prefix}-of-some`;
  const config = ["--config", fixture.file()];
  const subjects = [["nightly"], ["names"], ["--service", "main"], ["--all"]];
  for (const subject of subjects) await fixture.command(prefix, "pause", ...subject, "--reason", "x", ...config);
  const run = async (name: string) =>
    JSON.parse((await fixture.command(prefix, "run", name, "--json", ...config)).out).tasks[0];
  const task = await run("nightly");
  await fixture.command(prefix, "cancel", task, "--yes", ...config);
  const changes = (...args: string[]) => fixture.command(prefix, "changes", ...args, ...config);
  const shown = JSON.parse((await changes("nightly", "--json")).out).map(({ subject }: { subject: string }) => subject);
  expect(shown).toEqual([`task ${task}`, "policy nightly", "all policies", "service main", "policy nightly"]);
  expect((await changes("nightly")).out).toMatch(/ cancel +nightly: sync job 1, by hand \d\d:\d\d(:\d\d)? UTC\n/);
  expect((await changes("names")).out.split("\n")).toHaveLength(4);
  await fixture.command(prefix, "cancel", await run("in-delhi"), "--yes", ...config);
  const ofDelhi = / cancel +in-delhi: sync job 2, by hand \d\d:\d\d(:\d\d)? GMT\+5:30\n/;
  expect([(await changes("in-delhi")).out, (await changes()).out]).toEqual([
    expect.stringMatching(ofDelhi),
    expect.stringMatching(ofDelhi),
  ]);
  await fixture.command(prefix, "pause", "in-delhi", "--reason", "y", ...config);
  expect((await changes()).out).toMatch(/Z +\d\d:\d\d(:\d\d)? GMT\+5:30 +\S+ +pause +policy in-delhi +y/);
  expect(await changes("nigthly")).toMatchObject({ code: 2, err: expect.stringContaining("did you mean nightly?") });
});

it("records what api sent, also when the service refused it, and nothing else", async () => {
  const prefix = `${fixture.redis.prefix}-refused`;
  const api = (...args: string[]) => fixture.command(prefix, "api", ...args, "--config", fixture.file());
  const refused = await api("RunSyncJob", "--key", "999", "--yes", "--reason", "try");
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("kind: bad-request")]);
  expect((await api("RunSyncJob", "--key", "1")).code).toBe(2);
  expect((await api("DeleteSyncJobById", "--key", "1", "--name", "another", "--yes")).code).toBe(1);
  const changes = JSON.parse((await fixture.command(prefix, "changes", "--json")).out);
  expect(changes).toMatchObject([{ subject: "RunSyncJob 999 of main", reason: "try", after: { exitCode: 1 } }]);
});
