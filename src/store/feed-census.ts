// What the last walk that saw a whole list counted in it: the only way to know what is gone, since the feed book keeps what appeared.
// Counts, not items. Written in the step that ends a walk (feed-book.ts), read by work/; knows no mapping.
import type { Store } from "./redis.ts";

/** The counts of one whole walk. */
export interface Census {
  /** When that walk began, milliseconds UTC by Redis. */
  readonly atMs: number;
  /** The newest number of the feed when it ended. */
  readonly seq: number;
  /** For each field asked for, in that order; 0 for one that was not there. */
  readonly counts: readonly number[];
}

/**
 * The end of the script that ends a walk: KEYS[4] is the census, ARGV[7] on are its fields and counts, none when the walk counted nothing.
 * ARGV[1]: when the walk began. A census of an earlier walk stays; whoever reads it sees by `atMs` that it is old.
 */
export const writeCensusLua = `
if ARGV[7] then
  redis.call('DEL', KEYS[4])
  redis.call('HSET', KEYS[4], 'at', ARGV[1], 'seq', redis.call('HGET', KEYS[1], 'seq') or 0)
  for i = 7, #ARGV, 2 do redis.call('HSET', KEYS[4], ':' .. ARGV[i], ARGV[i + 1]) end
end`;

/** Reads the counts of these fields; undefined when no walk has counted. */
export async function readCensus(
  { redis }: Store,
  key: string,
  fields: readonly string[],
): Promise<Census | undefined> {
  const [at, seq, ...counts] = await redis.hmget(key, "at", "seq", ...fields.map((field) => `:${field}`));
  if (at === null || at === undefined) return undefined;
  return { atMs: Number(at), seq: Number(seq), counts: counts.map((count) => Number(count ?? 0)) };
}
