import { describe, expect, it } from "vitest";
import { type World, worldForTest } from "../support/world.ts";

const story = (syncJob: number, follow = "until: settled") =>
  `  - { name: story, service: main, repository: HR, run: { syncJobs: [${syncJob}] }, follow: { ${follow} } }`;

/** One of the sandbox's own paths: what is not part of the interface. */
async function tellSandbox({ sandbox }: World, path: string): Promise<void> {
  const headers = { authorization: `Bearer ${sandbox.token}` };
  const answer = await fetch(`${sandbox.baseUrl}/_sandbox/${path}`, { method: "POST", headers });
  expect(answer.status).toBe(200);
}

describe("conflicts before and after a run", () => {
  it("are new or still there, counted for the sync job alone", async () => {
    const { run } = await worldForTest({ policies: story(5) });
    expect(await run("story")).toMatchObject({ newConflicts: 1, goneConflicts: 0, stillConflicts: 1 });
  });

  it("are gone when the list does not show them after its end", async () => {
    const fixture = await worldForTest({ policies: story(5), sandbox: { runMs: [8_000, 8_000] } });
    const ended = fixture.run("story");
    await fixture.log.until(({ event }) => event === "task.started");
    await tellSandbox(fixture, "conflicts/clear");
    expect(await ended).toMatchObject({ status: "conflicts", newConflicts: 1, goneConflicts: 1, stillConflicts: 0 });
  });

  it("are counted over several pages, too", async () => {
    const { run } = await worldForTest({ policies: story(5), sandbox: { pageSize: 3, jobs: 25, activities: 25 } });
    expect(await run("story")).toMatchObject({ newConflicts: 1, goneConflicts: 0, stillConflicts: 1 });
  });

  it("are not reported, and never 0, where only an end of the list was read after", async () => {
    // More than two pages: shorter lists are read whole.
    const fixture = {
      policies: story(5, "until: settled, deadline: 60s"),
      sandbox: { pageSize: 1, jobs: 25, activities: 25 },
    };
    const { run, log } = await worldForTest(fixture);
    const outcome = await run("story");
    expect(outcome).toMatchObject({ status: "conflicts", newConflicts: 1 });
    // A conflict that comes between a page and the count has the whole list read: then it is known.
    if ("goneConflicts" in outcome) {
      await log.until(({ event, list }) => event === "feed.read-whole" && list === "conflictDetails");
      return;
    }
    expect(outcome).not.toHaveProperty("stillConflicts");
  });
});

describe("a run that waits for an approval", () => {
  const blocking = { approvalsBlock: true, jobs: 22 };

  it("ends as blocked with the approval's name, inferred, and the next slot may start", async () => {
    const { run, starts } = await worldForTest({ policies: story(11, "blockedAfter: 1s"), sandbox: blocking });
    const outcome = await run("story");
    expect(outcome).toMatchObject({ status: "blocked", evidence: "inferred", reason: "approval-waiting" });
    expect(outcome.detail).toMatch(/^approval Release of .*, run 1 \(\d+\) waits, and nothing has finished since/);
    await run("story");
    expect(starts(11)).toBe(2);
  });

  it("goes on when it is approved before, and ends as it ends", async () => {
    const policies = story(11, "blockedAfter: 5s");
    const fixture = await worldForTest({ policies, sandbox: { jobs: 22, runMs: [8_000, 8_000] } });
    const ended = fixture.run("story");
    await fixture.log.until((one) => one.event === "feed.item" && one["list"] === "approvals");
    await tellSandbox(fixture, "approvals/clear");
    expect(await ended).toMatchObject({ status: "succeeded", evidence: "direct" });
  });

  it("is never blocked by approvals that were there before its start", async () => {
    const both = `${story(11, "blockedAfter: 1s")}
  - { name: later, service: main, repository: HR, run: { syncJobs: [3] }, follow: { blockedAfter: 1s, deadline: 4s, unreadableFor: 1m } }`;
    const { run } = await worldForTest({ policies: both, sandbox: { ...blocking, runMs: [60_000, 60_000] } });
    expect(await run("story")).toMatchObject({ status: "blocked" });
    expect(await run("later")).toMatchObject({ status: "timed-out" });
  });

  it("is not unknown when only approvals cannot be read; the start waits for them once", async () => {
    const faults = ["500-before,op=GetApprovals"];
    const { run, log } = await worldForTest({ policies: story(3, "blockedAfter: 1s"), faults });
    expect(await run("story")).toMatchObject({ status: "succeeded", evidence: "direct" });
    expect(log.named("feed.unreadable")).not.toHaveLength(0);
    expect(log.named("run.without-baseline")).toHaveLength(0);
  });

  it("is not looked for where the policy says off", async () => {
    const { run, sandbox } = await worldForTest({ policies: story(11, "blockedAfter: off"), sandbox: { jobs: 22 } });
    expect(await run("story")).toMatchObject({ status: "succeeded" });
    expect(sandbox.requests()["GetApprovals"]).toBeUndefined();
  });
});

describe("feeds that cannot be read", () => {
  it("leave the run unknown after the policy's own time, never failed", async () => {
    const faults = ["500-before,op=GetActivities,after=3"];
    const policies = story(3, "unreadableFor: 1s");
    const { run } = await worldForTest({ policies, faults, sandbox: { runMs: [60_000, 60_000], activities: 0 } });
    const outcome = await run("story");
    expect(outcome).toMatchObject({ status: "unknown", evidence: "none", reason: "no-evidence" });
    expect(outcome.detail).toContain("the feeds cannot be read");
  });
});
