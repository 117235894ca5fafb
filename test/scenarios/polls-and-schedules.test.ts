import { describe, expect, it } from "vitest";
import { worldForTest } from "../support/world.ts";

const poll = (text: string) => `  - { name: story, service: main, repository: HR, poll: ${text} }`;

describe("a poll", () => {
  it("succeeds while its expectation holds, and reads only the count for it", async () => {
    const { run, sandbox } = await worldForTest({ policies: poll('{ list: triggers, expect: "count == 20" }') });
    expect(await run("story")).toMatchObject({ status: "succeeded", reason: "expectation-met", count: 20 });
    expect(sandbox.requests()).toEqual({ GetTriggers: { 200: 1 } });
  });

  it("fails when it does not, and says what the count is", async () => {
    const { run } = await worldForTest({ policies: poll('{ list: triggers, expect: "count < 5" }') });
    const outcome = await run("story");
    expect(outcome).toMatchObject({ status: "failed", reason: "expectation-not-met", count: 20 });
    expect(outcome.detail).toContain("count is 20");
  });

  it("reads all pages for an expectation over items", async () => {
    const { run } = await worldForTest({
      policies: poll('{ list: activities, expect: "items.all(item, item.syncJobId > 0)" }'),
      sandbox: { activities: 250 },
    });
    expect(await run("story")).toMatchObject({ status: "succeeded", count: 250 });
  });

  it("is unknown when an item lacks what the expectation asks for", async () => {
    const { run } = await worldForTest({
      policies: poll('{ list: triggers, expect: "items.all(item, item.nowhere > 0)" }'),
    });
    expect(await run("story")).toMatchObject({ status: "unknown", reason: "expectation-unreadable" });
  });

  it("that the service fails is tried again and succeeds", async () => {
    const { run, log } = await worldForTest({
      policies: poll("{ list: approvals }"),
      faults: ["500-before,op=GetApprovals,first=4"],
    });
    expect(await run("story")).toMatchObject({ status: "succeeded", attempts: 2 });
    expect(log.named("task.retried")).toHaveLength(1);
    expect(log.named("request.retried").length).toBeGreaterThan(0);
  });

  it("that the service refuses is unknown at once: the list was not read", async () => {
    const { run, sandbox } = await worldForTest({
      policies: poll("{ list: approvals }"),
      faults: ["401,op=GetApprovals"],
    });
    expect(await run("story")).toMatchObject({ status: "unknown", reason: "no-access", attempts: 1 });
    expect(sandbox.requests()["GetApprovals"]?.["401"]).toBeLessThanOrEqual(2);
  });
});

describe("an activation", () => {
  it("succeeds with the service's answer, sent once", async () => {
    const { run, sandbox } = await worldForTest({
      policies: "  - { name: story, service: main, activate: { syncJobs: [8] } }",
    });
    expect(await run("story")).toMatchObject({ status: "succeeded", kind: "activate", repository: null });
    expect(sandbox.ledger().map(({ operation }) => operation)).toEqual(["EnableSyncJobById"]);
  });

  it("whose answer gets lost is unknown, and not sent again", async () => {
    const { run, sandbox } = await worldForTest({
      policies: "  - { name: story, service: main, activate: { syncJobs: [8] } }",
      faults: ["lost-answer,op=EnableSyncJobById"],
    });
    expect(await run("story")).toMatchObject({ status: "unknown", reason: "answer-lost", answerLost: true });
    expect(sandbox.ledger()).toHaveLength(1);
  });
});

describe("a schedule", () => {
  it("brings one outcome for each slot and sync job, on time", async () => {
    const policies =
      "  - { name: story, service: main, repository: HR, run: { syncJobs: [3, 4] }, schedule: { every: 2s }, overlap: allow, follow: { until: accepted } }";
    const { log, sandbox } = await worldForTest({ policies });
    await log.until(() => log.named("task.finished").length >= 6);
    const slots = log.named("slot.queued").map((event) => Date.parse(String(event["slot"])));
    expect(slots.every((slotMs) => slotMs % 2_000 === 0)).toBe(true);
    expect(new Set(slots).size).toBe(slots.length);
    const keys = sandbox.ledger().map(({ idempotencyKey }) => idempotencyKey);
    expect(new Set(keys).size).toBe(keys.length);
  });
});

describe("the log", () => {
  it("never holds the token, whatever fails", async () => {
    const token = "canary-7f3a9c";
    const { run, log } = await worldForTest({
      policies: poll("{ list: approvals }"),
      sandbox: { token },
      faults: ["401,op=GetApprovals,first=3", "truncate,op=GetApprovals"],
    });
    await run("story");
    expect(JSON.stringify(log.events)).not.toContain(token);
  });
});
