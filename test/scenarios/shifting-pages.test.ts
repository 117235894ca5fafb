// Offset paging that shifts while it is read delivers items twice: a poll counts each of them once.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { redisForTest } from "../support/redis.ts";
import { startWorld } from "../support/world.ts";

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
