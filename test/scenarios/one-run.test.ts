import { afterEach, describe, expect, it } from "vitest";
import { redisForTest } from "../support/redis.ts";
import { startWorld, type World, type WorldOptions } from "../support/world.ts";

const redis = redisForTest();
let world: World | undefined;

async function start(options: Omit<WorldOptions, "redis">): Promise<World> {
  world = await startWorld({ redis, ...options });
  return world;
}

afterEach(async () => {
  await world?.stop();
  world = undefined;
});

const run = (syncJob: number, more = "") => `
  - { name: story, service: main, repository: HR, run: { syncJobs: [${syncJob}] }, schedule: { every: 30m }, ${more} }
  - { name: beat, service: main, repository: HR, poll: { list: triggers }, schedule: { every: 1s } }`;
