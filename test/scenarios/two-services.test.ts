// P7: one slow or broken service does not delay the others.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { redisForTest } from "../support/redis.ts";
import { startWorld, type World } from "../support/world.ts";

const redis = redisForTest();
let stops: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const stop of stops.reverse()) await stop();
  stops = [];
});

describe("a service that hangs on every request", () => {
  it("does not keep another service's polls from ending", async () => {
    let asked = 0;
    const silent = createServer(() => {
      asked += 1;
    });
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    stops.push(async () => {
      silent.closeAllConnections();
      silent.close();
    });
    const hanging = Array.from(
      { length: 20 },
      (_, index) => `  - { name: hang-${index}, service: silent, poll: { list: approvals } }`,
    );
    const policies = [...hanging, "  - { name: story, service: main, poll: { list: approvals } }"].join("\n");
    const world: World = await startWorld({
      redis,
      policies,
      moreServices: { silent: `http://127.0.0.1:${(silent.address() as AddressInfo).port}` },
    });
    stops.push(world.stop);
    await Promise.all(hanging.map((_, index) => world.enqueue(`hang-${index}`)));
    const outcomes = [];
    for (let round = 0; round < 3; round += 1) outcomes.push(await world.run("story"));
    expect(outcomes.map(({ status }) => status)).toEqual(["succeeded", "succeeded", "succeeded"]);
    expect(asked).toBeGreaterThan(0);
    expect(world.log.named("task.finished").filter(({ service }) => service === "silent")).toEqual([]);
  });
});
