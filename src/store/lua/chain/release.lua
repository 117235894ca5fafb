-- Counts a task as released.
-- KEYS: join counter
-- ARGV: target
-- Answers 1 when no task of the slot holds a lease; 0 when one may, or no follower waits.
local counterKey, target = KEYS[1], ARGV[1]
if redis.call('EXISTS', counterKey) == 0 then return 0 end
if redis.call('HSETNX', counterKey, '~' .. target, 1) == 1 then redis.call('HINCRBY', counterKey, 'held', -1) end
return tonumber(redis.call('HGET', counterKey, 'held')) <= 0 and 1 or 0
