// Whether there is something new to show: one short text for all open pages. It reads the
// number of outcomes, and watermarks in batches so small that no start waits for them.
import { createHash } from "node:crypto";
import { batchesOf } from "./batches.ts";
import { outcomeCountKey } from "./policy-states.ts";
import type { Store } from "./redis.ts";

/** A text that differs after an outcome, a planned slot, a pause or a quarantine. */
export async function readLiveVersion(store: Store, policies: readonly string[]): Promise<string> {
  const { redis, key } = store;
  const hash = createHash("sha256");
  const take = (texts: readonly (string | null)[]) => hash.update(texts.join("\n"));
  take([await redis.get(outcomeCountKey(store))]);
  for (const batch of batchesOf(policies, 200)) take(await redis.hmget(key("watermarks"), ...batch));
  for (const name of ["pauses", "quarantines"]) take(await redis.hvals(key(name)));
  return hash.digest("hex");
}
