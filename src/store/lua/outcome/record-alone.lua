-- Records an outcome and nothing else.
-- KEYS: outcomes, index, failed tasks, outcomes-kept
-- ARGV: task, outcome, placeMs, policy, '1' when doing it over may help
-- Answers 1 when it did, 0 when the task has one.
local outcomesKey, indexKey, failedKey, keptKey = unpack(KEYS)
local task, outcome, placeMs, policy, isReplayable = unpack(ARGV)
if redis.call('HSETNX', outcomesKey, task, outcome) == 0 then return 0 end
redis.call('HSETNX', keptKey, policy, '')
redis.call('ZADD', indexKey, placeMs, task)
if isReplayable == '1' then redis.call('ZADD', failedKey, placeMs, task) end
return 1
