// The items of a list as a poll remembers them: 12 bytes each, 8 of a hash of the id and 4 of the content's. Pure.
// Called by poll.ts. Two ids with one hash among 10,000 items: once in 10^11 polls, and then one item is not called new.
import { hash } from "node:crypto";
import type { ItemFacts } from "../tasks/feed.ts";

const idBytes = 8;
const contentBytes = 4;
const itemBytes = idBytes + contentBytes;

/** What is remembered of an item; the fingerprint is hexadecimal. */
type Sighted = Pick<ItemFacts, "id" | "fingerprint">;

/** How an item stands to the last poll. */
export type Sighting = "new" | "modified" | "same";

/** Packs the items of a list. */
export function packSeen(items: readonly Sighted[]): Buffer {
  return Buffer.concat(items.flatMap(({ id, fingerprint }) => [idDigest(id), contentDigest(fingerprint)]));
}

/** Tells of each item how it stands to what was packed. Without anything packed (a first poll) every item is the same. */
export function createSightings(packed: Buffer | undefined): (item: Sighted) => Sighting {
  if (packed === undefined) return () => "same";
  const known = new Map<string, string>();
  for (let at = 0; at + itemBytes <= packed.length; at += itemBytes) {
    known.set(packed.toString("latin1", at, at + idBytes), packed.toString("latin1", at + idBytes, at + itemBytes));
  }
  return ({ id, fingerprint }) => {
    const content = known.get(idDigest(id).toString("latin1"));
    if (content === undefined) return "new";
    return content === contentDigest(fingerprint).toString("latin1") ? "same" : "modified";
  };
}

function idDigest(id: string): Buffer {
  return hash("sha256", id, "buffer").subarray(0, idBytes);
}

function contentDigest(fingerprint: string): Buffer {
  return Buffer.from(fingerprint.slice(0, 2 * contentBytes).padStart(2 * contentBytes, "0"), "hex");
}
