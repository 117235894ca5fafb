import { describe, expect, it } from "vitest";
import { type Discovery, discoveryYaml } from "../../src/cli/discover.ts";
import { discoverService } from "../../src/feeds/discover/discover-service.ts";
import { SyncService, staticToken } from "../../src/service/client.ts";
import { type World, worldForTest } from "../support/world.ts";

const policies = `  - { name: calm, service: main, repository: HR, run: { syncJobs: [3] } }
  - { name: messy, service: main, repository: HR, run: { syncJobs: [5] } }`;

/** A sandbox of this shape, and an app that works with what was found out about it. */
async function discovered(shape: "plain" | "opaque" | "keyless"): Promise<{ world: World; yaml: string[] }> {
  const world = await worldForTest({ policies, mapping: false, sandbox: { shape } });
  const { baseUrl, token } = world.sandbox;
  const service = new SyncService({ baseUrl, token: staticToken(token) });
  const requests: Discovery["requests"][number][] = [];
  const seen = await discoverService({
    service,
    repository: "HR",
    lists: ["activities", "conflictDetails"],
    pages: 3,
    syncJobIds: [],
    signal: AbortSignal.timeout(60_000),
    note: (what, outcome) => requests.push({ what, outcome }),
  });
  service.close();
  const yaml = discoveryYaml({ service: "main", repository: "HR", requests, retries: 0, ...seen });
  const text = `apiVersion: syncline/v1
services:
  main:
    baseUrl: ${baseUrl}
    token: { env: TEST_TOKEN }
${yaml.map((line) => `    ${line}`).join("\n")}
defaults: { follow: { until: settled, quietFor: 2s, deadline: 20s } }
policies:
${policies}`;
  expect((await world.configure({ text })).event).toBe("config.reloaded");
  return { world, yaml };
}

describe("what discover proposes", () => {
  it.each(["plain", "opaque"] as const)("settles runs by direct evidence, with %s field names", async (shape) => {
    const { world } = await discovered(shape);
    expect(await world.run("calm")).toMatchObject({ status: "succeeded", evidence: "direct", confidence: "certain" });
    expect(await world.run("messy")).toMatchObject({ status: "conflicts", evidence: "direct" });
    expect(world.sandbox.ledger()).toHaveLength(2);
  });

  it("says without a key field what is impossible, and leaves a run to inference", async () => {
    const { world, yaml } = await discovered("keyless");
    const text = yaml.join("\n");
    expect(text).toContain("NOTE: No field identifies an item");
    expect(text).toContain("NOTE: A run cannot be settled by direct evidence");
    expect(text).not.toMatch(/^ +(id|finished|succeeded):/m);
    expect(await world.run("calm")).toMatchObject({ status: "succeeded", evidence: "inferred" });
  });
});
