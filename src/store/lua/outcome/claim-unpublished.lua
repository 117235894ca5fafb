-- Claims an unpublished outcome.
-- KEYS: outcomes, unpublished
-- ARGV: task, publishWithinMs
-- Answers the outcome to publish, the instant until which another worker may publish it, or nothing
-- when it is published.
local outcomesKey, unpublishedKey = unpack(KEYS)
local task, publishWithinMs = unpack(ARGV)
--- @include "now"
local untilMs = redis.call('ZSCORE', unpublishedKey, task)
if not untilMs then return false end
if tonumber(untilMs) > now then return tonumber(untilMs) end
redis.call('ZADD', unpublishedKey, now + publishWithinMs, task)
return redis.call('HGET', outcomesKey, task)
