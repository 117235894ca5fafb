-- Takes a start without an outcome of its own out of flight.
-- KEYS: entry, in flight
-- ARGV: task, retentionMs, '1' to settle it as well
local entryKey, inFlightKey = unpack(KEYS)
local task, retentionMs, isOver = unpack(ARGV)
if redis.call('EXISTS', entryKey) == 0 then return end
if isOver == '1' then redis.call('HSET', entryKey, 'state', 'settled') end
redis.call('PEXPIRE', entryKey, retentionMs)
redis.call('HDEL', inFlightKey, task)
