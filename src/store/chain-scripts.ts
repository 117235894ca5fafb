// The atomic steps of chains, in Redis's own language. Called by chain-book.ts only, apart from `tallyOutcomeLua`, which is part of the
// step that writes an outcome (history.ts), so that an outcome and what a chain knows of it never differ.
//
// The tally of a predecessor's slot is one hash: `kind`, `waiting` (followers that have no record yet), `open` (tasks without an
// outcome), `held` (tasks that may still hold their sync job), `ended` (the latest end), `=TARGET` → status, '' while it is open,
// `~TARGET` once it holds nothing. It is there only while somebody waits for it.
import { recordLua } from "./ledger-scripts.ts";
import { createScript } from "./redis.ts";
import { noteSlotLua } from "./telling-scripts.ts";

/** Notes an outcome in the tally, if there is one. */
export const tallyOutcomeLua = `
local function note(key, target, status, ended)
  if redis.call('HGET', key, '=' .. target) == '' then redis.call('HINCRBY', key, 'open', -1) end
  redis.call('HSET', key, '=' .. target, status)
  if tonumber(ended) > tonumber(redis.call('HGET', key, 'ended') or 0) then redis.call('HSET', key, 'ended', ended) end
end`;

/** A task holds nothing any more. KEYS: tally. ARGV: target. Answers 1 when no task of the slot does, 0 when some may, or nobody waits. */
export const releaseScript = createScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if redis.call('HSETNX', KEYS[1], '~' .. ARGV[1], 1) == 1 then redis.call('HINCRBY', KEYS[1], 'held', -1) end
return tonumber(redis.call('HGET', KEYS[1], 'held')) <= 0 and 1 or 0`);

/** Other tasks stand for one. KEYS: tally. ARGV: its target, then theirs, whose outcomes may be there already. Once. */
export const expandScript = createScript(`
if redis.call('HGET', KEYS[1], '=' .. ARGV[1]) ~= '' then return 0 end
for i = 2, #ARGV do
  if redis.call('HSETNX', KEYS[1], '=' .. ARGV[i], '') == 1 then redis.call('HINCRBY', KEYS[1], 'open', 1) end
end
redis.call('HSET', KEYS[1], '=' .. ARGV[1], 'expanded')
redis.call('HINCRBY', KEYS[1], 'open', -1)
redis.call('HINCRBY', KEYS[1], 'held', #ARGV - 1)
return 1`);

/**
 * How far a predecessor's slot has come. KEYS: its tally, its slots, waiting. ARGV: slot, its field in waiting.
 * Answers 'open', 'nothing', its record, or all of its tally when no task is open any more.
 */
export const lookScript = createScript(`
local open = redis.call('HGET', KEYS[1], 'open')
if open then
  if tonumber(open) > 0 then return 'open' end
  return redis.call('HGETALL', KEYS[1])
end
local record = redis.call('HGET', KEYS[2], ARGV[1])
if record then return record end
return redis.call('HEXISTS', KEYS[3], ARGV[2]) == 1 and 'open' or 'nothing'`);

/**
 * Ends the waiting of a slot: its record, its tasks in the outbox and its own tally in one step; exactly one caller succeeds.
 * KEYS: waiting, outbox, kept-since, slots, slot-index, its tally, its predecessor's tally, events to be told.
 * ARGV: the most records, the oldest slot kept, policy, field in waiting, slot, record, now, tasks, number of followers,
 * whether a missed slot is told.
 * Answers the mark under which its tasks stand in the outbox, or '' when it waits no more.
 */
export const followScript = createScript(`${recordLua} ${noteSlotLua}
if redis.call('HDEL', KEYS[1], ARGV[4]) == 0 then return '' end
write(KEYS[4], KEYS[5], ARGV[5], ARGV[6])
if ARGV[10] == '1' then tell(KEYS[8], ARGV[3], ARGV[5], ARGV[6]) end
local mark = tonumber(ARGV[7])
local field = ARGV[3] .. '/' .. string.format('%.0f', mark)
while redis.call('HEXISTS', KEYS[2], field) == 1 do
  mark = mark + 1
  field = ARGV[3] .. '/' .. string.format('%.0f', mark)
end
if ARGV[8] ~= '[]' then redis.call('HSET', KEYS[2], field, ARGV[8]) end
tally(KEYS[6], ARGV[6], tonumber(ARGV[9]))
trim(KEYS[4], KEYS[5], KEYS[3], ARGV[3], ARGV[1], tonumber(ARGV[2]))
if redis.call('EXISTS', KEYS[7]) == 1 and redis.call('HINCRBY', KEYS[7], 'waiting', -1) <= 0 then redis.call('DEL', KEYS[7]) end
return string.format('%.0f', mark)`);
