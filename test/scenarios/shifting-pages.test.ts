// Offset paging that shifts while it is read delivers items twice, or not at all: a poll counts
// each of them once, and tells none as gone that only slipped past it.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { startListServer } from "../support/list-server.ts";
import { redisForTest } from "../support/redis.ts";
import { startWorld, worldForTest } from "../support/world.ts";

const redis = redisForTest();

it("a poll over items counts an item that two pages hold once", async () => {
  const approvals = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => ({ approvalId: from + index, itemName: "x" }));
  const server = createServer((request, response) => {
    const second = request.url?.includes("$skip=100") ?? false;
    const value = second ? approvals(60, 130) : approvals(0, 100);
    const link = second ? {} : { "@odata.nextLink": "approvals?$skip=100" };
    response
      .setHeader("content-type", "application/json")
      .end(JSON.stringify({ "@odata.context": "$metadata#approvals", value, ...link }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const world = await startWorld({
    redis,
    policies: '  - { name: story, service: shifting, poll: { list: approvals, expect: "items.size() <= 130" } }',
    moreServices: { shifting: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
  });
  try {
    expect(await world.run("story")).toMatchObject({ status: "succeeded", count: 130 });
  } finally {
    await world.stop();
    server.closeAllConnections();
    server.close();
  }
});

describe("a poll of a list of two pages, of which one item is deleted between them", () => {
  const approvals = (...ids: readonly number[]) => ids.map((approvalId) => ({ approvalId, itemName: "x" }));

  /** Polls over and over; `slip`: meanwhile 1 is deleted, and 3 slips over the page boundary. */
  async function startPolls(poll: string) {
    const { server, world, pages, again } = await startLists(poll, ["story"]);
    const run = async () => {
      const before = pages();
      const { status, changed, count, offendingItems } = await world.run("story");
      return { status, changed, count, offendingItems, requests: pages() - before };
    };
    const slip = () => {
      server.afterFirst = () => {
        server.lists["approvals"] = approvals(2, 3, 4);
      };
      return run();
    };
    /** Sets the list, and changes it after the first page of the first and the second reading. */
    const change = (...[now, ...later]: readonly (readonly number[])[]) => {
      server.lists["approvals"] = approvals(...(now ?? []));
      if (later.length > 0) server.afterFirst = () => change(...later);
    };
    return { server, run, slip, change, again };
  }

  async function startLists(poll: string, names: readonly string[]) {
    const server = await startListServer({ approvals: approvals(1, 2, 3, 4) }, 2);
    onTestFinished(() => server.stop());
    const policies = names.map((name) => `  - { name: ${name}, service: lists, poll: { list: approvals, ${poll} } }`);
    const world = await worldForTest({
      policies: policies.join("\n"),
      moreServices: { lists: server.url },
      replicas: names.length > 1 ? 2 : 1,
    });
    // The feed's walk asks for the count.
    const pages = () => server.asked.filter((one) => one === "approvals").length;
    /** How the second readings of the polls ended. */
    const again = () => world.log.named("list.read-again").filter(({ reader }) => reader === "poll");
    return { server, world, pages, again };
  }

  it("does not tell a living one as gone: by an expectation", async () => {
    const { server, run, slip, again } = await startPolls('expect: "items.exists(i, i.approvalId == 3)"');
    expect(await run()).toMatchObject({ status: "succeeded", requests: 2 });
    expect(await slip()).toMatchObject({ status: "succeeded", changed: false });
    expect(await run()).toMatchObject({ status: "succeeded", count: 3, requests: 2 });
    server.lists["approvals"] = approvals(2, 4, 5);
    expect(await run()).toMatchObject({ status: "failed", changed: true, count: 3, requests: 4 });
    expect(await run()).toMatchObject({ status: "failed", changed: false, requests: 2 });
    expect(again()).toMatchObject([{ result: "other" }, { result: "same" }]);
  });

  it("does not tell a living one as gone: by what offends", async () => {
    const { server, run, slip } = await startPolls('offending: "item.approvalId == 3"');
    expect(await run()).toMatchObject({ status: "failed", requests: 2 });
    expect(await slip()).toMatchObject({ status: "failed", changed: false });
    server.lists["approvals"] = approvals(2, 4, 5);
    expect(await run()).toMatchObject({ status: "succeeded", changed: true, requests: 4 });
    server.lists["approvals"] = approvals(2, 4, 3);
    expect(await run()).toMatchObject({ status: "failed", changed: true, requests: 2 });
  });

  it("does not find it new afterwards", async () => {
    const { server, run, slip } = await startPolls('expect: "size(new) == 0"');
    expect(await run()).toMatchObject({ status: "succeeded", requests: 2 });
    expect(await slip()).toMatchObject({ status: "succeeded", requests: 4 });
    expect(await run()).toMatchObject({ status: "succeeded", changed: false });
    server.lists["approvals"] = approvals(2, 3, 4, 5);
    expect(await run()).toMatchObject({ status: "failed", offendingItems: ["x (5)"], requests: 2 });
  });

  it("does not find that the list grew when it is back", async () => {
    const { run, slip } = await startPolls('expect: "previous == null || items.size() <= previous.count"');
    await run();
    expect(await slip()).toMatchObject({ status: "succeeded", count: 3, requests: 4 });
    expect(await run()).toMatchObject({ status: "succeeded", count: 3, requests: 2 });
  });

  it("costs two readings at most, of however many policies", async () => {
    const names = ["a", "b", "c", "d", "e"];
    const { server, world, pages, again } = await startLists('expect: "items.exists(i, i.approvalId == 3)"', names);
    /** Polls with all but the last policy at once, and with that one after them. */
    const pollAll = async () => {
      const before = pages();
      const slotMs = Date.now();
      const poll = async (name: string) => {
        const { length } = world.log.outcomesOf(name);
        await world.enqueue(name, slotMs);
        await world.log.until(() => world.log.outcomesOf(name).length > length);
        return world.log.outcomesOf(name).at(-1)?.status;
      };
      const statuses = [...(await Promise.all(names.slice(0, -1).map(poll))), await poll("e")];
      return { statuses: [...new Set(statuses)], requests: pages() - before };
    };
    expect(await pollAll()).toEqual({ statuses: ["succeeded"], requests: 2 });
    server.lists["approvals"] = approvals(2, 4, 5);
    expect(await pollAll()).toEqual({ statuses: ["failed"], requests: 4 });
    expect(await pollAll()).toEqual({ statuses: ["failed"], requests: 2 });
    expect(again()).toMatchObject([{ service: "lists", list: "approvals", result: "same" }]);
  });

  it("judges the second reading alone, not a list that never was", async () => {
    const { run, change } = await startPolls('expect: "size(items) <= 4"');
    change([1, 2, 3, 4, 5]);
    expect(await run()).toMatchObject({ status: "failed", count: 5 });
    change([1, 2, 3, 4], [1, 2, 3, 5], [1, 2, 3, 6]);
    expect(await run()).toMatchObject({ status: "succeeded", changed: true, count: 4, requests: 4 });
  });

  it("remembers what slipped past the second reading, and forgets what is in neither", async () => {
    const { run, change } = await startPolls('expect: "size(new) == 0"');
    await run();
    change([2, 3, 4], [2, 3, 4], [3, 4]);
    expect(await run()).toMatchObject({ status: "succeeded", count: 2, requests: 4 });
    change([3, 4]);
    expect(await run()).toMatchObject({ status: "succeeded", count: 2 });
    change([3, 4, 1]);
    expect(await run()).toMatchObject({ status: "failed", offendingItems: ["x (1)"] });
  });

  it.each([
    [
      "first",
      [
        [2, 3, 9],
        [2, 3, 9],
        [3, 9],
      ],
    ],
    [
      "second",
      [
        [2, 3, 4],
        [2, 3, 4],
        [2, 3, 4, 9],
      ],
    ],
  ])("finds what only the %s reading shows at the next poll", async (_, lists) => {
    const { run, change } = await startPolls('expect: "size(new) == 0"');
    await run();
    change(...lists);
    expect(await run()).toMatchObject({ status: "succeeded", changed: false, requests: 4 });
    expect(await run()).toMatchObject({ status: "failed", offendingItems: ["x (9)"] });
  });
});
