-- Notes a walk that failed, or that the limiter denied: such a one only prolongs a failure. After a
-- long pause the time in which the list is unread begins anew.
-- KEYS: status
-- ARGV: failure ('' for a denied walk), keptMs, beganAtMs, waitMs (from now until the next one)
local statusKey = KEYS[1]
local failure, keptMs, beganAtMs, waitMs = unpack(ARGV)
--- @include "now"
--- @include "mark-logged"
local pauseMsMax = 150000
if failure == '' and redis.call('HEXISTS', statusKey, 'failingSinceMs') == 0 then return end
local unreadUntilMs = redis.call('HGET', statusKey, 'unreadUntilMs')
if not unreadUntilMs or beganAtMs - unreadUntilMs > pauseMsMax then
  redis.call('HSET', statusKey, 'unreadSinceMs', now)
end
redis.call('HSET', statusKey, 'unreadUntilMs', now + waitMs)
if failure == '' then return end
redis.call('HSETNX', statusKey, 'failingSinceMs', now)
redis.call('HSET', statusKey, 'failure', failure, 'failedAtMs', now)
markLogged(statusKey)
redis.call('PEXPIRE', statusKey, keptMs)
