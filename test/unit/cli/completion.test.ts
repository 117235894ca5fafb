// The scripts of `syncline completion`, of commands made up here; bash runs its own.
import { execFileSync } from "node:child_process";
import { Argument, Command, Option } from "commander";
import { describe, expect, it } from "vitest";
import { completionCommand } from "../../../src/cli/completion.ts";
import { readSettings } from "../../../src/config/settings.ts";

const commands = [
  new Command("run").description("run a policy").argument("<policy>").option("-w, --wait", "wait for it's end"),
  new Command("failed").addCommand(
    new Command("list").addOption(new Option("--form <form>", "how").choices(["table", "json"])),
  ),
  new Command("feed").addArgument(new Argument("<list>").choices(["activities", "approvals"])),
];

async function script(shell: string): Promise<string> {
  const out: string[] = [];
  const io = {
    out: (line: string) => out.push(line),
    err: () => {},
    colours: false,
    settings: readSettings({}),
    readInput: async () => "",
    signal: new AbortController().signal,
    exitCode: 0 as const,
  };
  await completionCommand(io, async () => commands).parseAsync([shell], { from: "user" });
  return out.join("\n");
}

describe("syncline completion", () => {
  it.each([
    [["r"], "run"],
    [["run", "--"], "--wait --help"],
    [["run", ""], "--wait --help nightly weekly"],
    [["run", "--wait", "n"], "nightly"],
    [["failed", "l"], "list"],
    [["failed", "list", "--form", ""], "table json"],
    [["failed", "list", "--policy", "w"], "weekly"],
    [["feed", "a"], "activities approvals"],
  ])("completes %j in bash", async (words, completed) => {
    const asked = `syncline() { echo nightly; echo weekly; }
${await script("bash")}
COMP_WORDS=(syncline "$@"); COMP_CWORD=$#; _syncline; echo "\${COMPREPLY[*]}"`;
    expect(execFileSync("bash", ["-c", asked, "bash", ...words], { encoding: "utf8" })).toBe(`${completed}\n`);
  });

  it("describes each word for fish, with quotes that fish reads", async () => {
    const lines = (await script("fish")).split("\n");
    expect(lines).toContain("complete -c syncline -n '__fish_use_subcommand' -f -a run -d 'run a policy'");
    expect(lines).toContain(
      "complete -c syncline -n '__fish_seen_subcommand_from run' -l wait -s w -d 'wait for it\\'s end'",
    );
    expect(lines.at(-1)).toContain("-a feed");
  });
});
