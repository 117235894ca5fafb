// Holds what a chaos has printed, and what it left in Redis, against the token that all of it went
// out with. Called at the end of each seed; standard error is empty or a finding of its own
// (fleet.ts).
import type { Redis } from "ioredis";
import { holdsSecret } from "../support/canaries.ts";
import { readRedis } from "../support/redis-dump.ts";
import type { ChaosFixture } from "./chaos-fixture.ts";

/** Where the token of the service is shown: nowhere, when all is well. */
export async function findShownSecrets({ events, parts }: ChaosFixture): Promise<string[]> {
  const { sandbox, store, redis } = parts;
  const kept = await readRedis(store.redis as Redis, `${redis.prefix}:*`);
  if (kept.length === 0) return ["Redis holds nothing that could be looked into for secrets"];
  const printed = events.map((event) => JSON.stringify(event));
  return [...printed, ...kept]
    .filter((text) => holdsSecret(text, sandbox.token))
    .map((text) => `the token of the service is shown: ${text.slice(0, 400)}`);
}
