-- Notes what a process runs, and forgets processes that are gone.
-- KEYS: replicas (hash: process → what it runs), processes, policy-set
-- ARGV: this process, what it runs
-- Answers 1 when a policy set is kept, else 0.
local replicasKey, processesKey, keptKey = unpack(KEYS)
local me, running = unpack(ARGV)
for _, name in ipairs(redis.call('HKEYS', replicasKey)) do
  if name ~= me and not redis.call('ZSCORE', processesKey, name) then redis.call('HDEL', replicasKey, name) end
end
redis.call('HSET', replicasKey, me, running)
return redis.call('EXISTS', keptKey)
