-- Counts a task as over: it has released its lease. Also its outcome, if that is older than the
-- join counter: Redis had lost the slot, and a worker restored the outcome.
-- KEYS: join counter, outcomes of the policy
-- ARGV: target, task
-- Answers 1 when no task of the slot holds a lease; 0 when one may, or no follower waits.
local counterKey, outcomesKey = unpack(KEYS)
local target, task = unpack(ARGV)
--- @include "now"
if redis.call('EXISTS', counterKey) == 0 then return 0 end
local outcome = redis.call('HGET', counterKey, '=' .. target) == '' and redis.call('HGET', outcomesKey, task)
if outcome then
  redis.call('HSET', counterKey, '=' .. target, cjson.decode(outcome).status, 'ended', now)
  redis.call('HINCRBY', counterKey, 'open', -1)
end
if redis.call('HSETNX', counterKey, '~' .. target, 1) == 1 then redis.call('HINCRBY', counterKey, 'held', -1) end
return tonumber(redis.call('HGET', counterKey, 'held')) <= 0 and 1 or 0
