-- Counts what replicas may have; in a pipeline before WAIT.
-- KEYS: watch
-- Answers the count of intents, and how many replicas are in step.
local info = redis.pcall('INFO', 'replication')
local _, inStep = string.gsub(type(info) == 'string' and info or '', 'state=online', '')
return { tonumber(redis.call('HGET', KEYS[1], 'intents') or 0), inStep }
