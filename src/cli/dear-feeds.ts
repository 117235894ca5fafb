// Finds followed lists that cost more than they need: read whole several times in a row, or not
// readable. Reads only what the walks of feeds noted (store/feed-store.ts). Used by `syncline
// status` and `syncline doctor`.
import type { PolicySet } from "../config/policy-set.ts";
import { listNames } from "../core/list-name.ts";
import { readKnowledge } from "../feeds/strategy/knowledge.ts";
import { dearReasons, type Feed, type WholeReason } from "../model/feed.ts";
import { dearWalksMin, type FeedNote, readFeedNotes } from "../store/feed-store.ts";
import type { Store } from "../store/redis.ts";
import { showInstant } from "./table.ts";

/** One list, what is wrong with it, and what to do. */
export interface DearFeed {
  readonly feed: Feed;
  /** The closed reason; `unreadable` when walks fail. */
  readonly reason: WholeReason | "unreadable";
  readonly sinceMs: number;
  readonly walks: number;
  readonly what: string;
  readonly cure: string;
}

const cures: Readonly<Partial<Record<WholeReason, string>>> = {
  "no-order": "nothing is lost; should it cost too much, let the service sort the list by its key",
  "links-not-kept":
    "nothing is lost; should it cost too much, let the service page by $skiptoken, without a credential in its links",
  "link-expired": "nothing is lost; let the service keep its links good for some minutes, or page by key",
  "open-items":
    "look whether `finished` of the mapping knows every state in which an item ends: `syncline discover` shows them",
};
const otherCure = "nothing is lost; it ends when the list grows at one of its ends only";

/** The lists of these policies that cost more than they need, or cannot be read. */
export async function readDearFeeds(set: Pick<PolicySet, "policies">, store: Store): Promise<readonly DearFeed[]> {
  const places = new Map(
    set.policies.map(({ service, repository = null }) => [
      JSON.stringify([service, repository]),
      { service, repository },
    ]),
  );
  const feeds = [...places.values()].flatMap((place) => listNames.map((list) => ({ ...place, list })));
  const notes = await readFeedNotes(store, feeds);
  return notes.flatMap(judge).toSorted((a, b) => a.sinceMs - b.sinceMs);
}

/** Names a list. */
export function tellFeed({ list, service, repository }: Feed): string {
  return `${list} of ${service}${repository === null ? "" : `, repository ${repository}`}`;
}

function judge(note: FeedNote): DearFeed[] {
  const { feed, failure, failingSinceMs, dearWalks = 0, dearSinceMs = 0 } = note;
  if (failure !== undefined && failingSinceMs !== undefined) {
    const what = `cannot be read since ${showInstant(failingSinceMs)}: ${failure}`;
    const cure = "runs that need it end unknown; the log has it as feed.unreadable";
    return [{ feed, reason: "unreadable", sinceMs: failingSinceMs, walks: 0, what, cure }];
  }
  const reason = Object.keys(dearReasons).find((one): one is WholeReason => one === note.dearReason);
  if (reason === undefined || dearWalks < dearWalksMin) return [];
  const { notKept, pages } = readKnowledge(note.knowledge);
  const carries = reason === "links-not-kept" && notKept !== null ? ` (${notKept})` : "";
  const what = `all ${pages} pages are read at each walk since ${showInstant(dearSinceMs)}, ${dearWalks} times in a row: ${dearReasons[reason]}${carries}`;
  return [{ feed, reason, sinceMs: dearSinceMs, walks: dearWalks, what, cure: cures[reason] ?? otherCure }];
}
