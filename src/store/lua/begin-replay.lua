-- Fixes the instant that names the task which replays a failed one, for all who replay it.
-- KEYS: failed tasks, instants of the replays of a policy
-- ARGV: task, instant of a new replay, how long instants are kept (ms)
-- Answers the instant; nothing when the task is not on the list.
local failedKey, replaysKey = unpack(KEYS)
local task, instant, keptMs = unpack(ARGV)
if not redis.call('ZSCORE', failedKey, task) then return false end
redis.call('HSETNX', replaysKey, task, instant)
redis.call('PEXPIRE', replaysKey, keptMs)
return redis.call('HGET', replaysKey, task)
