// Starts whose answer got lost, with others who start the same sync job: by hand, by another
// policy, or by the operator's own retry.
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { parseFault } from "../../src/sandbox/faults.ts";
import { untilStruck } from "../support/struck-faults.ts";
import { type World, worldForTest } from "../support/world.ts";

const story = (syncJob: number, more = "") =>
  `  - { name: story, service: main, repository: HR, run: { syncJobs: [${syncJob}] }${more} }`;

/** Somebody starts a sync job by hand, past Syncline. */
async function startByHand({ sandbox }: World, syncJob: number): Promise<void> {
  const answer = await fetch(`${sandbox.baseUrl}/api/syncjobs/run(${syncJob})?repository=HR`, {
    method: "POST",
    headers: { authorization: `Bearer ${sandbox.token}` },
  });
  expect(answer.status).toBe(200);
}

describe("onUnknown: retry", () => {
  const retry = story(3, ", onUnknown: retry");

  it("resends when nothing shows that the start arrived, and says it sent twice", async () => {
    const { run, starts, sandbox, log } = await worldForTest({
      policies: retry,
      faults: ["reset,op=RunSyncJob,first=1"],
    });
    expect(await run("story")).toMatchObject({ status: "succeeded", answerLost: true, sends: 2 });
    expect(starts(3)).toBe(1);
    expect(sandbox.requests()["RunSyncJob"]).toEqual({ cut: 1, 200: 1 });
    expect(log.named("task.sent-again")).toMatchObject([{ sends: 2 }]);
  });

  it("looks first: a start that happened is not sent again", async () => {
    const { run, starts } = await worldForTest({ policies: retry, faults: ["lost-answer,op=RunSyncJob,first=1"] });
    const outcome = await run("story");
    expect(outcome).toMatchObject({ status: "succeeded", answerLost: true });
    expect(outcome).not.toHaveProperty("sends");
    expect(starts(3)).toBe(1);
  });

  it("ends as unknown after three requests without an answer", async () => {
    const { run, sandbox } = await worldForTest({
      policies: retry,
      faults: ["reset,op=RunSyncJob"],
    });
    expect(await run("story")).toMatchObject({ status: "unknown", reason: "answer-lost", sends: 3 });
    expect(sandbox.requests()["RunSyncJob"]).toEqual({ cut: 3 });
  });

  it("does not say not-started when only the second request was refused", async () => {
    const { run } = await worldForTest({
      policies: retry,
      faults: ["reset,op=RunSyncJob,first=1", "401,op=RunSyncJob"],
    });
    expect(await run("story")).toMatchObject({ status: "unknown", reason: "answer-lost", sends: 3 });
  });

  it("repeats an activation too", async () => {
    const policies = "  - { name: story, service: main, activate: { syncJobs: [3] }, onUnknown: retry }";
    const { run, sandbox } = await worldForTest({ policies, faults: ["reset,op=EnableSyncJobById,first=1"] });
    expect(await run("story")).toMatchObject({ status: "succeeded", answerLost: true, sends: 2 });
    expect(sandbox.ledger()).toHaveLength(1);
  });
});

describe("a start whose answer is its end (follow.until: accepted)", () => {
  const accepted = story(3, ", follow: { until: accepted }");
  const confirmed = { status: "accepted", evidence: "inferred", reason: "start-confirmed", confidence: "likely" };

  it("reads nothing, holds nothing, and ends with the answer", async () => {
    const { run, sandbox } = await worldForTest({ policies: accepted });
    expect(await run("story")).toMatchObject({ status: "accepted", evidence: "direct", answerLost: false });
    expect(await run("story")).toMatchObject({ status: "accepted" });
    expect(sandbox.requests()).toEqual({ RunSyncJob: { 200: 2 } });
  });

  it("is confirmed by an activity begun after it, where the mapping knows beginnings", async () => {
    const { run, starts } = await worldForTest({
      policies: accepted,
      mapping: "timed",
      faults: ["lost-answer,op=RunSyncJob,first=1"],
    });
    expect(await run("story")).toMatchObject({ ...confirmed, answerLost: true });
    expect(starts(3)).toBe(1);
  });

  it("is not answered well when the answer was an error and an activity confirms it", async () => {
    const { run, starts } = await worldForTest({
      policies: accepted,
      mapping: "timed",
      faults: ["500-after,op=RunSyncJob,first=1"],
    });
    const outcome = await run("story");
    expect(outcome).toMatchObject(confirmed);
    expect(outcome.detail).toMatch(/status 500.*; an activity of it confirms the start$/);
    expect(starts(3)).toBe(1);
  });

  it("is not confirmed by an earlier, unread start by hand", async () => {
    const world = await worldForTest({ policies: accepted, mapping: "timed", faults: ["reset,op=RunSyncJob,after=1"] });
    await startByHand(world, 3);
    expect(await world.run("story")).toMatchObject({ status: "unknown", reason: "answer-lost" });
    expect(world.starts(3)).toBe(1);
  });

  it("stays unknown where the mapping does not say when activities begin", async () => {
    const { run, starts } = await worldForTest({ policies: accepted, faults: ["lost-answer,op=RunSyncJob,first=1"] });
    expect(await run("story")).toMatchObject({ status: "unknown", reason: "answer-lost" });
    expect(starts(3)).toBe(1);
  });
});

describe("onUnknown: give-up", () => {
  it("does not look", async () => {
    const { run, sandbox } = await worldForTest({
      policies: story(3, ", onUnknown: give-up"),
      faults: ["lost-answer,op=RunSyncJob"],
    });
    expect(await run("story")).toMatchObject({ status: "unknown", reason: "answer-lost" });
    expect(sandbox.requests()["RunSyncJob"]).toEqual({ cut: 1 });
  });
});

describe("a start without an activity within follow.appearsWithin", () => {
  const vouched = (name: string, syncJob: number, more = "") =>
    story(syncJob, `, follow: { appearsWithin: 1s }${more}`).replace("name: story", `name: ${name}`);

  it("did not happen: resent once, and not-started when that is absent as well", async () => {
    const { run, starts, log } = await worldForTest({
      policies: [vouched("once", 3), vouched("never", 4), vouched("lost", 7)].join("\n"),
      faults: ["reset,op=RunSyncJob,key=3,first=1", "reset,op=RunSyncJob,key=4", "lost-answer,op=RunSyncJob,key=7"],
    });
    const [once, never, lost] = await Promise.all([run("once"), run("never"), run("lost")]);
    expect(once).toMatchObject({ status: "succeeded", answerLost: true, sends: 2 });
    expect(never).toMatchObject({ status: "not-started", evidence: "inferred", reason: "answer-lost", sends: 2 });
    expect(never).toMatchObject({
      startedAt: null,
      detail: expect.stringContaining("no activity of it appeared within"),
    });
    expect(lost).toMatchObject({ status: "succeeded", answerLost: true });
    expect([starts(3), starts(4), starts(7)]).toEqual([1, 0, 1]);
    expect(log.named("task.sent-again")).toHaveLength(2);
  });

  it("stays unknown where it did happen, by a service's clock that lies hours behind", async () => {
    const { run, starts, log } = await worldForTest({
      policies: story(3, ", follow: { until: accepted, appearsWithin: 1s }"),
      mapping: "timed",
      sandbox: { clock: { ...systemClock, nowMs: () => systemClock.nowMs() - 7_200_000 } },
      faults: ["lost-answer,op=RunSyncJob,first=1"],
    });
    expect(await run("story")).toMatchObject({ status: "unknown", reason: "answer-lost" });
    expect(starts(3)).toBe(1);
    expect(log.named("task.sent-again")).toEqual([]);
  });

  it("stays unknown where the activities say nothing of whose they are", async () => {
    const { run, sandbox } = await worldForTest({
      policies: vouched("story", 3),
      mapping: false,
      faults: ["reset,op=RunSyncJob"],
    });
    expect(await run("story")).toMatchObject({ status: "unknown", reason: "answer-lost" });
    expect(sandbox.requests()["RunSyncJob"]).toEqual({ cut: 1 });
  });
});

describe("a sync job that an operator starts by hand at the same time", () => {
  it("leaves it open whose an activity is, unless the mapping says when it began", async () => {
    const world = await worldForTest({ policies: story(3), sandbox: { runMs: [10_000, 10_000] } });
    const outcome = world.run("story");
    await world.log.until(({ event }) => event === "task.started");
    await startByHand(world, 3);
    expect(await outcome).toMatchObject({ status: "succeeded", evidence: "inferred", confidence: "ambiguous" });
  });

  it("never turns a lost start into a success: one of two activities may be ours", async () => {
    const world = await worldForTest({ policies: story(3), faults: ["reset,op=RunSyncJob,first=1"] });
    const outcome = world.run("story");
    await world.log.until(({ event }) => event === "task.in-doubt");
    // No walk sees one of the two without the other.
    world.sandbox.setFaults([parseFault("500-before,op=GetActivities")]);
    await Promise.all([startByHand(world, 3), startByHand(world, 3)]);
    world.sandbox.setFaults([]);
    expect(await outcome).toMatchObject({ status: "unknown", reason: "answer-lost", confidence: "ambiguous" });
  });
});

describe("two runs of one sync job at once (overlap: allow)", () => {
  it("count each activity once", async () => {
    const other = story(3, ", overlap: allow").replace("name: story", "name: other");
    const world = await worldForTest({
      policies: `${story(3, ", overlap: allow")}\n${other}`,
      sandbox: { runMs: [1_500, 1_500] },
    });
    const outcomes = await Promise.all([world.run("story"), world.run("other")]);
    for (const outcome of outcomes)
      expect(outcome).toMatchObject({ status: "succeeded", detail: expect.stringMatching(/^1 activity finished/) });
    expect(world.starts(3)).toBe(2);
  });
});

describe("stopping", () => {
  it("does not wait for the page that a walk is reading", async () => {
    const { app, log, enqueue, sandbox } = await worldForTest({
      policies: story(3),
      faults: ["latency,op=GetActivities,ms=60000"],
    });
    await enqueue("story");
    await untilStruck(sandbox);
    await app.stop();
    expect(log.named("queue.drain-incomplete")).toEqual([]);
  });

  it("lets a request that is under way come to its answer, and starts nothing more", async () => {
    const { app, log, enqueue, sandbox, starts } = await worldForTest({
      policies: story(3, ", follow: { until: accepted }"),
      faults: ["latency,op=RunSyncJob,ms=1500"],
    });
    await enqueue("story");
    await untilStruck(sandbox);
    await app.stop();
    expect(log.outcomesOf("story")).toMatchObject([{ status: "accepted", answerLost: false }]);
    expect(log.named("queue.drain-incomplete")).toEqual([]);
    expect(starts(3)).toBe(1);
  });
});
