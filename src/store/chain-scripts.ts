// The atomic steps of chains, in Lua. Called by chain-store.ts only, except `countOutcomeLua`: it
// runs in the step that writes an outcome (history.ts), so that the outcome and the join counter
// agree.
//
// The join counter of a predecessor's slot is one hash. Redis holds it only while a follower waits.
//   kind      the kind of its tasks
//   waiting   followers without a record
//   open      tasks without an outcome
//   held      tasks that may still hold the lease of their sync job
//   ended     the latest end of a task
//   =TARGET   the task's status; '' while the task is open
//   ~TARGET   set once the task has released its lease
import { recordLua } from "./ledger-scripts.ts";
import { noteSlotLua } from "./notify-scripts.ts";
import { createScript } from "./redis.ts";
import { noteMissedLua, noteTroublesLua } from "./troubles.ts";

/** Lua: counts an outcome in the join counter, if there is one. */
export const countOutcomeLua = `
local function note(key, target, status, ended)
  if redis.call('HGET', key, '=' .. target) == '' then redis.call('HINCRBY', key, 'open', -1) end
  redis.call('HSET', key, '=' .. target, status)
  if tonumber(ended) > tonumber(redis.call('HGET', key, 'ended') or 0) then redis.call('HSET', key, 'ended', ended) end
end`;

/**
 * Counts a task as released.
 * KEYS: join counter.
 * ARGV: target.
 * Answers 1 when no task of the slot holds a lease; 0 when one may, or no follower waits.
 */
export const releaseScript = createScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
if redis.call('HSETNX', KEYS[1], '~' .. ARGV[1], 1) == 1 then redis.call('HINCRBY', KEYS[1], 'held', -1) end
return tonumber(redis.call('HGET', KEYS[1], 'held')) <= 0 and 1 or 0`);

/**
 * Replaces a task by the tasks that it fanned out into; a second call changes nothing.
 * KEYS: join counter.
 * ARGV: target of the task, then the targets of the others. Their outcomes may be there already.
 */
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
 * Reads the state of a predecessor's slot.
 * KEYS: join counter, slots, waiting.
 * ARGV: slot, field in waiting.
 * Answers 'open', 'nothing', the slot's record, or the whole join counter when no task is open.
 */
export const viewScript = createScript(`
local open = redis.call('HGET', KEYS[1], 'open')
if open then
  if tonumber(open) > 0 then return 'open' end
  return redis.call('HGETALL', KEYS[1])
end
local record = redis.call('HGET', KEYS[2], ARGV[1])
if record then return record end
return redis.call('HEXISTS', KEYS[3], ARGV[2]) == 1 and 'open' or 'nothing'`);

/**
 * Ends the waiting of a slot: writes its record, its tasks into the outbox and its own join
 * counter. Exactly one caller succeeds.
 * KEYS: waiting, outbox, kept-since, slots, slot-index, own join counter, the predecessor's join
 * counter, event stream, troubles.
 * ARGV: most records, oldest slot kept, policy, field in waiting, slot, record, now, tasks, number
 * of followers, '1' to publish a missed slot.
 * Answers the watermark of its tasks in the outbox; '' when the slot waits no more.
 */
export const followScript = createScript(`${recordLua} ${noteSlotLua} ${noteTroublesLua} ${noteMissedLua}
if redis.call('HDEL', KEYS[1], ARGV[4]) == 0 then return '' end
write(KEYS[4], KEYS[5], ARGV[5], ARGV[6])
noteMissed(KEYS[9], ARGV[7], ARGV[3], ARGV[6])
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
