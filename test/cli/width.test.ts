// What commands say on a terminal of 80 columns, with names as long as people give them.
import { stripVTControlCharacters } from "node:util";
import stringWidth from "string-width";
import { describe, expect, it } from "vitest";
import { commandGroups } from "../../src/cli/commands.ts";
import { commandFixture } from "../support/command-fixture.ts";
import { runHere } from "../support/commands-here.ts";

/** With what is put before it, 45 characters. */
const long = "contracts-of-the-whole-group-in-all-lands";
const fixture = commandFixture(`
  - name: ${long}
    service: main
    repository: HR
    run: { syncJobs: [1, 2] }
    schedule: { cron: "30 2,6,10,14,18,22 * * 1-5", timezone: Europe/Vienna }
    follow: { until: accepted }
  - { name: poll-${long}, service: main, repository: HR, poll: { list: masks, expect: count < 1 }, schedule: { every: 1h } }
  - { name: none-${long}, service: main, repository: HR, run: { syncJobs: [404] }, follow: { until: accepted } }
`);

/** Runs a command line on a terminal of 80 columns: the lines that are wider. */
async function tooWide(args: readonly string[]): Promise<readonly string[]> {
  const where = { REDIS_URL: fixture.redis.url, TEST_TOKEN: fixture.sandbox().token };
  const { out, err } = await runHere(args, where, { columns: 80 });
  const lines = stripVTControlCharacters(`${out}\n${err}`).split("\n");
  expect(lines.join("").length, args.join(" ")).toBeGreaterThan(0);
  return lines.filter((line) => stringWidth(line) > 80).map((line) => `${args[0]}: ${line}`);
}

describe("a terminal of 80 columns", () => {
  it("is wide enough for every command, with long names", async () => {
    const prefix = `${fixture.redis.prefix}-with-a-long-name`;
    const on = ["--prefix", prefix];
    await fixture.serve(prefix);
    const reason = ["--reason", "the people of the data centre move the file server to another building this night"];
    // In this order: the first ones leave outcomes, pauses and changes for the others.
    const lines: readonly (readonly string[])[] = [
      ["run", long, "--wait"],
      ["run", `none-${long}`, "--wait"],
      ["run", `poll-${long}`, "--wait"],
      ["acknowledge", `none-${long}`, ...reason],
      ["pause", long, ...reason],
      ["pause", "--list"],
      ["status"],
      ["status", "--at", "06:00"],
      ["history"],
      ["history", "--ids"],
      ["report"],
      ["explain", long],
      ["explain", `none-${long}`],
      ["running"],
      ["failed"],
      ["sinks"],
      ["changes"],
      ["audit"],
      ["doctor"],
      ["feed", "tail", "activities", "--repository", "HR"],
      ["plan"],
      ["plan", "--to", "+1d"],
      ["plan", "--peaks", "--requests", "--dst", "--deleted"],
      ["simulate"],
      ["simulate", "--list", "--to", "+1d"],
      ["resume", long, "--catch-up", ...reason],
    ];
    for (const line of lines) expect(await tooWide([...line, ...on]), line.join(" ")).toEqual([]);
    expect(await tooWide(["validate", fixture.file()])).toEqual([]);
    expect(await tooWide(["plan", "--state", fixture.file(), ...on])).toEqual([]);
  });

  it("names the option for how many, where a command calls it otherwise", async () => {
    const refused = await Promise.all([runHere(["plan", "--limit", "2"], {}), runHere(["status", "--count", "2"], {})]);
    expect(refused.map(({ err }) => err.split("\n")[0])).toEqual([
      "error: unknown option '--limit': write --count",
      "error: unknown option '--count': write --limit",
    ]);
  });

  it("names the command that a failed task is done over by", async () => {
    const { code, err } = await runHere(["replay", "contracts-nightly__run__42__1795228200"], {});
    expect([code, err.split("\n")[0]]).toEqual([2, "error: unknown command 'replay': write syncline failed replay"]);
  });

  it("leads to labels where a command chooses no policies by repository", async () => {
    const [error] = (await runHere(["pause", "--repository", "HR", "--reason", "x"], {})).err.split("\n");
    const label = "give its policies a label, and write --label NAME=VALUE";
    expect(error).toBe(`error: unknown option '--repository': ${label}`);
  });

  it("is wide enough for what is said of wrong use", async () => {
    const wrong: readonly (readonly string[])[] = [
      [],
      ["failed", "replay", "--prefix", "x"],
      ["history", "--policy", long],
      ["feed", "tail", "activitys"],
      ["delete", "--config", fixture.file(), "--sync-job", "3"],
      ["run", long, "--sync-job", "4", "--config", fixture.file()],
      ["status", "--redis-url", "http://127.0.0.1:6379/and/a/path/that/is/none"],
      ["cancel"],
    ];
    for (const args of wrong) expect(await tooWide(args), args.join(" ")).toEqual([]);
  });

  it("is wide enough for all help", async () => {
    const names = Object.values(commandGroups).flatMap((group) => Object.keys(group));
    const subcommands = [
      ["failed", "list"],
      ["failed", "replay"],
      ["sinks", "test"],
      ["feed", "tail"],
    ];
    for (const name of [...names.map((one) => [one]), ...subcommands])
      expect(await tooWide([...name, "--help"]), name.join(" ")).toEqual([]);
  });
});
