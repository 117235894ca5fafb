// Which items of a list were ever seen, in about 25 bytes each. Called by feed-store.ts only.
//
// Each item is eight bytes of its id's hash, in one of 4,096 small hashes that Redis packs tightly.
// Items seen go into the present generation, also those known from the one before, which is dropped
// after a week. So Redis forgets an item one to two weeks after it left the list. In generation 0,
// items with facts count as seen, too.
import { hash } from "node:crypto";
import type { ItemFacts } from "../model/feed.ts";
import { createScript, type Store } from "./redis.ts";

/**
 * `new`: never seen before. `again`: first seen after the number asked about. `known`: before it.
 */
export type Novelty = "new" | "again" | "known";

const buckets = 4_096;
/** Items of one call; larger pages are cut into batches. */
const batchMax = 1_000;
const words: Readonly<Record<string, Novelty>> = { n: "new", a: "again", k: "known" };

/**
 * Takes items in.
 * KEYS: status, items, order, then for each bucket the present and the previous one.
 * ARGV: facts to keep, sequence number asked about, 1 when the first item must be known, retention,
 * generation; then for each item its bucket here, digest, id, fingerprint, facts.
 * Answers a letter for each item; nothing when the first item had to be known and was not.
 */
const takeInScript = createScript(`
local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)
local function find(bucket, digest, id)
  local value = redis.call('HGET', KEYS[2 * bucket + 2], digest)
  if value then return value end
  value = redis.call('HGET', KEYS[2 * bucket + 3], digest)
  if not value and ARGV[5] == '0' then
    local first, fingerprint = string.match(redis.call('HGET', KEYS[2], id) or '', '^(%d+) (%S+)')
    value = first and first .. ' ' .. string.sub(fingerprint, 1, 8)
  end
  if value then redis.call('HSET', KEYS[2 * bucket + 2], digest, value) end
  return value
end
if ARGV[3] == '1' and (#ARGV < 10 or not find(tonumber(ARGV[6]), ARGV[7], ARGV[8])) then return false end
local letters, grew = {}, false
for i = 6, #ARGV, 5 do
  local bucket, digest, id, fingerprint = tonumber(ARGV[i]), ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local short = string.sub(fingerprint, 1, 8)
  local value = find(bucket, digest, id)
  local first, seen
  if value then
    local space = string.find(value, ' ', 1, true)
    first, seen = string.sub(value, 1, space - 1), string.sub(value, space + 1)
  end
  letters[#letters + 1] = not first and 'n' or (tonumber(first) > tonumber(ARGV[2]) and 'a' or 'k')
  if seen ~= short then
    local seq = redis.call('HINCRBY', KEYS[1], 'seq', 1)
    first = first or seq
    redis.call('HSET', KEYS[2 * bucket + 2], digest, first .. ' ' .. short)
    local seenAt = tostring(now)
    if value then seenAt = string.match(redis.call('HGET', KEYS[2], id) or '', '^%d+ [^ @]*@(%d+) ') or '' end
    redis.call('HSET', KEYS[2], id, first .. ' ' .. fingerprint .. '@' .. seenAt .. ' ' .. ARGV[i + 4])
    redis.call('ZADD', KEYS[3], seq, id)
    grew = true
  end
end
if grew then
  redis.call('HSET', KEYS[1], 'grewAtMs', now, 'takenSeq', redis.call('HGET', KEYS[1], 'seq'))
  local extra = redis.call('ZCARD', KEYS[3]) - tonumber(ARGV[1])
  if extra > 0 then
    local old = redis.call('ZPOPMIN', KEYS[3], extra)
    for i = 1, #old, 2 do redis.call('HDEL', KEYS[2], old[i]) end
  end
end
for i = 1, #KEYS do redis.call('PEXPIRE', KEYS[i], ARGV[4]) end
return table.concat(letters)`);

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
    const anchored = how.mustKnowFirst && from === 0 ? 1 : 0;
    const args = [how.factsMax, how.sinceSeq, anchored, how.keepForMs, place.generation, ...batch.args];
    const letters = await takeInScript(store, [...place.keys, ...batch.keys], args);
    if (typeof letters !== "string") return undefined;
    for (const letter of letters) novelties.push(words[letter] ?? "known");
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
