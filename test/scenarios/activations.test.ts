// Activations of a service whose sync jobs show whether they are active, end to end over the
// sandbox: `mapping.syncJob.active`.
import { describe, expect, it } from "vitest";
import { runHere } from "../support/commands-here.ts";
import { often } from "../support/processes.ts";
import { shortTiming } from "../support/short-timing.ts";
import { type World, type WorldOptions, worldForTest } from "../support/world.ts";

async function start(faults: readonly string[], active?: string, timing?: WorldOptions["timing"]): Promise<World> {
  const policies = "  - { name: wake, service: main, repository: HR, activate: { syncJobs: [3] } }";
  const sandbox = { fieldNames: { isActive: "enabled" } };
  return worldForTest({
    ...{ policies, faults, sandbox },
    ...(faults.some((fault) => fault.startsWith("lost-answer")) ? { requestTimeout: "2s" } : {}),
    ...(active === undefined ? {} : { active }),
    ...(timing === undefined ? {} : { timing }),
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

  it.each([
    ["200-before", ""],
    ["reset", ": "],
  ])("tells meanwhile that it is verified, not that a run is followed (%s)", async (fault, doubt) => {
    const timing = { ...shortTiming, verifyForMs: 600_000 };
    const fixture = await start([`${fault},op=EnableSyncJobById`], "item.enabled", timing);
    const at = ["--prefix", fixture.target.prefix, "--redis-url", fixture.target.url];
    await runHere(["run", "wake", ...at]);
    const explained = async () => (await runHere(["explain", "wake", ...at])).out;
    await expect.poll(explained, often).toMatch(/verifying|followed/);
    const out = await explained();
    expect(out).toContain(`verifying; waits for a reading that shows whether sync job 3 is active${doubt}`);
    expect(out).not.toMatch(/end of its run|activity|activities|followed/);
    const [task] = JSON.parse((await runHere(["running", "--json", ...at])).out).tasks;
    expect(task).toMatchObject({ step: "verifying", deadline: null });
  });
});
