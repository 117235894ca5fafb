// Polls that look back: what is new since the last one, what changed about the outcome, and what
// offends.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { policyChecks } from "../../src/cli/shared-options.ts";
import { loadPolicies } from "../../src/config/load-policies.ts";
import { type ListServer, startListServer } from "../support/list-server.ts";
import { type World, worldForTest } from "../support/world.ts";

const approvals = (...ids: readonly number[]) =>
  ids.map((approvalId) => ({ approvalId, itemName: `Draft ${approvalId}` }));

/** A world with one more service, `lists`, whose approvals the test changes. */
async function startOverLists(poll: string, replicas = 1): Promise<{ world: World; server: ListServer }> {
  const server = await startListServer({ approvals: approvals(1, 2) });
  onTestFinished(() => server.stop());
  const world = await worldForTest({
    replicas,
    policies: `  - { name: story, service: lists, poll: ${poll} }`,
    moreServices: { lists: server.url },
  });
  return { world, server };
}

describe("a poll that looks back", () => {
  it("finds what is new since the last one, names it once, and recovers", async () => {
    const { world: here, server: there } = await startOverLists('{ list: approvals, expect: "size(new) == 0" }', 2);
    expect(await here.run("story")).toMatchObject({ status: "succeeded", changed: false, count: 2 });
    there.lists["approvals"] = approvals(2, 3);
    expect(await here.run("story")).toMatchObject({
      status: "failed",
      changed: true,
      offending: 1,
      offendingItems: ["Draft 3 (3)"],
    });
    there.lists["approvals"] = approvals(2, 3, 4);
    // Failed again, but because of something else: that is news, too.
    expect(await here.run("story")).toMatchObject({ status: "failed", changed: true, offendingItems: ["Draft 4 (4)"] });
    expect(await here.run("story")).toMatchObject({ status: "succeeded", changed: true });
    expect(await here.run("story")).toMatchObject({ status: "succeeded", changed: false });
  });

  it("still calls new what an undecided poll saw", async () => {
    const expectation = '{ list: approvals, expect: "new.all(x, x.itemName != \\"Draft 4\\")" }';
    const { world: here, server: there } = await startOverLists(expectation);
    await here.run("story");
    there.lists["approvals"] = [...approvals(1, 2), { approvalId: 3 }];
    expect(await here.run("story")).toMatchObject({ status: "unknown", reason: "expectation-unreadable" });
    there.lists["approvals"] = approvals(1, 2, 3, 4);
    expect(await here.run("story")).toMatchObject({ status: "failed", offendingItems: ["Draft 3 (3)", "Draft 4 (4)"] });
  });

  it("compares with the count of the last one", async () => {
    const { world: here, server: there } = await startOverLists(
      '{ list: approvals, expect: "previous == null || count <= previous.count" }',
    );
    const statuses: string[] = [];
    for (const ids of [[1, 2], [1], [1, 2, 3], [1, 2, 3]]) {
      there.lists["approvals"] = approvals(...ids);
      statuses.push((await here.run("story")).status);
    }
    expect(statuses).toEqual(["succeeded", "succeeded", "failed", "succeeded"]);
  });

  it("begins anew when its policy polls another list", async () => {
    const { world: here, server: there } = await startOverLists('{ list: approvals, expect: "size(new) == 0" }');
    await here.run("story");
    there.lists["trigger"] = [{ triggerId: 7, isActive: true }];
    await here.configure({
      policies: '  - { name: story, service: lists, poll: { list: triggers, expect: "size(new) == 0" } }',
    });
    expect(await here.run("story")).toMatchObject({ status: "succeeded", target: "triggers" });
  });
});

describe("what changed about a poll", () => {
  it("is its class: good, bad or unknown; once each, on whichever replica", async () => {
    const { world: here, server: there } = await startOverLists('{ list: approvals, expect: "count <= 2" }', 2);
    const seen: unknown[] = [];
    const poll = async () => {
      const { status, changed } = await here.run("story");
      seen.push([status, changed]);
    };
    await poll();
    there.lists["approvals"] = approvals(1, 2, 3);
    await poll();
    await poll();
    there.status = 404;
    await poll();
    await poll();
    there.status = 200;
    there.lists["approvals"] = [];
    await poll();
    await poll();
    expect(seen).toEqual([
      ["succeeded", false],
      ["failed", true],
      ["failed", false],
      ["unknown", true],
      ["unknown", false],
      ["succeeded", true],
      ["succeeded", false],
    ]);
  });

  it("is reported at a first bad poll, and left out where the list was not read", async () => {
    const { world: here } = await startOverLists('{ list: approvals, expect: "count == 0" }');
    expect(await here.run("story")).toMatchObject({ status: "failed", changed: true });
    await here.enqueue("story", Date.parse("2026-01-01T00:00:00Z"));
    await here.log.until(() => here.log.outcomesOf("story").length === 2);
    const [, late] = here.log.outcomesOf("story");
    expect(late).toMatchObject({ status: "missed" });
    expect(late?.changed).toBeUndefined();
  });
});

describe("every list", () => {
  const lists = ["activities", "conflictDetails", "approvals", "triggers", "authActivities", "masks"];

  it.each(lists)("%s can be counted and read", async (list) => {
    const policy = (name: string, expect_: string) =>
      `  - { name: ${name}, service: main, poll: { list: ${list}, expect: "${expect_}" } }`;
    const { run } = await worldForTest({
      policies: [policy("counted", "count >= 0"), policy("read", "size(items) == count && size(new) == 0")].join("\n"),
    });
    const [counted, read] = [await run("counted"), await run("read")];
    expect([counted.status, read.status]).toEqual(["succeeded", "succeeded"]);
    expect(read.count).toBe(counted.count);
  });

  it("of over 10,000 items is unknown for items, and can be counted", async () => {
    const { run } = await worldForTest({
      policies: [
        '  - { name: items, service: main, poll: { list: activities, expect: "size(new) < 5" } }',
        '  - { name: count, service: main, poll: { list: activities, expect: "count == 10001" } }',
      ].join("\n"),
      sandbox: { activities: 10_001, pageSize: 1_000 },
    });
    expect(await run("items")).toMatchObject({
      status: "unknown",
      evidence: "none",
      reason: "expectation-unreadable",
      detail: expect.stringContaining("more than 10000 items"),
      count: null,
    });
    expect(await run("count")).toMatchObject({ status: "succeeded", count: 10_001 });
  });
});

describe("config/watch.yaml", () => {
  it("is right as it is, and each policy sees at the sandbox what it is for", async () => {
    const file = join(import.meta.dirname, "../../config/watch.yaml");
    expect(await loadPolicies(file, { variables: { SYNC_TOKEN: "x" }, checks: policyChecks })).toMatchObject({
      ok: true,
    });
    const [, policies = ""] = (await readFile(file, "utf8")).split("\npolicies:\n");
    // Only what the test runs by hand runs: each look compares with the one before.
    const { run, sandbox } = await worldForTest({
      policies: `${policies.replaceAll(/schedule: .*/g, 'schedule: { cron: "0 0 1 1 *" }')}
  - { name: work, service: main, repository: HR, run: { syncJobs: [5] } }`,
    });
    const names = ["approvals-waiting", "inactive-triggers", "conflicts-growing", "masks-changed", "account-activity"];
    const look = async () => {
      const found: unknown[] = [];
      for (const name of names) {
        const { status, changed, count, offending } = await run(name);
        found.push([name, status, changed, count, offending]);
      }
      return found;
    };
    expect(await look()).toEqual([
      ["approvals-waiting", "succeeded", false, 0, undefined],
      ["inactive-triggers", "failed", true, 20, 14],
      ["conflicts-growing", "succeeded", false, 4, undefined],
      ["masks-changed", "succeeded", false, 60, undefined],
      ["account-activity", "succeeded", false, 40, undefined],
    ]);
    // The run of sync job 5 leaves a conflict.
    await run("work");
    await fetch(`${sandbox.baseUrl}/odata/syncjobsdocmasks(7)`, {
      method: "PUT",
      headers: { authorization: `Bearer ${sandbox.token}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "Renamed" }),
    });
    expect(await look()).toEqual([
      ["approvals-waiting", "succeeded", false, 0, undefined],
      ["inactive-triggers", "failed", false, 20, 14],
      ["conflicts-growing", "failed", true, 5, undefined],
      ["masks-changed", "failed", true, 60, 1],
      ["account-activity", "succeeded", false, 40, undefined],
    ]);
  });
});
