import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CommandIo } from "../../../src/cli/command-io.ts";
import { validateCommand } from "../../../src/cli/validate.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { fileWith, folderOf, variables } from "../config/policy-fixture.ts";

const valid = fileWith("  - { name: a, service: main, poll: { list: masks } }");
const bad = fileWith("  - { name: a, service: main, poll: { list: mask } }");

interface Options {
  readonly args?: string[];
  readonly colours?: boolean;
  readonly err?: (line: string) => void;
}

async function validate(files: Readonly<Record<string, string>>, options: Options = {}) {
  const folder = await folderOf(files);
  const lines: string[] = [];
  const io: CommandIo = {
    out: (line) => lines.push(line),
    err: options.err ?? (() => {}),
    colours: options.colours ?? false,
    settings: readSettings(variables),
    readInput: async () => "",
    signal: new AbortController().signal,
    exitCode: 0,
  };
  const paths = Object.keys(files).map((name) => join(folder, name));
  await validateCommand(io).parseAsync([...(options.args ?? []), ...paths], { from: "user" });
  return { text: lines.join("\n").replaceAll(`${folder}/`, ""), exitCode: io.exitCode };
}

describe("syncline validate", () => {
  it("says that all is well and how much there is", async () => {
    expect(await validate({ "a.yaml": valid })).toEqual({ text: "OK: 1 policy, 1 service in 1 file", exitCode: 0 });
    expect((await validate({ "a.yaml": valid, "b.yaml": valid })).text).toBe("OK: 2 policies, 2 services in 2 files");
  });

  it("shows each problem with its line and ends with 2", async () => {
    expect(await validate({ "a.yaml": bad, "b.yaml": valid })).toEqual({
      text: `a.yaml:5:45: poll.list: must be activities, conflictDetails, approvals, triggers, authActivities or masks
  5 |   - { name: a, service: main, poll: { list: mask } }
    |                                             ^^^^
  hint: did you mean masks?
1 problem in 2 files`,
      exitCode: 2,
    });
  });

  it("says that several paths are checked apart, as no folder is", async () => {
    const notes: string[] = [];
    await validate({ "a.yaml": valid, "b.yaml": valid }, { err: (line) => notes.push(line) });
    await validate({ "a.yaml": valid }, { err: (line) => notes.push(line) });
    expect(notes).toEqual([expect.stringContaining("each path was checked as a set of its own")]);
  });

  it("has colours on a terminal only", async () => {
    expect((await validate({ "a.yaml": bad }, { colours: true })).text).toContain("\u001b[31m");
    expect((await validate({ "a.yaml": bad })).text).not.toContain("\u001b");
  });

  it("prints one JSON object with --json", async () => {
    const { text, exitCode } = await validate({ "a.yaml": bad }, { args: ["--json"] });
    expect(exitCode).toBe(2);
    expect(JSON.parse(text)).toEqual({
      v: 1,
      ok: false,
      problems: [
        {
          file: "a.yaml",
          line: 5,
          column: 45,
          message: "poll.list: must be activities, conflictDetails, approvals, triggers, authActivities or masks",
          hint: "did you mean masks?",
        },
      ],
      warnings: [],
    });
    expect(JSON.parse((await validate({ "a.yaml": valid }, { args: ["--json"] })).text)).toEqual({
      v: 1,
      ok: true,
      problems: [],
      warnings: [],
    });
  });

  it("warns of a catch-up that starts one slot, or skips all but one, and ends with 0", async () => {
    const policy = (name: string, rest: string) =>
      `  - { name: ${name}, service: main, repository: HR, ${rest}, catchUp: all }`;
    const text = fileWith(
      [
        policy("nightly", 'run: { syncJobs: [1] }, schedule: { cron: "30 2 * * *" }'),
        policy("often", "run: { syncJobs: [1] }, schedule: { every: 5m }"),
        policy("at-once", "run: { syncJobs: [1] }, schedule: { every: 5m }, catchUpWindow: 1h"),
        policy("in-turn", "run: { syncJobs: [1] }, schedule: { every: 5m }, catchUpWindow: 1h, overlap: queue"),
        policy("hourly", 'run: { syncJobs: [1] }, schedule: { cron: "0,10 * * * *" }, overlap: queue'),
        policy("looks", "poll: { list: masks }, schedule: { every: 5m }, catchUpWindow: 1h"),
        policy("by-hand", "run: { syncJobs: [1] }"),
      ].join("\n"),
    );
    const { text: said, exitCode } = await validate({ "a.yaml": text });
    expect(exitCode).toBe(0);
    expect(said.split("\n").filter((line) => !line.startsWith("  hint: "))).toEqual([
      "a.yaml:5: warning: nightly: catchUp: all starts the newest late slot only, since no two lie inside the 1h in which a late slot starts",
      "a.yaml:5: warning: nightly: its runs (and those of 5 more) settle only when the activities grew and then stayed quiet for 30s, since services.main.mapping.activity does not say id, syncJobId, finished",
      "a.yaml:6: warning: often: catchUp: all starts the newest late slot only, since no two lie inside the 5m in which a late slot starts",
      "a.yaml:7: warning: at-once: catchUp: all starts late slots at the same time, and overlap: skip then skips all but one of them",
      "OK, 4 warnings: 7 policies, 1 service in 1 file",
    ]);
    const { warnings, ok } = JSON.parse((await validate({ "a.yaml": text }, { args: ["--json"] })).text);
    expect(ok).toBe(true);
    expect(warnings).toHaveLength(4);
    expect(warnings[3]).toMatchObject({ file: "a.yaml", line: 7, policy: "at-once" });
  });

  it("warns of runs of which nothing tells whether they succeeded", async () => {
    const policy = "  - { name: a, service: main, repository: HR, run: { syncJobs: [1] } }";
    const text = (facts: string) =>
      fileWith(policy).replace("main: {", `main: { mapping: { activity: { id: item.a, syncJobId: item.b${facts} } },`);
    expect((await validate({ "a.yaml": text(", finished: item.c") })).text).toContain(
      "its runs count as succeeded when they finish, since services.main.mapping.activity does not say succeeded",
    );
    expect((await validate({ "a.yaml": text(", finished: item.c, succeeded: item.d") })).text).toMatch(/^OK: /);
  });

  it("knows that a slot may be 30 s late, also where its interval is shorter", async () => {
    const text = (every: string) =>
      fileWith(`  - { name: a, service: main, poll: { list: masks }, schedule: { every: ${every} }, catchUp: all }`);
    expect((await validate({ "a.yaml": text("10s") })).text).not.toContain("catchUp: all");
    expect((await validate({ "a.yaml": text("30s") })).text).toContain(
      "no two lie inside the 30s in which a late slot starts",
    );
  });

  it("names only what a mapping really lacks", async () => {
    const policies = "  - { name: a, service: main, repository: HR, run: { syncJobs: [1] } }";
    const text = fileWith(policies).replace(/main: \{/, "main: { mapping: { activity: { syncJobId: item.job } },");
    const { text: said } = await validate({ "a.yaml": text });
    expect(said).toContain("since services.main.mapping.activity does not say id, finished\n");
    expect(said).not.toContain("syncJobId");
  });

  it("warns of one time that is over, or that the clocks leave out", async () => {
    const policy = (name: string, schedule: string) =>
      `  - { name: ${name}, service: main, activate: { syncJobs: [1] }, schedule: { ${schedule}, timezone: Europe/Vienna } }`;
    const text = fileWith(
      [
        policy("over", "once: 2020-01-01T06:00"),
        policy("never", "once: 2027-03-28T02:30, dst: { gap: skip }"),
        policy("coming", "once: 2999-01-01T06:00"),
      ].join("\n"),
    );
    const { text: said, exitCode } = await validate({ "a.yaml": text });
    expect(exitCode).toBe(0);
    expect(said.split("\n").filter((line) => !line.startsWith("  hint: "))).toEqual([
      "a.yaml:5: warning: over: schedule.once is over: 2020-01-01T06:00:00 in Europe/Vienna was 2020-01-01T05:00:00.000Z; a policy that is new now never starts by it",
      "a.yaml:6: warning: never: schedule.once is never due: clocks in Europe/Vienna leave 2027-03-28T02:30:00 out, and dst.gap is skip",
      "OK, 2 warnings: 3 policies, 1 service in 1 file",
    ]);
  });
});
