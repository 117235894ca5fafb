// P6 and the hot reload: policies and services that change under a running Syncline.
import { describe, expect, it, onTestFinished } from "vitest";
import { startSandbox } from "../../src/sandbox/sandbox.ts";
import { shortTiming } from "../support/short-timing.ts";
import type { LoggedEvent } from "../support/test-log.ts";
import { type World, type WorldOptions, worldForTest } from "../support/world.ts";

const start = (policies: string, options: Omit<WorldOptions, "redis" | "policies"> = {}) =>
  worldForTest({ policies, ...options });

const started = (name: string, syncJob: number, seconds = 1) =>
  `  - { name: ${name}, service: main, repository: HR, run: { syncJobs: [${syncJob}] }, schedule: { every: ${seconds}s }, overlap: allow, follow: { until: accepted } }\n`;

/** Waits for outcomes of a policy that come from now on. */
async function untilMore({ log }: World, policy: string, count: number) {
  const before = log.outcomesOf(policy).length;
  await log.until(() => log.outcomesOf(policy).length >= before + count);
  return log.outcomesOf(policy).slice(before);
}

describe("policies that change while Syncline runs", () => {
  it("begin, change and end without a restart, and no slot is fired twice", async () => {
    const world = await start(started("first", 1));
    await untilMore(world, "first", 1);
    expect(await world.configure({ policies: started("first", 1) + started("second", 2) })).toMatchObject({
      event: "config.reloaded",
      policiesAddedNames: ["second"],
    });
    await untilMore(world, "second", 2);
    expect(await world.configure({ policies: started("first", 3) + started("second", 2, 2) })).toMatchObject({
      policiesChangedNames: ["first", "second"],
    });
    // What is queued already still has the old sync job.
    const isChanged = ({ event, policy, target }: LoggedEvent) =>
      event === "task.finished" && policy === "first" && target === "3";
    expect(await world.log.until(isChanged)).toMatchObject({ status: "accepted" });
    await untilMore(world, "second", 2);
    expect(await world.configure({ policies: started("second", 2, 2) })).toMatchObject({
      policiesRemovedNames: ["first"],
    });
    await untilMore(world, "second", 2);
    const queued = () => world.log.named("slot.queued").filter(({ policy }) => policy === "first").length;
    const last = queued();
    await untilMore(world, "second", 1);
    expect(queued()).toBe(last);
    await world.log.until(() => world.log.outcomesOf("first").length === last);
    const keys = world.sandbox.ledger().map(({ idempotencyKey }) => idempotencyKey);
    expect(new Set(keys).size).toBe(keys.length);
  });

  it("leave nothing without an outcome when removed: a queued task is skipped", async () => {
    const hanging = "  - { name: long, service: main, repository: HR, run: { syncJobs: [5] }, overlap: queue }\n";
    const world = await start(hanging + started("other", 1), { sandbox: { runMs: [60_000, 60_000] } });
    await world.enqueue("long");
    await world.log.until(({ event, policy }) => event === "task.started" && policy === "long");
    await world.enqueue("long");
    await world.configure({ policies: started("other", 1) });
    await world.log.until(() => world.log.outcomesOf("long").length === 2);
    expect(world.log.outcomesOf("long").map(({ status, reason }) => [status, reason])).toEqual(
      expect.arrayContaining([
        ["unknown", "policy-removed"],
        ["skipped", "policy-removed"],
      ]),
    );
    expect(world.starts(5)).toBe(1);
  });

  it("are waited for when a new policy's task reaches a replica that lacks it", async () => {
    const world = await start(started("steady", 1), { timing: { ...shortTiming, unknownPolicyForMs: 60_000 } });
    // As another replica, which knows it already, would.
    await world.enqueueOf(started("early", 2), "early");
    await untilMore(world, "steady", 2);
    expect(world.log.outcomesOf("early")).toEqual([]);
    await world.configure({ policies: started("steady", 1) + started("early", 2, 3_600) });
    await world.log.until(() => world.log.outcomesOf("early").length > 0);
    expect(world.log.outcomesOf("early")).toMatchObject([{ status: "accepted" }]);
  });

  it("never stop it when broken: the last good ones stay until corrected (P6)", async () => {
    const world = await start(started("steady", 1));
    await untilMore(world, "steady", 1);
    const broken = [
      "",
      "{{{",
      "apiVersion: syncline/v1\npolicies: &all [*all]\n",
      "apiVersion: syncline/v1\nservices: {}\npolicies:\n  - { nam: steady }\n",
      `apiVersion: syncline/v1\nservices:\n  main: { baseUrl: "http://127.0.0.1:1", token: { env: NOT_SET } }\npolicies:\n${started("steady", 1)}`,
      "\u0000\u0001".repeat(1_000),
    ];
    for (const text of broken) {
      const event = await world.configure({ text });
      expect(event).toMatchObject({ event: "config.rejected", level: "error" });
      expect(event["problems"]).toBeGreaterThan(0);
      expect(event["message"]).toBeTruthy();
      for (const { status } of await untilMore(world, "steady", 1)) expect(status).toBe("accepted");
    }
    expect(world.log.named("config.rejected")).toHaveLength(broken.length);
    expect(await world.configure({ policies: started("steady", 2) })).toMatchObject({
      event: "config.reloaded",
      policiesChangedNames: ["steady"],
    });
    await world.log.until(() => world.starts(2) > 0);
    const slots = world.log.named("slot.queued").map(({ slot }) => slot);
    expect(new Set(slots).size).toBe(slots.length);
  });
});

describe("services that change while Syncline runs", () => {
  it("come, move and go with what stands in their queues", async () => {
    const more = await startSandbox({ activities: 5, token: "test-only" });
    onTestFinished(() => more.stop());
    const moved = await startSandbox({ activities: 5 });
    onTestFinished(() => moved.stop());
    const world = await start(started("home", 1));
    const poll = "  - { name: abroad, service: more, poll: { list: triggers }, schedule: { every: 1s } }\n";
    const policies = started("home", 1) + poll;
    expect(await world.configure({ policies, moreServices: { more: more.baseUrl } })).toMatchObject({
      servicesAddedNames: ["more"],
    });
    const [first] = await untilMore(world, "abroad", 1);
    // The other sandbox has another token: not let in, but asked.
    expect(first).toMatchObject({ service: "more", reason: "no-access" });
    expect(more.requests()["GetTriggers"]).toBeDefined();
    expect(await world.configure({ policies, moreServices: { more: moved.baseUrl } })).toMatchObject({
      servicesChangedNames: ["more"],
    });
    await world.log.until(() => moved.requests()["GetTriggers"] !== undefined);
    expect(await world.configure({ policies: started("home", 1) })).toMatchObject({ servicesRemovedNames: ["more"] });
    await world.log.until(({ event, service }) => event === "service.stopped" && service === "more");
    const queued = world.log.named("slot.queued").filter(({ policy }) => policy === "abroad").length;
    expect(world.log.outcomesOf("abroad")).toHaveLength(queued);
    await untilMore(world, "home", 1);
  });

  it("follow a changed mapping: a run that was ambiguous before is then direct", async () => {
    const run = "  - { name: story, service: main, repository: HR, run: { syncJobs: [3] } }\n";
    const world = await start(run, { mapping: false });
    expect(await world.run("story")).toMatchObject({ status: "succeeded", evidence: "inferred" });
    expect(await world.configure({ mapping: true })).toMatchObject({ servicesChangedNames: ["main"] });
    expect(await world.run("story")).toMatchObject({ status: "succeeded", evidence: "direct" });
  });
});
