import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { loadPolicies } from "../../../src/config/load-policies.ts";
import { checks, folderOf, variables } from "./policy-fixture.ts";

const mapping = [
  "id: item.activityId",
  "syncJobId: item.job",
  "startedAt: item.begunAt",
  'finished: item.state == "Done"',
  "succeeded: item.good",
].join(", ");

/** The problems of a policy file whose mapping of activities is this one, beside a sample. */
async function problemsWith(sample: string | undefined, texts = mapping): Promise<readonly string[]> {
  const file = `apiVersion: syncline/v1
services:
  main:
    baseUrl: https://sync.example.com
    token: { env: TOKEN }
    mapping:
      activity: { sample: activities.json, ${texts} }
`;
  const folder = await folderOf({ "policies.yaml": file });
  if (sample !== undefined) await writeFile(join(folder, "activities.json"), sample);
  const loaded = await loadPolicies(join(folder, "policies.yaml"), { variables, checks });
  if (loaded.ok) {
    expect(loaded.set.services.get("main")?.mapping.activities).not.toHaveProperty("sample");
    return [];
  }
  return loaded.problems.map(({ line, column, message }) => `${line}:${column} ${message}`);
}

const item = { activityId: 1, job: 42, begunAt: "2026-11-21T10:00:00Z", state: "Done", good: true };
const problemsOfItems = (...items: readonly unknown[]) => problemsWith(JSON.stringify(items));

describe("a mapping with a sample", () => {
  it("is right when each expression gives what its fact must be, whatever the items", async () => {
    expect(await problemsWith(JSON.stringify(item))).toEqual([]);
    expect(await problemsOfItems(item, { ...item, begunAt: null, good: null, job: null })).toEqual([]);
    expect(await problemsWith(JSON.stringify({ "@odata.context": "x", value: [item] }))).toEqual([]);
  });

  it("is wrong where an expression fails on an item, at that expression", async () => {
    const { state: _gone, ...without } = item;
    expect(await problemsOfItems(item, without, without)).toEqual([
      "7:121 finished: on item 2 of the sample (and on 1 more of 3): No such key: state",
    ]);
  });

  it.each([
    ["id", { activityId: null }, "null, and a text or a number is wanted"],
    ["id", { activityId: "" }, "an empty text, and a text or a number is wanted"],
    ["syncJobId", { job: [42] }, "a list, and a text or a number is wanted"],
    ["startedAt", { begunAt: "21.11.2026 10:00" }, "a text, and a time with its zone, or seconds or milliseconds"],
    ["succeeded", { good: "yes" }, "a text, and true or false is wanted"],
    ["succeeded", { good: { really: 1 } }, "an object, and true or false is wanted"],
  ])("is wrong where %s gives something else: %j", async (fact, change, what) => {
    const [problem, ...more] = await problemsOfItems({ ...item, ...change });
    expect(problem).toContain(`${fact}: on item 1 of the sample: gives ${what}`);
    expect(more).toEqual([]);
  });

  it.each([
    ["that is not there", undefined, "the sample is not there"],
    ["that is no JSON", '{\n  "a": 1,, }', "the sample is no JSON: line 2, column 10"],
    ["without an item", "[]", "the sample holds no item"],
    ["of something else", "[1]", "the sample holds something that is no item"],
    ["that is too large", `"${"x".repeat(1024 * 1024)}"`, "the sample is larger than 1024 KiB"],
  ])("is wrong with a sample %s, at its path", async (_name, sample, problem) => {
    expect(await problemsWith(sample)).toEqual([`7:27 ${problem}`]);
  });

  it("says nothing more of an expression that does not parse", async () => {
    expect(await problemsWith(JSON.stringify(item), "id: item.oops")).toEqual([
      expect.stringContaining("unexpected oops"),
    ]);
  });

  it("never repeats what stands in the sample", async () => {
    const secret = "canary-4711";
    const said = [...(await problemsOfItems({ ...item, good: secret })), ...(await problemsWith(`${secret} [`))];
    expect(said).toHaveLength(2);
    expect(said.join()).not.toContain(secret);
  });
});
