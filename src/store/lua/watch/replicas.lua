-- Notes, or reads, when this server process last had replicas.
-- KEYS: watch
-- ARGV: '1' to note that it has some now
-- Answers how long ago (ms) that was; nothing when it was another server process: what the master
-- noted comes to a replica as well.
local watchKey = KEYS[1]
local hasReplicas = ARGV[1]
--- @include "now"
--- @include "server-run"
local run = serverRun()
if hasReplicas == '1' then redis.call('HSET', watchKey, 'replicasOf', run, 'replicasAt', now) end
local noted = redis.call('HMGET', watchKey, 'replicasOf', 'replicasAt')
if run == '' or noted[1] ~= run then return false end
return now - noted[2]
