import { describe, expect, it } from "vitest";
import packageJson from "../../../package.json" with { type: "json" };
import { availableVersion, notAvailable } from "../../../src/config/not-available.ts";
import { fileWith, problemsOf } from "./policy-fixture.ts";

const policy = (keys: string) => fileWith(`  - { name: a, service: main, ${keys} }`);
const run = "run: { syncJobs: [1] }";

/** A file with the row's key, and what is said about it. */
const cases: Readonly<Record<string, readonly [text: string, problem: string]>> = {
  "policies.*.delete": [policy("delete: { syncJob: 42, name: C }"), '5:31 "delete"'],
  "policies.*.notify": [policy(`${run}, notify: [ops]`), '5:55 "notify"'],
  "defaults.notify": [`${policy(run)}defaults: { notify: [ops] }\n`, '6:13 "notify"'],
  sinks: [`${policy(run)}sinks: { ops: { file: { path: x } } }\n`, '6:1 "sinks"'],
};

describe("what this version does not do", () => {
  it("has a test for every row, and names the version of the package", () => {
    expect(Object.keys(cases)).toEqual(
      notAvailable.map(({ path, value }) => (value === undefined ? path : `${path}: ${value}`)),
    );
    expect(packageJson.version.startsWith(`${availableVersion}.`)).toBe(true);
  });

  it.each(Object.entries(cases))("%s is refused by its name, once, whatever it holds", async (_, [text, problem]) => {
    expect(await problemsOf(text)).toEqual([`${problem} is not available in this version of Syncline (0.1)`]);
  });
});
