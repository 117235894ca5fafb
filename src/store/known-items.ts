// Which items of a list were ever seen, in about 30 bytes each: ten characters of an id's digest,
// in one of 4,096 small hashes. Seen items go into the present generation of the list's history;
// the one before goes when this one ends, after a week at least.
import { hash } from "node:crypto";
import type { ItemFacts } from "../model/feed.ts";
import type { Store } from "./redis.ts";
import { asOptional, asText, asWord, batchesOf, createScript } from "./script.ts";

/** `again`: first seen after `sinceSeq`, so by this walk; `known`: seen before. */
export type Novelty = "new" | "again" | "known";

const base64 = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"];
/** The names of all buckets: two characters of base64url. */
const bucketNames = base64.flatMap((first) => base64.map((second) => first + second));
const digestLength = 10;
/** Items of one call; larger pages are cut into batches. */
const batchMax = 1_000;

const takeInScript = createScript(
  "feed/take-in",
  asOptional((answer) =>
    asText(answer)
      .split(" ")
      .map(asWord("new", "again", "known")),
  ),
);

/** The keys of one list's items. `keys`: status, items, order. */
export interface KnownPlace {
  readonly keys: readonly string[];
  /** The present generation. */
  readonly generation: number;
  /** The key of a bucket. */
  readonly bucket: (generation: number, bucket: string) => string;
}

/**
 * How to take a page in. `mustKnowFirst`: only if its first item is known. `knowledge`: what is
 * learned of the list, kept in the same step; not for a page without items.
 */
export interface TakeIn {
  readonly sinceSeq: number;
  readonly mustKnowFirst: boolean;
  readonly factsMax: number;
  readonly keepForMs: number;
  readonly knowledge: string;
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
  for (const batch of batchesOf(items, batchMax)) {
    const mustKnowFirst = how.mustKnowFirst && novelties.length === 0 ? 1 : 0;
    const { bucketCount, keys, args } = toArguments(batch, place);
    const knowledge = novelties.length + batch.length === items.length ? how.knowledge : "";
    const limits = [how.factsMax, how.sinceSeq, mustKnowFirst, how.keepForMs, knowledge, bucketCount];
    const taken = await takeInScript(store, [...place.keys, ...keys], [...limits, ...args]);
    if (taken === undefined) return undefined;
    novelties.push(...taken);
  }
  return novelties;
}

/** Drops a generation. */
export async function dropGeneration({ redis }: Store, place: KnownPlace, generation: number): Promise<void> {
  for (const some of batchesOf(bucketNames, 256))
    await redis.unlink(...some.map((name) => place.bucket(generation, name)));
}

/**
 * The keys and arguments of one call, all of them texts: ioredis writes each buffer by itself. Ids
 * that differ in their last character share a bucket: a page of 100 numbers needs ten.
 */
function toArguments(items: readonly ItemFacts[], { generation, bucket }: KnownPlace) {
  /** The buckets, each with its number in this call. */
  const numberOf = new Map<string, string>();
  const args: string[] = [];
  let start: string | undefined;
  let name = "";
  for (const item of items) {
    const { id, fingerprint } = item;
    if (start !== id.slice(0, -1)) {
      start = id.slice(0, -1);
      name = digestOf(start, 2);
    }
    const number = numberOf.get(name) ?? String(numberOf.size + 1);
    numberOf.set(name, number);
    const facts = JSON.stringify({ ...item, id: undefined, fingerprint: undefined });
    // A corrected mapping changes the second part.
    const stamp = `${fingerprint.slice(0, 8)}${facts === "{}" ? "" : `.${digestOf(facts, 4)}`}`;
    args.push(number, digestOf(id, digestLength), id, stamp, facts);
  }
  const generations = generation === 0 ? [0] : [generation, generation - 1];
  const keys = generations.flatMap((of) => [...numberOf.keys()].map((one) => bucket(of, one)));
  return { bucketCount: numberOf.size, keys, args };
}

function digestOf(text: string, length: number): string {
  return hash("sha256", text, "base64url").slice(0, length);
}
