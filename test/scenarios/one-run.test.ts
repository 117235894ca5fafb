import { describe, expect, it, onTestFinished } from "vitest";
import { restoreClock, shiftClock } from "../support/shifted-clock.ts";
import { shortTiming } from "../support/short-timing.ts";
import { worldForTest } from "../support/world.ts";

const story = (syncJob: number, more = "") =>
  `  - { name: story, service: main, repository: HR, run: { syncJobs: [${syncJob}] }${more} }`;

describe("one run", () => {
  it("is started, followed in the activities, and succeeds by direct evidence", async () => {
    const { run, starts, log, sandbox } = await worldForTest({ policies: story(3) });
    const outcome = await run("story");
    expect(outcome).toMatchObject({
      status: "succeeded",
      evidence: "direct",
      reason: "completed",
      target: "3",
      newConflicts: 0,
      answerLost: false,
      attempts: 1,
    });
    expect(starts(3)).toBe(1);
    expect(sandbox.ledger()[0]?.repository).toBe("HR");
    expect(log.named("task.finished")).toHaveLength(1);
    expect(log.named("task.started")).toHaveLength(1);
  });

  it("that leaves conflicts ends as conflicts, with their number", async () => {
    const { run } = await worldForTest({ policies: story(5) });
    expect(await run("story")).toMatchObject({
      status: "conflicts",
      evidence: "direct",
      reason: "new-conflicts",
      newConflicts: 1,
    });
  });

  it("may leave as many conflicts as its policy allows", async () => {
    const { run } = await worldForTest({ policies: story(5, ", follow: { conflictsMax: 1 }") });
    expect(await run("story")).toMatchObject({ status: "succeeded", newConflicts: 1 });
  });

  it("whose answer gets lost is found in the activities and not started again", async () => {
    const { run, starts, log } = await worldForTest({
      policies: story(3),
      faults: ["lost-answer,op=RunSyncJob,first=1"],
    });
    expect(await run("story")).toMatchObject({ status: "succeeded", evidence: "inferred", answerLost: true });
    expect(starts(3)).toBe(1);
    expect(log.named("task.in-doubt")).toHaveLength(1);
    expect(log.named("task.start-confirmed")).toHaveLength(1);
  });

  it("whose request gets lost on its way is unknown, and not started again", async () => {
    const { run, starts, sandbox } = await worldForTest({ policies: story(3), faults: ["reset,op=RunSyncJob"] });
    expect(await run("story")).toMatchObject({
      status: "unknown",
      evidence: "none",
      reason: "answer-lost",
      answerLost: true,
    });
    expect(starts(3)).toBe(0);
    expect(sandbox.requests()["RunSyncJob"]?.["cut"]).toBe(1);
  });

  it("that answers 500 although it started is followed to its end", async () => {
    const { run, starts } = await worldForTest({ policies: story(3), faults: ["500-after,op=RunSyncJob"] });
    expect(await run("story")).toMatchObject({ status: "succeeded", answerLost: false });
    expect(starts(3)).toBe(1);
  });

  it("that answers 500 and shows no activity is unknown, with one request", async () => {
    const { run, sandbox } = await worldForTest({ policies: story(3), faults: ["500-before,op=RunSyncJob"] });
    expect(await run("story")).toMatchObject({
      status: "unknown",
      evidence: "none",
      reason: "server-error",
      answerLost: false,
    });
    expect(sandbox.requests()["RunSyncJob"]?.["500"]).toBe(1);
  });

  it("that is throttled waits no longer on a machine whose clock is behind", async () => {
    shiftClock(-60_000);
    onTestFinished(restoreClock);
    const { run, starts } = await worldForTest({
      policies: story(3, ", follow: { until: accepted }"),
      faults: ["429,op=RunSyncJob,first=1,retryAfter=1"],
    });
    const beganMs = performance.now();
    expect(await run("story")).toMatchObject({ status: "accepted", attempts: 1 });
    expect(performance.now() - beganMs).toBeLessThan(30_000);
    expect(starts(3)).toBe(1);
  });

  it("that is throttled waits as long as it is told and then starts once", async () => {
    const { run, starts, sandbox } = await worldForTest({
      policies: story(3),
      faults: ["429,op=RunSyncJob,first=2,retryAfter=1"],
    });
    expect(await run("story")).toMatchObject({ status: "succeeded", attempts: 1 });
    expect(starts(3)).toBe(1);
    expect(sandbox.requests()["RunSyncJob"]?.["429"]).toBe(2);
  });

  it("of a sync job that is not there is not started, and says what the service said", async () => {
    const { run } = await worldForTest({ policies: story(4711) });
    const outcome = await run("story");
    expect(outcome).toMatchObject({ status: "not-started", evidence: "direct", reason: "refused" });
    expect(outcome.detail).toContain("RunSyncJob");
  });

  it("without follow ends with the service's acceptance", async () => {
    const { run } = await worldForTest({ policies: story(3, ", follow: { until: accepted }") });
    expect(await run("story")).toMatchObject({
      status: "accepted",
      evidence: "direct",
      reason: "answered",
      newConflicts: null,
    });
  });

  it("without a mapping is settled by growth and quiet, and says it is inferred", async () => {
    const { run } = await worldForTest({ policies: story(3), mapping: false });
    expect(await run("story")).toMatchObject({ status: "succeeded", evidence: "inferred" });
  });

  it("that goes on longer than its deadline is timed out, not failed", async () => {
    const { run } = await worldForTest({
      policies: story(3, ", follow: { deadline: 2s, unreadableFor: 1m }"),
      sandbox: { runMs: [60_000, 60_000] },
    });
    expect(await run("story")).toMatchObject({ status: "timed-out", reason: "deadline" });
  });

  it("that started before its feeds were read is told by an activity begun after it", async () => {
    const { run, log } = await worldForTest({
      policies: story(3, ", follow: { quietFor: 2s }"),
      mapping: "timed",
      // The run waits for no reading of its lists.
      timing: { ...shortTiming, baselineWithinMs: -60_000 },
    });
    expect(await run("story")).toMatchObject({ status: "succeeded", evidence: "direct", confidence: "certain" });
    expect(log.named("run.without-baseline")).toHaveLength(1);
  });

  it("is unknown, never failed, when its feeds cannot be read (P4)", async () => {
    const { run, starts } = await worldForTest({ policies: story(3), faults: ["500-before,op=GetConflictDetails"] });
    expect(await run("story")).toMatchObject({ status: "unknown", evidence: "none", reason: "no-evidence" });
    expect(starts(3)).toBe(1);
  });
});

describe("runs of the same sync job", () => {
  it("skip while another one goes on, and name who it is", async () => {
    const slow = "  - { name: slow, service: main, repository: HR, run: { syncJobs: [3] } }";
    const { run, log, starts } = await worldForTest({
      policies: `${slow}\n${story(3)}`,
      sandbox: { runMs: [8_000, 8_000] },
    });
    const first = run("slow");
    await log.until(({ event }) => event === "task.started");
    const skipped = await run("story");
    expect(skipped).toMatchObject({ status: "skipped", reason: "overlap" });
    expect(skipped.detail).toMatch(/^slow__run__3__m\d+ is still running$/);
    expect(await first).toMatchObject({ status: "succeeded" });
    expect(starts(3)).toBe(1);
  });

  it("wait their turn with overlap: queue", async () => {
    const slow = "  - { name: slow, service: main, repository: HR, run: { syncJobs: [3] } }";
    const { run, log, starts } = await worldForTest({ policies: `${slow}\n${story(3, ", overlap: queue")}` });
    const first = run("slow");
    await log.until(({ event }) => event === "task.started");
    const second = await run("story");
    const ended = await first;
    expect([ended, second]).toMatchObject([{ status: "succeeded" }, { status: "succeeded" }]);
    expect(Date.parse(String(second.startedAt))).toBeGreaterThanOrEqual(Date.parse(ended.finishedAt));
    expect(starts(3)).toBe(2);
  });
});

describe("a run over masks", () => {
  it("starts each sync job that a matching mask belongs to, once", async () => {
    const policies =
      '  - { name: story, service: main, repository: HR, run: { fromMasks: { type: FolderMask, name: "* folder" } } }';
    const { log, run, sandbox } = await worldForTest({ policies, sandbox: { jobs: 4 } });
    await run("story");
    await log.until(() => log.named("task.finished").length === 4);
    expect(
      sandbox
        .ledger()
        .map(({ key }) => Number(key))
        .toSorted((a, b) => a - b),
    ).toEqual([1, 2, 3, 4]);
  });

  it("that match nothing is not started, and says so", async () => {
    const policies = "  - { name: story, service: main, repository: HR, run: { fromMasks: { name: Nowhere } } }";
    const { run } = await worldForTest({ policies });
    expect(await run("story")).toMatchObject({ status: "not-started", reason: "no-target" });
  });
});
