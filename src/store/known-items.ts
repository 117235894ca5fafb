// Which items of a list were ever seen, in about 25 bytes each: eight bytes of an id's hash, in one
// of 4,096 small hashes. Seen items go into the present generation; the one before is dropped after
// a week.
import { hash } from "node:crypto";
import type { ItemFacts } from "../model/feed.ts";
import type { Store } from "./redis.ts";
import { asList, asOptional, asWord, createScript } from "./script.ts";

/** `again`: first seen after the number asked about; `known`: before it. */
export type Novelty = "new" | "again" | "known";

const buckets = 4_096;
/** Items of one call; larger pages are cut into batches. */
const batchMax = 1_000;

const takeInScript = createScript(
  "feed/take-in",
  asOptional((answer) => asList(answer).map(asWord("new", "again", "known"))),
);

/** The keys of one list's items. `keys`: status, items, order. */
export interface KnownPlace {
  readonly keys: readonly string[];
  /** The present generation. */
  readonly generation: number;
  /** The key of a bucket. */
  readonly bucket: (generation: number, bucket: number) => string;
}

/** How to take a page in. `mustKnowFirst`: only if its first item is known. */
export interface TakeIn {
  readonly sinceSeq: number;
  readonly mustKnowFirst: boolean;
  readonly factsMax: number;
  readonly keepForMs: number;
}

/** Takes a page in; answers whether each item was known. undefined: it took nothing in. */
export async function takeInItems(
  store: Store,
  place: KnownPlace,
  items: readonly ItemFacts[],
  how: TakeIn,
): Promise<Novelty[] | undefined> {
  if (items.length === 0) return how.mustKnowFirst ? undefined : [];
  const novelties: Novelty[] = [];
  for (let from = 0; from < items.length; from += batchMax) {
    const batch = toArguments(items.slice(from, from + batchMax), place);
    const mustKnowFirst = how.mustKnowFirst && from === 0 ? 1 : 0;
    const args = [how.factsMax, how.sinceSeq, mustKnowFirst, how.keepForMs, place.generation, ...batch.args];
    const taken = await takeInScript(store, [...place.keys, ...batch.keys], args);
    if (taken === undefined) return undefined;
    novelties.push(...taken);
  }
  return novelties;
}

/** Drops a generation. */
export async function dropGeneration({ redis }: Store, place: KnownPlace, generation: number): Promise<void> {
  for (let from = 0; from < buckets; from += 256) {
    await redis.unlink(...Array.from({ length: 256 }, (_, index) => place.bucket(generation, from + index)));
  }
}

function toArguments(
  items: readonly ItemFacts[],
  place: KnownPlace,
): { keys: string[]; args: (string | number | Buffer)[] } {
  const keys: string[] = [];
  const known = new Map<number, number>();
  const args = items.flatMap(({ id, fingerprint, ...facts }) => {
    const digest = hash("sha256", id, "buffer");
    const bucket = digest.readUInt16BE(0) % buckets;
    let here = known.get(bucket);
    if (here === undefined) {
      keys.push(place.bucket(place.generation, bucket), place.bucket(place.generation - 1, bucket));
      here = keys.length / 2;
      known.set(bucket, here);
    }
    return [here, digest.subarray(2, 10), id, fingerprint, JSON.stringify(facts)];
  });
  return { keys, args };
}
