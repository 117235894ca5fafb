-- Notes a failed walk.
-- KEYS: status
-- ARGV: failure, keptMs
local statusKey = KEYS[1]
local failure, keptMs = unpack(ARGV)
--- @include "now"
--- @include "mark-logged"
redis.call('HSETNX', statusKey, 'failingSinceMs', now)
redis.call('HSET', statusKey, 'failure', failure, 'failedAtMs', now)
markLogged(statusKey)
redis.call('PEXPIRE', statusKey, keptMs)
