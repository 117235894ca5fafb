import { beforeAll, describe, expect, it } from "vitest";
import { findAdmissionProblems } from "../support/chart/admission.ts";
import { type KubeObject, lint, parseObjects, template } from "../support/chart/helm.ts";
import { kindOf, knownKinds, validateObject } from "../support/chart/object-models.ts";
import { findTypeProblems } from "../support/chart/object-types.ts";
import { podSpecsOf } from "../support/chart/pod-specs.ts";
import { findRestrictedProblems } from "../support/chart/restricted.ts";
import { valueSets } from "../support/chart/value-sets.ts";

const rendered = new Map<string, readonly KubeObject[]>();
const linted = new Map<string, string>();

beforeAll(async () => {
  const left = [...valueSets];
  const workOff = async () => {
    for (let set = left.shift(); set !== undefined; set = left.shift()) {
      const { code, out, err } = await template(set.values);
      if (code !== 0) throw new Error(`${set.name}: ${err}`);
      rendered.set(set.name, parseObjects(out));
      const verdict = await lint(set.values);
      linted.set(set.name, verdict.code === 0 ? "" : verdict.out + verdict.err);
    }
  };
  await Promise.all([workOff(), workOff(), workOff()]);
});

const objects = () => [...rendered.values()].flat();

describe("the chart", () => {
  it("is tried with at least 25 sets of values, in which every kind it knows comes up", () => {
    expect(valueSets.length).toBeGreaterThanOrEqual(25);
    expect([...new Set(objects().map(kindOf))].toSorted()).toEqual([...knownKinds].toSorted());
  });

  it("has no object with a field that its API does not know", async () => {
    expect(await findTypeProblems(objects(), "chart")).toEqual([]);
  });

  it("would be caught with a misspelt field, as the compiler judges it", async () => {
    const [deployment] = objects().filter(({ kind }) => kind === "Deployment");
    const wrong = structuredClone(deployment ?? expect.fail("no Deployment")) as KubeObject & { spec: object };
    Object.assign(wrong.spec, { revisionHistoryLimits: 5 });
    expect(await findTypeProblems([wrong], "misspelt")).toEqual([expect.stringContaining("revisionHistoryLimits")]);
  });
});

describe.each(valueSets)("with $name", ({ name }) => {
  const own = () => rendered.get(name) ?? [];

  it("passes helm's lint, and every object its API's schema", () => {
    expect(linted.get(name)).toBe("");
    expect(own().length).toBeGreaterThan(2);
    for (const object of own()) validateObject(object);
    expect(own().flatMap(findAdmissionProblems)).toEqual([]);
  });

  it("makes pods that Pod Security restricted lets run", () => {
    const pods = own().flatMap(podSpecsOf);
    expect(pods.length).toBeGreaterThan(0);
    expect(
      pods.flatMap(({ where, spec }) => findRestrictedProblems(spec).map((problem) => `${where}: ${problem}`)),
    ).toEqual([]);
  });

  it("names each object once, within 63 characters", () => {
    const names = own().map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect(names).toEqual([...new Set(names)]);
    expect(own().filter(({ metadata }) => metadata.name.length > 63)).toEqual([]);
  });
});
