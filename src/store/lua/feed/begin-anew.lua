-- Begins a history of a list: nothing of it was seen. The sequence goes on, so that a number from
-- an earlier history, if there was one, is below `beganSeq`.
-- KEYS: status, items, order, list totals
-- ARGV: keyedBy, keptMs
local statusKey, itemsKey, orderKey, totalsKey = unpack(KEYS)
local keyedBy, keptMs = unpack(ARGV)
--- @include "now"
local step = redis.call('HEXISTS', statusKey, 'seq')
redis.call('DEL', itemsKey, orderKey, totalsKey)
redis.call(
  'HDEL', statusKey, 'knowledge', 'walks', 'loggedSeq', 'walkBeganAtMs', 'wholeWalkBeganAtMs', 'generation',
  'generationSinceMs', 'wholeWalks'
)
local beganSeq = redis.call('HINCRBY', statusKey, 'seq', step)
redis.call('HSET', statusKey, 'beganSeq', beganSeq, 'beganAtMs', now, 'keyedBy', keyedBy)
redis.call('PEXPIRE', statusKey, keptMs)
