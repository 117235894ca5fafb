import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { CommandIo } from "../../../src/cli/command-io.ts";
import { validateCommand } from "../../../src/cli/validate.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { checks, fileWith, folderOf, variables } from "../config/policy-fixture.ts";

const good = fileWith("  - { name: a, service: main, poll: { list: masks } }");
const bad = fileWith("  - { name: a, service: main, poll: { list: mask } }");

async function validate(files: Readonly<Record<string, string>>, options: { args?: string[]; colours?: boolean } = {}) {
  const folder = await folderOf(files);
  const lines: string[] = [];
  const io: CommandIo = {
    out: (line) => lines.push(line),
    err: () => {},
    colours: options.colours ?? false,
    settings: readSettings(variables),
    readInput: async () => "",
    signal: new AbortController().signal,
    exitCode: 0,
  };
  const paths = Object.keys(files).map((name) => join(folder, name));
  await validateCommand(io, checks).parseAsync([...(options.args ?? []), ...paths], { from: "user" });
  return { text: lines.join("\n").replaceAll(`${folder}/`, ""), exitCode: io.exitCode };
}

describe("syncline validate", () => {
  it("says that all is well and how much there is", async () => {
    expect(await validate({ "a.yaml": good })).toEqual({ text: "OK: 1 policy, 1 service in 1 file", exitCode: 0 });
    expect((await validate({ "a.yaml": good, "b.yaml": good })).text).toBe("OK: 2 policies, 2 services in 2 files");
  });

  it("shows each problem with its line and ends with 2", async () => {
    expect(await validate({ "a.yaml": bad, "b.yaml": good })).toEqual({
      text: `a.yaml:5:45: poll.list: must be approvals, triggers, authActivities, activities, conflictDetails or masks
  5 |   - { name: a, service: main, poll: { list: mask } }
    |                                             ^^^^
  hint: did you mean masks?
1 problem in 2 files`,
      exitCode: 2,
    });
  });

  it("has colours on a terminal only", async () => {
    expect((await validate({ "a.yaml": bad }, { colours: true })).text).toContain("\u001b[31m");
    expect((await validate({ "a.yaml": bad })).text).not.toContain("\u001b");
  });

  it("prints one JSON object with --json", async () => {
    const { text, exitCode } = await validate({ "a.yaml": bad }, { args: ["--json"] });
    expect(exitCode).toBe(2);
    expect(JSON.parse(text)).toEqual({
      ok: false,
      problems: [
        {
          file: "a.yaml",
          line: 5,
          column: 45,
          message: "poll.list: must be approvals, triggers, authActivities, activities, conflictDetails or masks",
          hint: "did you mean masks?",
        },
      ],
    });
    expect(JSON.parse((await validate({ "a.yaml": good }, { args: ["--json"] })).text)).toEqual({
      ok: true,
      problems: [],
    });
  });
});
