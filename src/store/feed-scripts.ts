// The atomic steps of the feed book, in Redis's own language. Called by feed-book.ts only.
import { writeCensusLua } from "./feed-census.ts";
import { createScript } from "./redis.ts";

const now = `local t = redis.call('TIME') local now = t[1] * 1000 + math.floor(t[2] / 1000)`;

/** Whoever ends a walk in order has logged what it found. */
const told = `redis.call('HSET', KEYS[1], 'toldSeq', redis.call('HGET', KEYS[1], 'seq') or 0)`;
/** Notes that all that was found is logged. KEYS: status. */
export const toldScript = createScript(`${told} return 1`);

/**
 * Notes that a walk is over. KEYS: status, items, order, census. ARGV: since when all was read, items, how long all is kept, 1 for a walk of the
 * whole list, the whole walks that a generation lasts, when it began, then the census. Answers 1 when the generation has had its time.
 */
export const endScript = createScript(`${now}
redis.call('HSET', KEYS[1], 'count', ARGV[2], 'walkStartedAtMs', ARGV[1], 'walkEndedAtMs', now, 'walkTookMs', now - ARGV[6])
if ARGV[4] == '1' then redis.call('HSET', KEYS[1], 'wholeSinceMs', ARGV[1]) end
redis.call('HINCRBY', KEYS[1], 'walks', 1)
redis.call('HSETNX', KEYS[1], 'generationSinceMs', now)
redis.call('HINCRBY', KEYS[1], 'wholeWalks', ARGV[4])
redis.call('HDEL', KEYS[1], 'failingSinceMs', 'failedAtMs', 'failure')
${told}
${writeCensusLua}
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[3]) end
local since, wholes = redis.call('HGET', KEYS[1], 'generationSinceMs'), redis.call('HGET', KEYS[1], 'wholeWalks')
if tonumber(wholes) < tonumber(ARGV[5]) or now - since < tonumber(ARGV[3]) then return 0 end
return 1`);

/** Begins a generation of seen items. KEYS: status. Answers its number. */
export const nextGenerationScript = createScript(`${now}
redis.call('HSET', KEYS[1], 'generationSinceMs', now, 'wholeWalks', 0)
return redis.call('HINCRBY', KEYS[1], 'generation', 1)`);

/** Notes that a walk failed. KEYS: status. ARGV: why, how long it is kept. */
export const failScript = createScript(`${now}
redis.call('HSETNX', KEYS[1], 'failingSinceMs', now)
redis.call('HSET', KEYS[1], 'failure', ARGV[1], 'failedAtMs', now)
${told}
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1`);

/** Notes that a task waits for the feed, unless its start is over. KEYS: waiters, status, journal entry of the waiter. ARGV: task, until when, now. */
export const waitScript = createScript(`
if redis.call('HGET', KEYS[3], 'state') == 'settled' then return 0 end
if redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1]) == 1 then redis.call('HSET', KEYS[2], 'wantedAtMs', ARGV[3]) end
return 1`);
