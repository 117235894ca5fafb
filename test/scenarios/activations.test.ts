// Activations of a service whose sync jobs show whether they are active, end to end over the
// sandbox: `mapping.syncJob.active`.
import { describe, expect, it } from "vitest";
import { type World, worldForTest } from "../support/world.ts";

async function start(faults: readonly string[], active?: string): Promise<World> {
  const policies = "  - { name: wake, service: main, repository: HR, activate: { syncJobs: [3] } }";
  const sandbox = { fieldNames: { isActive: "enabled" } };
  return worldForTest({
    ...{ policies, faults, sandbox, requestTimeout: "2s" },
    ...(active === undefined ? {} : { active }),
  });
}

const requests = ({ sandbox }: World) => sandbox.requests()["EnableSyncJobById"];

describe("an activation where the mapping says what an active sync job looks like", () => {
  it("succeeds although its answer got lost: the sync job is active", async () => {
    const fixture = await start(["lost-answer,op=EnableSyncJobById"], "item.enabled");
    const outcome = await fixture.run("wake");
    expect(outcome).toMatchObject({ status: "succeeded", evidence: "direct", reason: "seen-active", answerLost: true });
    expect(requests(fixture)).toEqual({ cut: 1 });
  });

  it("fails although the service answered 200: the sync job is not active", async () => {
    const fixture = await start(["200-before,op=EnableSyncJobById"], "item.enabled");
    const outcome = await fixture.run("wake");
    expect(outcome).toMatchObject({ status: "failed", evidence: "direct", reason: "not-active", answerLost: false });
    expect(requests(fixture)).toEqual({ 200: 1 });
  });

  it("stays unknown without such a mapping", async () => {
    const fixture = await start(["lost-answer,op=EnableSyncJobById"]);
    expect(await fixture.run("wake")).toMatchObject({ status: "unknown", evidence: "none", reason: "answer-lost" });
  });
});
