-- Adds a waiting task, unless its start is settled.
-- KEYS: waiters, status, entry of the task
-- ARGV: task, untilMs, at (now)
local waitersKey, statusKey, entryKey = unpack(KEYS)
local task, untilMs, at = unpack(ARGV)
if redis.call('HGET', entryKey, 'state') == 'settled' then return end
if redis.call('ZADD', waitersKey, untilMs, task) == 1 then redis.call('HSET', statusKey, 'wantedAtMs', at) end
