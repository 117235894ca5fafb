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
    const server = await startListServer({ approvals: approvals(1, 2, 3, 4) }, 2);
    onTestFinished(() => server.stop());
    const policies = `  - { name: story, service: lists, poll: { list: approvals, ${poll} } }`;
    const world = await worldForTest({ policies, moreServices: { lists: server.url } });
    const run = async () => {
      // The feed's walk asks for the count.
      const pages = () => server.asked.filter((one) => one === "approvals").length;
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
    return { server, run, slip };
  }

  it("does not tell a living one as gone: by an expectation", async () => {
    const { server, run, slip } = await startPolls('expect: "items.exists(i, i.approvalId == 3)"');
    expect(await run()).toMatchObject({ status: "succeeded", requests: 2 });
    expect(await slip()).toMatchObject({ status: "succeeded", changed: false });
    expect(await run()).toMatchObject({ status: "succeeded", count: 3, requests: 2 });
    server.lists["approvals"] = approvals(2, 4, 5);
    expect(await run()).toMatchObject({ status: "failed", changed: true, count: 3, requests: 4 });
    expect(await run()).toMatchObject({ status: "failed", changed: false, requests: 2 });
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
});
