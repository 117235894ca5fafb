// Which starts of some sync jobs are in flight: asked when a walk has seen activities of these. Reads only.
import type { Feed } from "../tasks/feed.ts";
import type { Store } from "./redis.ts";
import { inFlightKey } from "./start-entry.ts";

const portionMax = 500;

/** The tasks whose starts are in flight: run tasks of these sync jobs of the feed's repository, by id; those that have ended are left out. */
export async function tasksInFlight(store: Store, feed: Feed, syncJobIds: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (let from = 0; from < syncJobIds.length; from += portionMax) {
    const { service, repository } = feed;
    const portion = syncJobIds.slice(from, from + portionMax);
    const keys = portion.map((target) => inFlightKey(store, { kind: "run", service, repository, target }));
    const starts = await Promise.all(keys.map((key) => store.redis.hgetall(key)));
    // What begins with "e" has ended and is kept for its late activities only (history.ts).
    for (const one of starts) for (const [id, sent] of Object.entries(one)) if (!sent.startsWith("e")) found.push(id);
  }
  return found;
}
