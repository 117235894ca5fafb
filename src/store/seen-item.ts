// One item of a feed as the feed book keeps it, and how it stands in Redis. Used by feed-book.ts and feed-mirror.ts.
import type { ItemFacts } from "../tasks/feed.ts";

/** An item's facts and where it stands in the order of discovery: `firstSeq` never changes, `seq` grows with each change. */
export interface SeenItem extends ItemFacts {
  readonly firstSeq: number;
  readonly seq: number;
  /** When it was discovered, by Redis; undefined for what older versions wrote, and where the facts had been forgotten meanwhile. */
  readonly seenAtMs: number | undefined;
}

/** Reads an item as it stands in Redis: `FIRST_SEQ FINGERPRINT@SEEN_AT JSON`. What was forgotten meanwhile has the number 0. */
export function toSeenItem(id: string, seq: number, text: string): SeenItem {
  const [first = "0", mark = ""] = text.split(" ", 2);
  const [fingerprint = "", seenAt = ""] = mark.split("@", 2);
  const facts = JSON.parse(text.slice(first.length + mark.length + 2) || "{}");
  return {
    syncJobId: undefined,
    startedAtMs: undefined,
    finished: undefined,
    succeeded: undefined,
    label: undefined,
    ...facts,
    id,
    fingerprint,
    seq,
    firstSeq: Number(first),
    seenAtMs: seenAt === "" ? undefined : Number(seenAt),
  };
}
