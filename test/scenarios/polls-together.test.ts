// Several policies that poll one list cost one reading of it, over all replicas, and each still
// judges for itself.
import { describe, expect, it } from "vitest";
import { type World, worldForTest } from "../support/world.ts";

const policy = (name: string, poll: string) =>
  `  - { name: ${name}, service: main, repository: HR, poll: { list: ${poll} } }`;

/** Puts these policies into the queue as one slot, and waits for what becomes of them. */
async function pollAll({ enqueue, log }: World, names: readonly string[], slotMs = Date.now()) {
  const before = new Map(names.map((name) => [name, log.outcomesOf(name).length]));
  await Promise.all(names.map((name) => enqueue(name, slotMs)));
  await log.until(() => names.every((name) => log.outcomesOf(name).length > (before.get(name) ?? 0)));
  return names.map((name) => log.outcomesOf(name).at(-1));
}

/** How often the sandbox was asked for a page of a list, or for its count. */
function asked({ sandbox }: World, operation: "GetActivities" | "GetApprovals"): number {
  return Object.values(sandbox.requests()[operation] ?? {}).reduce((sum, count) => sum + count, 0);
}

describe("several poll policies that are due at once", () => {
  it("cost one poll's requests over two replicas, and each judges the list", async () => {
    const names = ["many", "few", "whose", "fresh", "named"];
    const polls = [
      'activities, expect: "size(items) == 120"',
      'activities, expect: "size(items) < 100"',
      'activities, offending: "item.syncJobId == 1"',
      'activities, expect: "size(new) == 0"',
      'activities, expect: "items.all(i, has(i.activityId))"',
    ];
    const policies = polls.map((poll, index) => policy(names[index] ?? "", poll)).join("\n");
    const world = await worldForTest({ policies, replicas: 2 });
    const first = await pollAll(world, names);
    expect(first.map((one) => one?.count)).toEqual([120, 120, 120, 120, 120]);
    expect(first.map((one) => one?.status).slice(0, 2)).toEqual(["succeeded", "failed"]);
    // 120 items are two pages.
    expect(asked(world, "GetActivities")).toBe(2);
    await pollAll(world, names);
    // The next slot is another reading.
    expect(asked(world, "GetActivities")).toBe(4);
  });

  it("of approvals cost one reading and one count, for any subscribers", async () => {
    const names = ["a", "b", "c", "d", "e"];
    const polls = ["approvals, expect: 'count <= 20'", 'approvals, offending: "item.itemName == \\"x\\""'];
    const policies = names.map((name, index) => policy(name, polls[index % 2] ?? "")).join("\n");
    const world = await worldForTest({ policies, replicas: 2 });
    const outcomes = await pollAll(world, names);
    expect(outcomes.map((one) => one?.status)).toEqual(names.map(() => "succeeded"));
    expect(asked(world, "GetApprovals")).toBe(2);
  });

  it("that find something new find it each once, and again only when there is more", async () => {
    const names = ["one", "two", "three"];
    const policies = names.map((name) => policy(name, 'activities, expect: "size(new) == 0"'));
    policies.push("  - { name: work, service: main, repository: HR, run: { syncJobs: [3] } }");
    const world = await worldForTest({ policies: policies.join("\n"), replicas: 2 });
    const statuses = async () => (await pollAll(world, names)).map((one) => [one?.status, one?.offending]);
    expect(await statuses()).toEqual(names.map(() => ["succeeded", undefined]));
    await world.run("work");
    expect(await statuses()).toEqual(names.map(() => ["failed", 1]));
    expect(await statuses()).toEqual(names.map(() => ["succeeded", undefined]));
  });
});
