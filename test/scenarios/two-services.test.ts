// P7: one slow or broken service does not delay the others.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { worldForTest } from "../support/world.ts";

describe("a service that hangs on every request", () => {
  it("does not keep another service's polls from ending", async () => {
    let asked = 0;
    const silent = createServer(() => {
      asked += 1;
    });
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    onTestFinished(async () => {
      silent.closeAllConnections();
      silent.close();
    });
    const hanging = Array.from(
      { length: 20 },
      (_, index) => `  - { name: hang-${index}, service: silent, poll: { list: approvals } }`,
    );
    const policies = [...hanging, "  - { name: story, service: main, poll: { list: approvals } }"].join("\n");
    const world = await worldForTest({
      policies,
      moreServices: { silent: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` },
    });
    await Promise.all(hanging.map((_, index) => world.enqueue(`hang-${index}`)));
    const outcomes = [];
    for (let round = 0; round < 3; round += 1) outcomes.push(await world.run("story"));
    expect(outcomes.map(({ status }) => status)).toEqual(["succeeded", "succeeded", "succeeded"]);
    expect(asked).toBeGreaterThan(0);
    expect(world.log.named("task.finished").filter(({ service }) => service === "silent")).toEqual([]);
  });
});
