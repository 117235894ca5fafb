// Labels: the same words choose policies in every command, and pauses of a label stay with it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { SlotLedger } from "../../src/store/slot-ledger.ts";
import { commandFixture } from "../support/command-fixture.ts";
import { folderForTest } from "../support/folder.ts";

const policy = (name: string, syncJob: number, labels: string) =>
  `  - { name: ${name}, service: main, labels: ${labels}, run: { syncJobs: [${syncJob}] }, schedule: { every: 1s }, overlap: allow, follow: { until: accepted } }\n`;
const fixture = commandFixture(
  policy("one", 1, "{ team: hr, stage: prod }") + policy("two", 2, "{ team: hr }") + policy("other", 3, "{ team: it }"),
);
const prefix = `${fixture.redis.prefix}-labels`;
const here = (...args: string[]) => fixture.command(prefix, ...args);

it("a pause of a label skips the slots of all who have it, until it is resumed", async () => {
  const serve = await fixture.serve(prefix);
  await serve.until(({ event, policy: name }) => event === "slot.queued" && name === "two");
  const paused = await here("pause", "--label", "team=hr", "--reason", "move of HR", "--until", "1h");
  expect(paused.out).toMatch(
    /^label team=hr paused until \S+ \S+Z: move of HR\n2 policies now: one, two\. One that gets the label later is paused, too$/,
  );
  for (const name of ["one", "two"])
    await serve.until(({ event, policy: its }) => event === "slot.skipped" && its === name);
  const [change] = JSON.parse((await here("changes", "--json")).out);
  expect(change).toMatchObject({
    ...{ what: "pause", subject: "label team=hr", reason: "move of HR" },
    after: { scope: "label", name: "team=hr", matched: { count: 2, policies: ["one", "two"] } },
  });
  const states = async (name: string) => {
    const { out } = await here("status", "--json", ...(name === "" ? [] : ["--label", name]));
    return JSON.parse(out).policies.map((line: { policy: string; state: string }) => `${line.policy} ${line.state}`);
  };
  expect(await states("team=hr")).toEqual(["one paused", "two paused"]);
  expect(await states("team=it")).toEqual([expect.stringMatching(/^other (ok|new)$/)]);
  expect((await here("explain", "one")).out).toContain("move of HR");
  const resumed = await here("resume", "--label", "team=hr");
  expect([resumed.code, resumed.out]).toEqual([0, "label team=hr resumed"]);
  const { records } = await fixture.inStore(prefix, (store) => new SlotLedger(store).holdings("other"));
  expect(records.map(({ state }) => state)).not.toContain("skipped");
});

it("a policy that gets a paused label later is paused, too", async () => {
  const own = `${prefix}-later`;
  const file = join(folderForTest(), "p.yaml");
  const write = (labels: string) =>
    writeFileSync(
      file,
      `apiVersion: syncline/v1\nservices: { main: { baseUrl: "${fixture.sandbox().baseUrl}", token: { env: TEST_TOKEN } } }\npolicies:\n${policy("first", 1, "{ a: b }")}${policy("late", 2, labels)}`,
    );
  const command = (...args: string[]) => fixture.command(own, ...args, "--config", file);
  const health = async () => {
    const lines = JSON.parse((await command("status", "--json")).out).policies;
    return lines.find((line: { policy: string }) => line.policy === "late").state;
  };
  write("{ c: d }");
  await command("pause", "--label", "a=b", "--reason", "x");
  expect(await health()).not.toBe("paused");
  write("{ a: b }");
  expect(await health()).toBe("paused");
});

it("every command that lists policies, tasks or outcomes takes labels", async () => {
  for (const command of [["status"], ["history"], ["report"], ["audit"], ["running"], ["failed", "list"]]) {
    const { out, err } = await here(...command, "--label", "team=hr", "--label", "stage=prod", "--json");
    expect(`${command}: ${out}${err}`).not.toMatch(/"(two|other)"|no such policy/);
    const slip = await here(...command, "--label", "team=hrr");
    expect([command, slip.code, slip.err]).toEqual([
      command,
      2,
      expect.stringMatching(/no such policy has the label team=hrr; did you mean team=hr\?/),
    ]);
  }
  const slip = await here("pause", "--label", "taem=hr", "--reason", "x");
  expect([slip.code, slip.err]).toEqual([2, expect.stringContaining("did you mean team=hr?")]);
  expect((await here("pause", "one", "--label", "team=hr", "--reason", "x")).err).toContain("leave all but one out");
});
