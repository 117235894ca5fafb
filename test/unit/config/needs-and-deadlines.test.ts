import { describe, expect, it } from "vitest";
import { fileWith, loadText, problemsOf } from "./policy-fixture.ts";

const policy = (name: string, more: string) =>
  `  - { name: ${name}, service: main, run: { syncJobs: [1] }, ${more} }\n`;
const nightly = (name: string, more = "") => policy(name, `schedule: { cron: "30 2 * * 1-5" }${more}`);
const problems = async (...policies: readonly string[]) =>
  (await problemsOf(fileWith(policies.join("")))).map((problem) => problem.replace(/^\d+:\d+ /, ""));

describe("a deadline in a policy file", () => {
  it.each([
    [', expect: { successBy: "06:00", on: "1-5" }', { kind: "successBy", at: "06:00", on: "1-5" }],
    [', expect: { successBy: "06:00" }', { kind: "successBy", at: "06:00", on: "*" }],
    [", expect: { within: 90m }", { kind: "within", withinMs: 5_400_000 }],
  ])("is read: %s", async (more, expected) => {
    const loaded = await loadText(fileWith(nightly("a", more)));
    expect(loaded.ok && loaded.set.policies[0]?.expect).toEqual(expected);
  });

  it.each([
    [nightly("a", ", expect: {}"), "needs exactly one of successBy or within"],
    [nightly("a", ', expect: { successBy: "06:00", within: 2h }'), "successBy and within exclude each other"],
    [nightly("a", ', expect: { successBy: "6:00" }'), 'expect.successBy: a time of day is written "22:00"'],
    [nightly("a", ', expect: { within: 2h, on: "1" }'), "expect.on goes with successBy only"],
    [
      nightly("a", ', expect: { successBy: "02:00" }'),
      "expect.successBy: no slot of this policy lies between midnight and 02:00 (UTC)",
    ],
    [
      nightly("a", ', expect: { successBy: "06:00", on: "*/2" }'),
      "expect.on: on Sunday, Saturday no slot of this policy lies between midnight and 06:00 (UTC)",
    ],
    [policy("a", "expect: { within: 2h }"), "expect does nothing here: without a schedule no slot is ever due"],
  ])("is refused where it makes no sense: %s", async (text, problem) => {
    expect(await problems(text)).toEqual([problem]);
  });

  it("is judged by the slots of the chain that the policy follows", async () => {
    const late = policy("b", 'after: { policy: a }, expect: { successBy: "02:00" }');
    expect(await problems(nightly("a"), late)).toEqual([
      "expect.successBy: no slot of this policy lies between midnight and 02:00 (UTC)",
    ]);
  });
});

describe("an input in a policy file", () => {
  it("is another policy, also one that runs by hand only", async () => {
    const loaded = await loadText(
      fileWith(policy("a", "repository: HR") + nightly("b", ", needs: { policy: a, within: 24h }")),
    );
    expect(loaded.ok && loaded.set.policies[1]?.needs).toEqual({ policy: "a", withinMs: 86_400_000 });
  });

  const needs = (name: string) => `, needs: { policy: ${name}, within: 24h }`;
  it.each([
    [[nightly("abc"), nightly("b", needs("abd"))], ['there is no policy "abd"']],
    [[nightly("a", needs("a"))], ["a policy cannot need itself: once stale, neither would start again"]],
    [
      [nightly("a", needs("b")), nightly("b", needs("c")), policy("c", "after: { policy: a }")],
      [
        "b waits for a itself: once stale, neither would start again",
        "c waits for b itself: once stale, neither would start again",
      ],
    ],
    [
      [policy("a", "needs: { policy: b, within: 1h }"), nightly("b")],
      ["needs does nothing here: without a schedule no slot is ever due"],
    ],
  ])("is refused where it can never be: %j", async (policies, expected) => {
    expect(await problems(...policies)).toEqual(expected);
  });
});
