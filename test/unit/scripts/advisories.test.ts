// The packages of the run-time tree against the advisories in .ci/advisories.json: what can be
// looked at without a network.
import { readFileSync } from "node:fs";
import { satisfies, validRange } from "semver";
import { describe, expect, it } from "vitest";
import * as z from "zod";

const root = new URL("../../../", import.meta.url);
const read = (path: string): unknown => JSON.parse(readFileSync(new URL(path, root), "utf8"));
const { advisories } = z
  .object({ advisories: z.array(z.object({ package: z.string(), versions: z.string(), id: z.string() })) })
  .parse(read(".ci/advisories.json"));
const { packages } = z
  .object({ packages: z.record(z.string(), z.object({ version: z.string().optional(), dev: z.boolean().optional() })) })
  .parse(read("package-lock.json"));

const runTime = Object.entries(packages)
  .filter(([path, { dev }]) => path !== "" && dev !== true)
  .map(([path, { version = "" }]) => ({ name: path.slice(path.lastIndexOf("node_modules/") + 13), version }));

function findings(tree: readonly { name: string; version: string }[]): string[] {
  return tree.flatMap(({ name, version }) =>
    advisories
      .filter((one) => one.package === name && satisfies(version, one.versions, { includePrerelease: true }))
      .map(({ id }) => `${name} ${version}: ${id}`),
  );
}

describe("the packages of the run-time tree", () => {
  it("are 82 at most, and none has an advisory that is known here", () => {
    expect(runTime.length).toBeGreaterThan(20);
    expect(runTime.length).toBeLessThanOrEqual(82);
    expect(findings(runTime)).toEqual([]);
  });

  it("would be found if one had", () => {
    expect(findings([{ name: "debug", version: "4.4.2" }])).toEqual(["debug 4.4.2: CVE-2025-59144"]);
  });

  it("are held against ranges that can be read", () => {
    expect(advisories.filter(({ versions }) => validRange(versions) === null)).toEqual([]);
  });
});
