import { describe, expect, it } from "vitest";
import { tasksOf } from "../../../src/schedule/slot-tasks.ts";
import { fileWith, loadText, problemsOf } from "./policy-fixture.ts";

const policy = (apply: string, name = "a", more = "") => `  - { name: ${name}, service: main, ${more}apply: ${apply} }`;

describe("an apply policy", () => {
  it("becomes one task for each object, named after it", async () => {
    const text = fileWith(
      policy(
        "{ syncJobs: { 42: { name: A } }, docMasks: { 7: { name: B } }, siteTargets: { 9: { siteId: x, siteName: y } } }",
      ),
    );
    const loaded = await loadText(text);
    const [only] = loaded.ok ? loaded.set.policies : [];
    expect(only?.action).toEqual({
      kind: "apply",
      objects: [
        { kind: "syncJob", id: 42, fields: { name: "A" } },
        { kind: "docMask", id: 7, fields: { name: "B" } },
        { kind: "siteTarget", id: 9, fields: { siteId: "x", siteName: "y" } },
      ],
    });
    if (only === undefined) return;
    const tasks = tasksOf(only, { slotMs: 1_795_228_200_000, origin: "schedule", covers: [] });
    expect(tasks.map(({ id }) => id)).toEqual([
      "a__apply__syncJob-42__1795228200",
      "a__apply__docMask-7__1795228200",
      "a__apply__siteTarget-9__1795228200",
    ]);
  });

  it.each([
    ["{}", "5:31 apply declares nothing"],
    ["{ syncJobs: {} }", "5:31 apply declares nothing"],
    ["{ driveTargets: { 9: {} } }", "5:56 no field is declared here"],
  ])("that declares nothing is refused: %s", async (apply, problem) => {
    expect(await problemsOf(fileWith(policy(apply)))).toEqual([problem]);
  });

  it("names an id by digits, in one way only", async () => {
    const [problem] = await problemsOf(fileWith(policy('{ syncJobs: { "042": { name: A } } }')));
    expect(problem).toContain("the key is an id: digits only, without zeros in front");
  });

  it("takes no field that the service does not know", async () => {
    const [problem] = await problemsOf(fileWith(policy("{ syncJobs: { 42: { name: A, isActive: true } } }")));
    expect(problem).toContain("isActive");
  });

  it("has nothing to follow", async () => {
    const text = fileWith(policy("{ syncJobs: { 42: { name: A } } }", "a", "follow: { until: settled }, "));
    expect(await problemsOf(text)).toEqual(["5:31 there is nothing to follow after apply"]);
  });

  it("declares 500 objects at most", async () => {
    const many = Array.from({ length: 501 }, (_, id) => `${id}: { name: A }`).join(", ");
    expect(await problemsOf(fileWith(policy(`{ syncJobs: { ${many} } }`)))).toEqual([
      "5:31 apply declares 501 objects; 500 a policy is the most",
    ]);
  });
});

describe("two apply policies", () => {
  const two = (first: string, second: string, more = "") =>
    problemsOf(
      fileWith(
        `${policy(`{ syncJobs: { 42: { name: ${first} } } }`)}\n${policy(`{ syncJobs: { 42: { name: ${second} } } }`, "b", more)}`,
      ),
    );

  it("may not declare one field differently, since each would undo the other's work", async () => {
    expect(await two("A", "B")).toEqual(["6:64 syncJobs.42.name is declared differently by a"]);
  });

  it("may declare the same, or objects of different repositories", async () => {
    expect(await two("A", "A")).toEqual([]);
    expect(await two("A", "B", "repository: HR, ")).toEqual([]);
  });
});
